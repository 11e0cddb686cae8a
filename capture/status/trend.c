/* SPDX-License-Identifier: Apache-2.0 */
/* The rate is the average since the start, and after some minutes an exponential average, so that a
 * pause between two bursts does not change the forecast. Compression counts with the share that it
 * left of the files so far. */
#include "status/trend.h"

#include <sys/param.h>

#include "common/clock.h"

#define AVERAGE_NS (300 * NS_PER_S)
#define LEAST_NS   (5 * NS_PER_S) /* before, there is no forecast */
#define LONGEST_NS (100.0 * 365 * 24 * 3600 * NS_PER_S)

void trend_begin(struct trend *trend) {
    *trend = (struct trend){.started_ns = realtime_ns(), .last_loss_ns = -1};
    trend->begun_ns = trend->checked_ns = monotonic_ns();
    for (uint32_t i = 0; i < DEVICES_MAX; i++)
        trend->last_packet_ns[i] = -1;
}

static void take_packets(struct trend *trend, const struct status *status) {
    int64_t now = realtime_ns();
    uint64_t lost = counts_lost(&status->all);
    if (lost > trend->lost)
        trend->last_loss_ns = now;
    trend->lost = lost;
    for (uint32_t i = 0; i < status->interface_count; i++) {
        uint64_t arrived = counts_offered(&status->interfaces[i].counts);
        if (arrived > trend->arrived[i])
            trend->last_packet_ns[i] = now;
        trend->arrived[i] = arrived;
    }
}

void trend_update(struct trend *trend, const struct status *status, uint64_t bytes, int64_t now) {
    int64_t took = now - trend->checked_ns, since = now - trend->begun_ns;
    take_packets(trend, status);
    if (took <= 0)
        return;
    double rate = bytes > trend->bytes ? (double)(bytes - trend->bytes) / (double)took : 0;
    double weight = (double)took / (double)MIN(since, AVERAGE_NS);
    trend->bytes_per_ns += MIN(weight, 1) * (rate - trend->bytes_per_ns);
    trend->bytes = bytes;
    trend->checked_ns = now;
}

int64_t trend_time_for(const struct trend *trend, double bytes) {
    if (bytes <= 0)
        return 0;
    if (trend->checked_ns - trend->begun_ns < LEAST_NS)
        return -1;
    double time = trend->bytes_per_ns > 0 ? bytes / trend->bytes_per_ns : LONGEST_NS;
    return time < LONGEST_NS ? (int64_t)time : NEVER_NS;
}

/* Returns the time until the first bound of the ring removes a file; -1 if a number of files is
 * one, and nothing shows how large they become. */
static int64_t time_to_bound(const struct trend *trend, const struct settings *settings,
                             const struct status *status) {
    double files = (double)status->ring_files, bytes = (double)status->ring_bytes;
    double average = files > 0 ? bytes / files : (double)settings->file_bytes;
    if (settings->ring_files && average <= 0)
        return -1;
    double wanted = MAX((double)settings->min_free_bytes,
                        (double)status->disk_bytes * settings->min_free_percent / 100);
    double most = (double)settings->ring_total_bytes, reserve = (double)settings->file_bytes;
    double left[] = {
        most - (reserve <= most / 2 ? reserve : 0) - bytes, /* as in ring_open() */
        ((double)settings->ring_files - files) * average,
        (double)status->disk_free_bytes - wanted,
    };
    bool holds[] = {settings->ring_total_bytes, settings->ring_files, wanted > 0};
    int64_t first =
        settings->ring_age_ns
            ? MAX(settings->ring_age_ns - (status->ring_files ? status->ring_age_ns : 0), 0)
            : NEVER_NS;
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        if (holds[i])
            first = MIN(first, trend_time_for(trend, left[i]));
    return first;
}

void trend_tell(const struct trend *trend, const struct settings *settings, struct status *status) {
    status->started_ns = trend->started_ns;
    status->last_loss_ns = trend->last_loss_ns;
    for (uint32_t i = 0; i < status->interface_count; i++)
        status->interfaces[i].last_packet_ns = trend->last_packet_ns[i];
    status->disk_full_ns = status->ring_full_ns = -1;
    if (status->disk_free_bytes < 0)
        return;
    status->disk_full_ns = trend_time_for(trend, (double)status->disk_free_bytes);
    if (!status->has_ring)
        return;
    status->ring_full_ns = time_to_bound(trend, settings, status);
    if (status->ring_full_ns < 0)
        status->disk_full_ns = -1;
    else if (status->ring_full_ns < status->disk_full_ns)
        status->disk_full_ns = NEVER_NS;
}
