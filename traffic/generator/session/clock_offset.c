/* SPDX-License-Identifier: Apache-2.0 */
/* The offset between the realtime clocks of both hosts, for one-way delays. As in NTP (RFC 5905,
 * section 8), the initiator sends its time t1, the other end returns it with the times t2 and t3 at
 * which it read and answered, and the answer is read at t4:
 *
 *     offset     = ((t2 - t1) + (t3 - t4)) / 2, of the other clock against the initiator's
 *     round trip = (t4 - t1) - (t3 - t2)
 *
 * The offset is wrong by at most half of the round trip, whatever the path, so the sample with the
 * least round trip counts. It is measured before the start and once more when a direction ends. The
 * clocks are taken to drift apart evenly, by at most DRIFT_PPM: the true offset is then always
 * between the bounds of both measurements. Their middle is used, and half of their distance is the
 * error. If the two contradict each other, a clock was set meanwhile, and delays are unknown.
 *
 * Both ends have the same clock if they run under the same kernel, which its boot_id shows, unless
 * the measurement contradicts: machines that were restored from one snapshot have one boot_id. */
#include "session/clock_offset.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "session/exchange_lines.h"

#define PROBES 8
#define PROBING_NS                                                                                 \
    NS_PER_S /* for all probes, so that a long path delays the start by a round trip */
#define DRIFT_PPM 100

/* Reads lines until the answer to the probe `sent_ns`. Others may arrive first: they count as
 * usual. Returns false if there is no answer in time. */
static bool await_answer(struct transfer *transfer, uint64_t sent_ns, uint64_t deadline_ns) {
    char line[LINE_SIZE];
    while (control_wait(&transfer->control, line, deadline_ns) == CONTROL_LINE) {
        const char *error = exchange_take_line(transfer, line);
        if (error) {
            transfer_fail(transfer, "the peer sent a wrong line: %s", error);
            return false;
        }
        if (transfer->clock_answer.sent_ns == sent_ns)
            return true;
    }
    return false;
}

/* The times are at most MAX_TIME_NS, so no sum overflows. A peer with wrong times gets a wrong
 * offset in its own report, and this end's is no better than the peer's times anyway. */
static struct clock_offset offset_of(const struct clock_answer *answer, uint64_t read_ns,
                                     const char *own_host) {
    int64_t there = (int64_t)answer->received_ns - (int64_t)answer->sent_ns;
    int64_t back = (int64_t)answer->replied_ns - (int64_t)read_ns;
    int64_t round_trip = there - back;
    struct clock_offset offset = {.is_known = round_trip >= 0,
                                  .ns = there / 2 + back / 2,
                                  .error_ns = (uint64_t)(round_trip > 0 ? round_trip : 0) / 2 + 1};
    offset.is_same = own_host[0] && !strcmp(own_host, answer->host) &&
                     (uint64_t)llabs(offset.ns) <= offset.error_ns;
    if (offset.is_same)
        offset.ns = offset.error_ns = 0;
    return offset;
}

/* Returns the best of some samples. */
static struct clock_offset measure(struct transfer *transfer) {
    uint64_t deadline = monotonic_ns() + PROBING_NS;
    struct clock_offset best = {0};
    char host[HOST_NAME_SIZE];
    host_name_kernel(transfer->plan.run, host);
    for (int i = 0; i < PROBES && (uint64_t)monotonic_ns() < deadline; i++) {
        uint64_t sent_ns = realtime_ns();
        if (!control_send(&transfer->control, "clock sent_ns=%llu", (unsigned long long)sent_ns) ||
            !await_answer(transfer, sent_ns, deadline))
            break;
        struct clock_offset one = offset_of(&transfer->clock_answer, realtime_ns(), host);
        if (one.is_known && (!best.is_known || one.is_same || one.error_ns < best.error_ns))
            best = one;
        if (best.is_same)
            break;
    }
    return best;
}

struct clock_offset clock_combine(const struct clock_offset *begin, const struct clock_offset *end,
                                  uint64_t elapsed_ns) {
    int64_t drift = (int64_t)(elapsed_ns / (1000000 / DRIFT_PPM));
    int64_t begin_low = begin->ns - (int64_t)begin->error_ns;
    int64_t begin_high = begin->ns + (int64_t)begin->error_ns;
    int64_t low = begin_low - drift, high = begin_high + drift;
    if (!begin->is_known || begin->is_same)
        return *begin;
    if (end->is_known && !end->is_same) {
        int64_t end_low = end->ns - (int64_t)end->error_ns;
        int64_t end_high = end->ns + (int64_t)end->error_ns;
        low = end_low > low ? end_low : low;
        high = end_high < high ? end_high : high;
    }
    if (low > high)
        return (struct clock_offset){0};
    low = low < begin_low ? low : begin_low;
    high = high > begin_high ? high : begin_high;
    return (struct clock_offset){
        .is_known = true, .ns = low + (high - low) / 2, .error_ns = (uint64_t)(high - low + 1) / 2};
}

/* Only the initiator measures; the other end has the result by the time at which it needs it. */
bool clock_measure_begin(struct transfer *transfer) {
    if (!transfer_is_udp(transfer))
        return true;
    transfer->clock_begin = transfer->clock = measure(transfer);
    return exchange_send_clock(transfer);
}

static struct clock_offset clock_over_transfer(const struct transfer *transfer,
                                               const struct clock_offset *end) {
    return clock_combine(&transfer->clock_begin, end,
                         (uint64_t)monotonic_ns() - transfer->start_ns);
}

bool clock_measure_end(struct transfer *transfer) {
    if (!transfer_is_udp(transfer) || !transfer->clock_begin.is_known)
        return true;
    struct clock_offset end = {0};
    if (!transfer->clock_begin.is_same)
        end = measure(transfer);
    transfer->clock = clock_over_transfer(transfer, &end);
    if (!end.is_known && !transfer->clock_begin.is_same)
        transfer->clock.is_known = false; /* a clock may have been set */
    return exchange_send_clock(transfer);
}

void clock_estimate_end(struct transfer *transfer) {
    transfer->clock = clock_over_transfer(transfer, &(struct clock_offset){0});
}

/* Delays were collected with the offset at the begin. */
static uint64_t correct(uint64_t ns_plus_1, int64_t by_ns) {
    int64_t ns = (int64_t)ns_plus_1 - 1 - by_ns;
    return (uint64_t)(ns > 0 ? ns : 0) + 1;
}

void clock_correct(const struct transfer *transfer, struct stream_report *report) {
    int64_t by_ns = transfer->clock.ns - transfer->clock_begin.ns;
    if (!report->delay_p50_ns_plus_1)
        return;
    if (!transfer->clock.is_known) {
        report->delay_p50_ns_plus_1 = report->delay_p99_ns_plus_1 = 0;
        report->delay_max_ns_plus_1 = 0;
        return;
    }
    by_ns = transfer->is_initiator ? -by_ns : by_ns;
    report->delay_p50_ns_plus_1 = correct(report->delay_p50_ns_plus_1, by_ns);
    report->delay_p99_ns_plus_1 = correct(report->delay_p99_ns_plus_1, by_ns);
    report->delay_max_ns_plus_1 = correct(report->delay_max_ns_plus_1, by_ns);
}
