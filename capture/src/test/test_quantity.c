/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes, times and counts as people write them. */
#include "../../../common/check.h"
#include "quantity.h"

static void check_bytes(const char *text, const char *bare, uint64_t expected) {
    uint64_t bytes = 0;
    CHECK(quantity_bytes(text, bare, &bytes));
    CHECK_INT(bytes, expected);
}

static void check_ns(const char *text, int64_t expected) {
    int64_t ns = 0;
    CHECK(quantity_ns(text, "s", &ns));
    CHECK_INT(ns, expected);
}

static void check_count(const char *text, uint64_t expected) {
    uint64_t count = 0;
    CHECK(quantity_count(text, &count));
    CHECK_INT(count, expected);
}

/* Some of each kind; tests/test_capture_usage.py has them all. */
static void test_units_are_those_that_people_write(void) {
    check_bytes("64M", "B", 64000000);
    check_bytes("256MiB", "B", 268435456);
    check_bytes("1.5GB", "B", 1500000000);
    check_bytes(" 10 kbytes\t", "B", 10000);
    check_bytes("4ki", "B", 4096);
    check_bytes("0.0009765625ti", "B", 1073741824);
    check_bytes("2.5E3", "B", 2500);
    check_ns("200ms", 200000000);
    check_ns("1.5min", 90000000000);
    check_ns("2M", 120000000000);
    check_ns("50 \xce\xbcs", 50000);
    check_ns(".5", 500000000);
    check_ns("0.0000000004", 0);
    check_count("10k", 10000);
    check_count("1.5K", 1500);
    check_count("0.000001T", 1000000);
    check_count("1e-1k", 100);
}

static void test_a_bare_number_has_the_unit_of_its_option(void) {
    check_bytes("64", "MiB", 67108864);
    check_bytes("100", "kB", 100000);
    check_bytes("512", "B", 512);
}

static void test_what_is_no_quantity_is_refused(void) {
    static const char *const wrong[] = {
        "",    " ",   "x",   "-1",   "+1", "1e",   "1eM",   "0x10",  "inf",
        "nan", "1Mx", "1,5", "1..5", "..", "1k B", "1_000", "1e999", "99999999999999T"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint64_t value;
        int64_t ns;
        CHECK(!quantity_bytes(wrong[i], "B", &value));
        CHECK(!quantity_ns(wrong[i], "s", &ns));
        CHECK(!quantity_count(wrong[i], &value));
    }
    uint64_t count;
    CHECK(!quantity_count("1.5", &count));
    CHECK(!quantity_bytes("0.5B", "B", &count));
    CHECK(!quantity_bytes("1kbit", "B", &count));
}

int main(void) {
    test_units_are_those_that_people_write();
    test_a_bare_number_has_the_unit_of_its_option();
    test_what_is_no_quantity_is_refused();
    return 0;
}
