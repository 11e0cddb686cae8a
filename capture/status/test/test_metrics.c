/* SPDX-License-Identifier: Apache-2.0 */
/* JSON and Prometheus' text have the same numbers; forecasts of a full disk, with bounds and
 * without. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/test/check.h"
#include "status/metrics.h"
#include "status/trend.h"

static char json[METRICS_SIZE], text[METRICS_SIZE];

static struct status an_example(void) {
    return (struct status){
        .state = STATUS_HOLDING,
        .last_loss_ns = -1,
        .lag_ns = 1500 * NS_PER_MS,
        .bytes = 17,
        .disk_bytes = 1000,
        .disk_free_bytes = 250,
        .disk_full_ns = NEVER_NS,
        .interface_count = 2,
        .interfaces = {{.name = "a\"b\\\n\xff", .is_read = 1, .counts = {.dropped_disk = 3}},
                       {.name = "eth1", .counts = {.received = 5}}},
    };
}

static void check_has(const char *in, const char *wanted) {
    if (!strstr(in, wanted)) {
        fprintf(stderr, "no %s in:\n%s", wanted, in);
        abort();
    }
}

static void test_both_forms_have_the_same_numbers(void) {
    struct status status = an_example();
    CHECK(metrics_json(&status, json) && metrics_prometheus(&status, text));
    check_has(json, "\"lag_ns\":1500000000,\"bytes\":17,");
    check_has(text, "\nwiretale_capture_lag_seconds 1.500000000\n");
    check_has(text, "\nwiretale_capture_written_bytes_total 17\n");
    check_has(json, "\"disk\":{\"bytes\":1000,\"free_bytes\":250,\"full_ns\":null}");
    check_has(text, "\nwiretale_capture_disk_full_seconds +Inf\n");
    check_has(json, "\"last_loss_ns\":null");
    CHECK(!strstr(text, "last_loss_timestamp_seconds -"));
    check_has(text, "\nwiretale_capture_state{state=\"holding\"} 1\n");
    check_has(text, "\nwiretale_capture_received_packets_total{interface=\"eth1\"} 5\n");
    CHECK(!strstr(text, "ring_files") && !strstr(json, "\"ring\"") && !strstr(json, "commands"));
}

static void test_a_hostile_name_stays_within_its_label(void) {
    struct status status = an_example();
    CHECK(metrics_prometheus(&status, text));
    check_has(text,
              "\nwiretale_capture_dropped_packets_total{interface=\"a\\\"b\\\\\xEF\xBF\xBD\xEF"
              "\xBF\xBD\",cause=\"disk\"} 3\n");
}

/* As long as each of 32 names may become. */
static void test_the_longest_status_has_room(void) {
    struct status status = an_example();
    char name[64];
    memset(name, 0xff, sizeof name);
    name[63] = '\0';
    status.interface_count = DEVICES_MAX;
    status.has_ring = status.has_commands = true;
    for (uint32_t i = 0; i < DEVICES_MAX; i++) {
        status.interfaces[i] = (struct interface_status){.name = name};
        memset(&status.interfaces[i].counts, 0x7f, sizeof status.interfaces[i].counts);
    }
    CHECK(metrics_json(&status, json) && metrics_prometheus(&status, text));
}

static int64_t forecast(struct settings settings, uint64_t files, bool has_ring, int64_t *bound) {
    struct trend trend = {.checked_ns = 60 * NS_PER_S, .bytes_per_ns = 10.0 / NS_PER_S};
    struct status status = {.disk_bytes = 10000,
                            .disk_free_bytes = 1000,
                            .has_ring = has_ring,
                            .ring_age_ns = 40 * NS_PER_S,
                            .ring_files = files,
                            .ring_bytes = 100 * files};
    trend_tell(&trend, &settings, &status);
    *bound = status.ring_full_ns;
    return status.disk_full_ns;
}

static void test_forecasts(void) {
    int64_t bound;
    CHECK_INT(forecast((struct settings){0}, 0, false, &bound), 100 * NS_PER_S);
    CHECK_INT(bound, -1);
    /* 3 of 5 files of 100 bytes: 200 more bytes come before a removal, and the disk is never full.
     */
    CHECK_INT(forecast((struct settings){.ring_files = 5}, 3, true, &bound), NEVER_NS);
    CHECK_INT(bound, 20 * NS_PER_S);
    CHECK_INT(forecast((struct settings){.ring_files = 5}, 5, true, &bound), NEVER_NS);
    CHECK_INT(bound, 0);
    /* No file has shown yet how large they become, unless a bound says it. */
    CHECK_INT(forecast((struct settings){.ring_files = 5}, 0, true, &bound), -1);
    CHECK_INT(bound, -1);
    CHECK_INT(forecast((struct settings){.ring_files = 5, .file_bytes = 100}, 0, true, &bound),
              NEVER_NS);
    CHECK_INT(bound, 50 * NS_PER_S);
    /* A bound that the disk is too small for. */
    CHECK_INT(forecast((struct settings){.ring_files = 50}, 3, true, &bound), 100 * NS_PER_S);
    CHECK_INT(bound, 470 * NS_PER_S);
    CHECK_INT(
        forecast((struct settings){.ring_total_bytes = 800, .file_bytes = 100}, 3, true, &bound),
        NEVER_NS);
    CHECK_INT(bound, 40 * NS_PER_S);
    CHECK_INT(forecast((struct settings){.min_free_percent = 5}, 3, true, &bound), NEVER_NS);
    CHECK_INT(bound, 50 * NS_PER_S);
    CHECK_INT(forecast((struct settings){.ring_age_ns = 50 * NS_PER_S}, 3, true, &bound), NEVER_NS);
    CHECK_INT(bound, 10 * NS_PER_S);
}

/* A steady rate is seen as it is, also with a pause; nothing is foretold in the first seconds. */
static void test_the_rate(void) {
    static struct status status;
    struct trend trend;
    trend_begin(&trend);
    int64_t begun = trend.begun_ns;
    status = (struct status){.interface_count = 1};
    for (int i = 1; i <= 600; i++) {
        status.all.dropped_kernel = i == 100 ? 7 : status.all.dropped_kernel;
        trend_update(&trend, &status, (uint64_t)(i / 2) * 2000, begun + i * NS_PER_S);
        CHECK(i >= 5 || trend_time_for(&trend, 5000) == -1);
        CHECK((trend.last_loss_ns > 0) == (i >= 100));
    }
    CHECK(trend_time_for(&trend, 100000) > 95 * NS_PER_S);
    CHECK(trend_time_for(&trend, 100000) < 105 * NS_PER_S);
    CHECK_INT(trend.last_packet_ns[0], -1);
}

int main(void) {
    test_both_forms_have_the_same_numbers();
    test_a_hostile_name_stays_within_its_label();
    test_the_longest_status_has_room();
    test_forecasts();
    test_the_rate();
    return 0;
}
