/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer/units.h"

#include <math.h>
#include <string.h>

#include "common/check.h"

static void test_whole(void) {
    static const struct {
        const char *text;
        uint64_t value;
    } right[] = {
        {"1000", 1000}, {"64k", 64000}, {"64KiB", 65536}, {"1.5M", 1500000}, {"2GB", 2000000000}};
    static const char *const wrong[] = {
        "",        "k",     "-1",  "1.5", "0x10",
        "1 q",     "1.2.3", "nan", "10q", "9999999999999999999999999999999999999999",
        "9300000T"};
    uint64_t value;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        CHECK(units_size(right[i].text, &value));
        CHECK_INT(value, right[i].value);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!units_size(wrong[i], &value));
}

static void test_duration_and_rate(void) {
    uint64_t ns;
    double bits, packets;
    CHECK(units_duration("1.5s", &ns) && ns == 1500000000);
    CHECK(units_duration("200ms", &ns) && ns == 200000000);
    CHECK(units_duration("2m", &ns) && ns == UINT64_C(120000000000));
    CHECK(!units_duration("5 parsecs", &ns));
    CHECK(units_rate("1.9M", &bits, &packets) && bits == 1.9e6 && packets == 0);
    CHECK(units_rate("1G", &bits, &packets) && bits == 1e9);
    CHECK(units_rate("100pps", &bits, &packets) && packets == 100 && bits == 0);
    CHECK(!units_rate("quick", &bits, &packets));
}

static void check_wrong_sizes(const char *text, const char *says) {
    uint32_t count;
    const char *error = NULL;
    CHECK(!units_sizes(text, 32, 65507, &count, &error));
    CHECK(error && strstr(error, says));
}

static void test_sizes(void) {
    uint32_t count;
    const char *error;
    uint32_t *sizes = units_sizes("64,512,100-130:10,1k", 32, 65507, &count, &error);
    static const uint32_t right[] = {64, 512, 100, 110, 120, 130, 1000};
    CHECK(sizes && count == 7 && !memcmp(sizes, right, sizeof right));
    free(sizes);
    sizes = units_sizes("32-65507", 32, 65507, &count, &error);
    CHECK(sizes && count == 65507 - 31);
    free(sizes);
    check_wrong_sizes("31", "32 bytes");
    check_wrong_sizes("65508", "too large");
    check_wrong_sizes("100-64", "expected sizes");
    check_wrong_sizes("64,,65", "expected sizes");
    check_wrong_sizes("64-100:0", "expected sizes");
    check_wrong_sizes("64:3", "expected sizes");
    check_wrong_sizes("32-65507,32-65507", "65536 sizes");
}

int main(void) {
    test_whole();
    test_duration_and_rate();
    test_sizes();
    return 0;
}
