/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes, times and counts as people write them. */
#include "../../../analyzer/core/test/check.h"
#include "quantity.h"

static void check_bytes(const char *text, const char *bare, uint64_t expected) {
    uint64_t bytes = 0;
    CHECK(quantity_bytes(text, bare, &bytes));
    CHECK_INT(bytes, expected);
}

static void test_units_are_those_that_people_write(void) {
    check_bytes("64M", "B", 64000000);
    check_bytes("256MiB", "B", 268435456);
    check_bytes("1.5GB", "B", 1500000000);
    check_bytes("10 kB", "B", 10000);
    check_bytes("4ki", "B", 4096);
    int64_t ns = 0;
    CHECK(quantity_ns("200ms", "s", &ns));
    CHECK_INT(ns, 200000000);
    CHECK(quantity_ns("1.5min", "s", &ns));
    CHECK_INT(ns, 90000000000);
    uint64_t count = 0;
    CHECK(quantity_count("10k", &count));
    CHECK_INT(count, 10000);
}

static void test_a_bare_number_has_the_unit_of_its_option(void) {
    check_bytes("64", "MiB", 67108864);
    check_bytes("100", "kB", 100000);
    check_bytes("512", "B", 512);
}

static void test_what_is_no_quantity_is_refused(void) {
    static const char *const wrong[] = {"",    "M",   "-1",  "+1",   "1e3", "0x10",           "inf",
                                        "nan", "1Mx", "1,5", "1..5", "..",  "99999999999999T"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint64_t value;
        int64_t ns;
        CHECK(!quantity_bytes(wrong[i], "B", &value));
        CHECK(!quantity_ns(wrong[i], "s", &ns));
        CHECK(!quantity_count(wrong[i], &value));
    }
    uint64_t count;
    CHECK(!quantity_count("1.5", &count));
}

int main(void) {
    test_units_are_those_that_people_write();
    test_a_bare_number_has_the_unit_of_its_option();
    test_what_is_no_quantity_is_refused();
    return 0;
}
