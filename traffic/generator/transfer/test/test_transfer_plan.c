/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of blocks: lists, ranges and each kind of error. Bounds of --fq-rate. */
#include "transfer/transfer_plan.h"

#include <string.h>

#include "common/test/check.h"

static struct transfer_plan udp_plan(const char *sizes) {
    struct transfer_plan plan = {.protocol = PROTOCOL_UDP, .streams = 1, .count = 1};
    strcpy(plan.sizes_text, sizes);
    return plan;
}

static void check_wrong_sizes(const char *text, const char *says) {
    struct transfer_plan plan = udp_plan(text);
    const char *error = transfer_plan_complete(&plan, false);
    CHECK(error && strstr(error, says));
    CHECK(!plan.sizes);
}

static void test_sizes(void) {
    static const uint32_t right[] = {64, 512, 100, 110, 120, 130, 1000};
    struct transfer_plan plan = udp_plan("64,512,100-130:10,1k");
    CHECK(!transfer_plan_complete(&plan, false));
    CHECK(plan.size_count == 7 && !memcmp(plan.sizes, right, sizeof right));
    CHECK_INT(plan.min_size, 64);
    CHECK_INT(plan.max_size, 1000);
    transfer_plan_free(&plan);
    plan = udp_plan("32-65507");
    CHECK(!transfer_plan_complete(&plan, false));
    CHECK_INT(plan.size_count, 65507 - 31);
    transfer_plan_free(&plan);
    plan = udp_plan("64-128:18446744073709551615"); /* a sum that wraps would give 63, 62, ... */
    CHECK(!transfer_plan_complete(&plan, false));
    CHECK_INT(plan.size_count, 1);
    CHECK_INT(plan.min_size, 64);
    transfer_plan_free(&plan);
    check_wrong_sizes("31", "32 bytes");
    check_wrong_sizes("65508", "65507 bytes");
    check_wrong_sizes("100-64", "expected sizes");
    check_wrong_sizes("64,,65", "expected sizes");
    check_wrong_sizes("64-100:0", "expected sizes");
    check_wrong_sizes("64:3", "expected sizes");
    check_wrong_sizes("32-65507,32-65507", "65536 sizes");
}

/* As they may come from a peer. */
static void test_rates_of_the_kernel(void) {
    static const double right[] = {0, 1e5, 9.9e12}, wrong[] = {1, 99999, 1e13};
    struct transfer_plan plan = udp_plan("100");
    for (unsigned i = 0; i < 6; i++) {
        plan.protocol = PROTOCOL_TCP;
        plan.socket.fq_rate_bps = i < 3 ? right[i] : wrong[i - 3];
        CHECK(!transfer_plan_complete(&plan, false) == (i < 3));
        transfer_plan_free(&plan);
    }
    plan.protocol = PROTOCOL_UDP;
    plan.socket.fq_rate_bps = 1e6;
    CHECK(transfer_plan_complete(&plan, false));
    transfer_plan_free(&plan);
}

int main(void) {
    test_sizes();
    test_rates_of_the_kernel();
    return 0;
}
