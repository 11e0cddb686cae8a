/* SPDX-License-Identifier: Apache-2.0 */
/* Units as people write them. The Python tests run all of tests/analyzer/unit_spellings.toml
 * against each program; these cases are the ones that a command line does not reach. */
#include "common/units.h"

#include "common/test/check.h"

static void check_whole(const char *text, enum unit_kind kind, const char *unit,
                        uint64_t expected) {
    uint64_t value = 0;
    CHECK(units_parse_whole(text, kind, unit, &value));
    CHECK_INT(value, expected);
}

static void test_units_are_those_that_people_write(void) {
    static const struct {
        const char *text;
        enum unit_kind kind;
        uint64_t value;
    } right[] = {
        {"64M", UNIT_SIZE, 64000000},
        {"256MiB", UNIT_SIZE, 268435456},
        {"1.5GB", UNIT_SIZE, 1500000000},
        {"2GB", UNIT_SIZE, 2000000000},
        {"64k", UNIT_SIZE, 64000},
        {"64KiB", UNIT_SIZE, 65536},
        {" 10 kbytes\t", UNIT_SIZE, 10000},
        {"4ki", UNIT_SIZE, 4096},
        {"0.0009765625ti", UNIT_SIZE, 1073741824},
        {"2.5E3", UNIT_SIZE, 2500},
        {"1.1T", UNIT_SIZE, 1100000000000},
        {"200ms", UNIT_TIME, 200000000},
        {"1.5s", UNIT_TIME, 1500000000},
        {"1.5min", UNIT_TIME, 90000000000},
        {"2m", UNIT_TIME, 120000000000},
        {"2M", UNIT_TIME, 120000000000},
        {"50 \xce\xbcs", UNIT_TIME, 50000},
        {".5", UNIT_TIME, 500000000},
        {"0.0000000004", UNIT_TIME, 0},
        {"10k", UNIT_COUNT, 10000},
        {"1.5K", UNIT_COUNT, 1500},
        {"0.000001T", UNIT_COUNT, 1000000},
        {"1e-1k", UNIT_COUNT, 100},
        {"9223372036854775807", UNIT_COUNT, INT64_MAX},
        {"18446744073709551615", UNIT_COUNT, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        check_whole(right[i].text, right[i].kind, "", right[i].value);
}

static void test_a_number_without_a_unit_has_the_default_unit(void) {
    check_whole("64", UNIT_SIZE, "MiB", 67108864);
    check_whole("100", UNIT_SIZE, "kB", 100000);
    check_whole("512", UNIT_SIZE, "B", 512);
    check_whole("1k", UNIT_SIZE, "MiB", 1000);
}

static void test_other_texts_are_refused(void) {
    static const char *const wrong[] = {
        "",
        " ",
        "x",
        "k",
        "-1",
        "+1",
        "1e",
        "1eM",
        "0x10",
        "inf",
        "nan",
        "1Mx",
        "10q",
        "1 q",
        "1,5",
        "1..5",
        "..",
        "1.2.3",
        "1k B",
        "1_000",
        "1e999",
        "5 parsecs",
        "99999999999999T",
        "9300000T",
        "9999999999999999999999999999999999999999",
        "1                                                                  ms"};
    uint64_t value;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(!units_parse_whole(wrong[i], UNIT_SIZE, "", &value));
        CHECK(!units_parse_whole(wrong[i], UNIT_TIME, "", &value));
        CHECK(!units_parse_whole(wrong[i], UNIT_COUNT, "", &value));
    }
    CHECK(!units_parse_whole("1.5", UNIT_COUNT, "", &value));
    CHECK(!units_parse_whole("0.5B", UNIT_SIZE, "", &value));
    CHECK(!units_parse_whole("1kbit", UNIT_SIZE, "", &value));
    CHECK(!units_parse_whole("18446744073709551616", UNIT_COUNT, "", &value));
}

static void test_decimals(void) {
    double value;
    CHECK(units_parse_decimal("1.9M", UNIT_RATE, &value) && value == 1.9e6);
    CHECK(units_parse_decimal("10 Mbit/s", UNIT_RATE, &value) && value == 1e7);
    CHECK(units_parse_decimal("100pps", UNIT_PACKET_RATE, &value) && value == 100);
    CHECK(units_parse_decimal("25%", UNIT_SHARE, &value) && value == 0.25);
    CHECK(!units_parse_decimal("10MB", UNIT_RATE, &value));
    CHECK(!units_parse_decimal("100pps", UNIT_RATE, &value));
    CHECK(!units_parse_decimal("100", UNIT_PACKET_RATE, &value));
    CHECK(!units_parse_decimal("1k%", UNIT_SHARE, &value));
    CHECK(!units_parse_decimal("quick", UNIT_RATE, &value));
    CHECK(!units_parse_decimal("1e4000", UNIT_COUNT, &value));
}

static void test_a_port_is_digits(void) {
    static const char *const wrong[] = {"",    "0",   "65536", "1k",    "1e3",
                                        " 80", "80 ", "-1",    "000080"};
    uint16_t port;
    CHECK(units_parse_port("1", &port) && port == 1);
    CHECK(units_parse_port("65535", &port) && port == 65535);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!units_parse_port(wrong[i], &port));
}

int main(void) {
    test_units_are_those_that_people_write();
    test_a_number_without_a_unit_has_the_default_unit();
    test_other_texts_are_refused();
    test_decimals();
    test_a_port_is_digits();
    return 0;
}
