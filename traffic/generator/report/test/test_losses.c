/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the losses add up for each combination of counters, known or not. */
#include "common/test/check.h"
#include "report/report.h"

static struct losses losses(int64_t lost, uint64_t late, uint64_t dropped_plus_1,
                            struct host_losses sender, struct host_losses receiver) {
    struct direction direction = {
        .is_sending = true, .own_losses = sender, .peer_losses = receiver};
    struct direction_totals totals = {.lost = lost,
                                      .receiver = {.late = late, .dropped_plus_1 = dropped_plus_1}};
    return losses_of(&direction, &totals);
}

static void test_places(void) {
    struct losses found =
        losses(100, 1, 3, (struct host_losses){11, 4}, (struct host_losses){0, 6});
    CHECK_INT(found.receiver_program, 1);
    CHECK_INT(found.receiver_host, 7);
    CHECK_INT(found.sender_host, 13);
    CHECK_INT(found.path, 79);
    CHECK_INT(found.undetermined, 0);
}

/* Counters of an interface include other traffic. */
static void test_counters_above_the_losses(void) {
    struct losses found =
        losses(10, 0, 5, (struct host_losses){1001, 1}, (struct host_losses){0, 1});
    CHECK_INT(found.receiver_host, 4);
    CHECK_INT(found.sender_host, 6);
    CHECK_INT(found.path, 0);
}

static void test_unknown_counters(void) {
    struct losses found = losses(10, 0, 0, (struct host_losses){3, 1}, (struct host_losses){0, 2});
    CHECK_INT(found.receiver_host, -1);
    CHECK_INT(found.sender_host, 2);
    CHECK_INT(found.path, -1);
    CHECK_INT(found.undetermined, 8);
    found = losses(0, 0, 0, (struct host_losses){0, 0}, (struct host_losses){0, 0});
    CHECK(!found.lost && !found.path && !found.sender_host && !found.undetermined);
    CHECK_INT(losses(-1, 0, 0, (struct host_losses){1, 1}, (struct host_losses){1, 1}).lost, -1);
}

static void test_sums(void) {
    static const uint64_t counts[] = {0, 1, 2, 30, INT64_MAX};
    for (unsigned i = 0; i < 5 * 5 * 5 * 5; i++) {
        struct host_losses sender = {counts[i % 5], counts[i / 5 % 5]},
                           receiver = {0, counts[i / 25 % 5]};
        struct losses found = losses(40, 3, counts[i / 125 % 5], sender, receiver);
        const int64_t parts[] = {found.sender_host, found.path, found.receiver_host,
                                 found.receiver_program, found.undetermined};
        int64_t sum = 0;
        for (unsigned k = 0; k < 5; k++)
            sum += parts[k] > 0 ? parts[k] : 0;
        CHECK_INT(sum, 40);
    }
}

int main(void) {
    test_places();
    test_counters_above_the_losses();
    test_unknown_counters();
    test_sums();
    return 0;
}
