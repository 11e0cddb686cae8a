/* SPDX-License-Identifier: Apache-2.0 */
/* What --check says of a status, beside its nearest rival that is fine. */
#include <string.h>

#include "common/clock.h"
#include "common/test/check.h"
#include "monitor/health.h"
#include "status/metrics.h"

static struct status a_fine_one(void) {
    int64_t now = realtime_ns();
    return (struct status){
        .state = STATUS_CAPTURING,
        .started_ns = now - 3600 * NS_PER_S,
        .last_loss_ns = -1,
        .disk_bytes = 1000,
        .disk_free_bytes = 250,
        .disk_full_ns = NEVER_NS,
        .ring_full_ns = 0,
        .has_commands = true,
        .interface_count = 2,
        .interfaces =
            {{.name = "eth0", .is_read = 1, .has_carrier = 1, .last_packet_ns = now - NS_PER_S},
             {.name = "e\"1", .is_read = 1, .has_carrier = 1, .last_packet_ns = now - NS_PER_S}},
    };
}

static void check(struct status status, enum health health, const char *text) {
    static char metrics[METRICS_SIZE];
    struct verdict verdict;
    struct health_limits limits = {.loss_ns = 300 * NS_PER_S,
                                   .lag_ns = 5 * NS_PER_S,
                                   .disk_ns = 24 * 3600 * NS_PER_S,
                                   .silence_ns = 60 * NS_PER_S};
    CHECK(metrics_prometheus(&status, metrics));
    health_judge(metrics, &limits, &verdict);
    if (verdict.health != health || strncmp(verdict.text, text, strlen(text)) != 0)
        fprintf(stderr, "%d %s, expected %d %s\n", verdict.health, verdict.text, health, text);
    CHECK(verdict.health == health && !strncmp(verdict.text, text, strlen(text)));
}

#define WITH(member, number) (status = a_fine_one(), status.member = (number), status)

int main(void) {
    struct status status;
    int64_t now = realtime_ns();
    check(a_fine_one(), HEALTH_OK, "");
    check(WITH(state, STATUS_HOLDING), HEALTH_WARNING, "the disk takes no packets, which wait");
    check(WITH(state, STATUS_DROPPING), HEALTH_CRITICAL, "the disk takes no packets, and");
    check(WITH(state, STATUS_WAITING), HEALTH_CRITICAL, "no interface is there to read");
    check(WITH(interfaces[1].is_read, 0), HEALTH_WARNING, "e\"1 is not there");
    check(WITH(interfaces[0].has_carrier, 0), HEALTH_WARNING, "eth0 has no carrier");
    check(WITH(interfaces[0].has_carrier, -1), HEALTH_OK, "");
    check(WITH(has_mirror, true), HEALTH_WARNING, "the mirror port does not deliver all");
    check(WITH(last_loss_ns, now - 301 * NS_PER_S), HEALTH_OK, "");
    check(WITH(last_loss_ns, now - 290 * NS_PER_S), HEALTH_CRITICAL, "packets were lost 290 s");
    check(WITH(lag_ns, 4 * NS_PER_S), HEALTH_OK, "");
    check(WITH(lag_ns, 6 * NS_PER_S), HEALTH_WARNING, "packets wait 6 s to be written");
    check(WITH(disk_full_ns, 25 * 3600 * NS_PER_S), HEALTH_OK, "");
    check(WITH(disk_full_ns, 3 * 3600 * NS_PER_S), HEALTH_WARNING, "the disk will be full in 3 h");
    check(WITH(disk_full_ns, 2 * 3600 * NS_PER_S), HEALTH_CRITICAL, "the disk will be full in 2 h");
    check(WITH(disk_full_ns, -1), HEALTH_OK, "");
    check(WITH(commands_waiting, 9), HEALTH_OK, "");
    check(WITH(commands_failing, 1), HEALTH_WARNING, "the on-close command fails, 0 files wait");
    check(WITH(commands_given_up, 2), HEALTH_WARNING, "the on-close command was given up for 2");
    check(WITH(removed_pending, 2), HEALTH_WARNING, "2 files were removed before");
    check(WITH(interfaces[1].last_packet_ns, now - 90 * NS_PER_S), HEALTH_CRITICAL,
          "no packet on e\"1 for 90 s");
    check(WITH(interfaces[1].last_packet_ns, -1), HEALTH_CRITICAL, "no packet on e\"1 for 1 h");
    /* The worst stands first. */
    status = a_fine_one();
    status.lag_ns = 6 * NS_PER_S;
    status.state = STATUS_DROPPING;
    check(status, HEALTH_CRITICAL,
          "the disk takes no packets, and the memory is full; packets wait 6 s to be written");
    return 0;
}
