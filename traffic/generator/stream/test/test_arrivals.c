/* SPDX-License-Identifier: Apache-2.0 */
/* Arrivals against a list that forgets nothing. */
#include "stream/arrivals.h"

#include <stdbool.h>

#include "common/check.h"

static struct arrivals *fresh(void) {
    struct arrivals *arrivals = calloc(1, sizeof *arrivals);
    CHECK(arrivals);
    return arrivals;
}

static void test_kinds(void) {
    struct arrivals *a = fresh();
    CHECK_INT(arrivals_take(a, 0), ARRIVAL_NEW);
    CHECK_INT(arrivals_take(a, 3), ARRIVAL_NEW);
    CHECK_INT(arrivals_take(a, 1), ARRIVAL_OUT_OF_ORDER);
    CHECK_INT(arrivals_take(a, 1), ARRIVAL_DUPLICATE);
    CHECK_INT(arrivals_take(a, 3), ARRIVAL_DUPLICATE);
    CHECK_INT(a->distinct, 3);
    CHECK_INT(a->next - a->distinct, 1);
    free(a);
}

static void test_window(void) {
    struct arrivals *a = fresh();
    for (uint64_t i = 0; i < 100; i++)
        arrivals_take(a, i);
    CHECK_INT(arrivals_take(a, ARRIVALS_WINDOW + 49), ARRIVAL_NEW);
    CHECK_INT(arrivals_take(a, 49), ARRIVAL_LATE);
    CHECK_INT(arrivals_take(a, 50), ARRIVAL_DUPLICATE);
    CHECK_INT(arrivals_take(a, 100), ARRIVAL_OUT_OF_ORDER);
    CHECK_INT(arrivals_take(a, UINT64_C(1) << 40), ARRIVAL_NEW);
    for (uint64_t i = 1; i < ARRIVALS_WINDOW; i += 4097) /* nothing is left of before */
        CHECK_INT(arrivals_take(a, (UINT64_C(1) << 40) - i), ARRIVAL_OUT_OF_ORDER);
    free(a);
}

/* Any order within the window: each number counts once. */
static void test_shuffled(void) {
    enum { COUNT = 50000 };
    static uint8_t seen[COUNT];
    struct arrivals *a = fresh();
    uint64_t distinct = 0, duplicate = 0, out_of_order = 0, highest = 0;
    srand(3);
    for (unsigned i = 0; i < 4 * COUNT; i++) {
        uint64_t number = (uint64_t)rand() % COUNT;
        enum arrival kind = arrivals_take(a, number);
        bool late = distinct && number < highest;
        CHECK_INT(kind, seen[number] ? ARRIVAL_DUPLICATE
                        : late       ? ARRIVAL_OUT_OF_ORDER
                                     : ARRIVAL_NEW);
        duplicate += seen[number];
        out_of_order += !seen[number] && late;
        distinct += !seen[number];
        seen[number] = 1;
        highest = number > highest ? number : highest;
    }
    CHECK_INT(a->distinct, distinct);
    CHECK_INT(a->duplicate, duplicate);
    CHECK_INT(a->out_of_order, out_of_order);
    free(a);
}

int main(void) {
    test_kinds();
    test_window();
    test_shuffled();
    return 0;
}
