/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over streams and directions. Peers report the figures, so sums are bounded. A figure that
 * one stream does not know is unknown for all of them. */
#include "report/report.h"

#include <stddef.h>
#include <string.h>

#include "common/lateness.h"

const struct stream_report *stream_report_of(const struct stream *stream, bool sender) {
    const struct direction *direction = stream->direction;
    if (direction->is_sending == sender)
        return &stream->own;
    return (sender ? direction->ended : direction->peer_done) ? &stream->peer : NULL;
}

int64_t blocks_lost(bool known, const struct stream_report *sent, const struct stream_report *got) {
    if (!known)
        return -1;
    return (int64_t)bounded_subtract(sent->blocks_sent, got->blocks_received);
}

/* The sum is known only if both are. */
static uint64_t add_plus_1(uint64_t one, uint64_t other) {
    return one && other ? bounded_add(one, other - 1) : 0;
}

/* The time of several streams runs from the first block of any to the last of any. A single stream
 * keeps its monotonic duration; several share only times since the epoch. */
static void add_times(struct stream_report *sum, const struct stream_report *one) {
    if (!one->first_ns)
        return;
    uint64_t first = sum->first_ns && sum->first_ns < one->first_ns ? sum->first_ns : one->first_ns;
    uint64_t last = sum->last_ns > one->last_ns ? sum->last_ns : one->last_ns;
    bool only = !sum->first_ns;
    sum->first_ns = first;
    sum->last_ns = last;
    sum->elapsed_ns = only ? one->elapsed_ns : bounded_subtract(last, first);
}

void stream_report_add(struct stream_report *sum, const struct stream_report *one) {
    uint64_t *to = &sum->blocks_sent; /* the counts are the first members, without gaps */
    const uint64_t *from = &one->blocks_sent;
    for (size_t i = 0; i <= offsetof(struct stream_report, foreign) / sizeof *to; i++)
        to[i] = bounded_add(to[i], from[i]);
    sum->cpu_user_ns = bounded_add(sum->cpu_user_ns, one->cpu_user_ns);
    sum->cpu_system_ns = bounded_add(sum->cpu_system_ns, one->cpu_system_ns);
}

/* Goes through the text, because a peer's report has no other form. */
static void add_errors(struct stream_report *sum, const struct stream_report *one) {
    struct error_counts counts = {0};
    error_counts_add(&counts, sum->errors);
    error_counts_add(&counts, one->errors);
    error_counts_write(&counts, sum->errors);
}

static void keep_larger(uint64_t *sum, uint64_t one) {
    *sum = *sum > one ? *sum : one;
}

/* Of several streams, the one that was latest counts. */
static void add_lateness(struct stream_report *sum, const struct stream_report *one, bool first) {
    keep_larger(&sum->late_p50_ns, one->late_p50_ns);
    keep_larger(&sum->late_p99_ns, one->late_p99_ns);
    keep_larger(&sum->late_max_ns, one->late_max_ns);
    keep_larger(&sum->largest_burst, one->largest_burst);
    keep_larger(&sum->moved_ns, one->moved_ns);
    keep_larger(&sum->responses, one->responses);
    keep_larger(&sum->response_bytes, one->response_bytes);
    keep_larger(&sum->turn_p50_ns, one->turn_p50_ns);
    keep_larger(&sum->turn_p99_ns, one->turn_p99_ns);
    keep_larger(&sum->turn_max_ns, one->turn_max_ns);
    keep_larger(&sum->paused_ns, one->paused_ns);
    sum->real_time = one->real_time && (first || sum->real_time);
}

/* Unknown (0) if one is. */
static uint64_t larger_known(uint64_t sum, uint64_t one, bool first) {
    return first ? one : !sum || !one ? 0 : sum > one ? sum : one;
}

static void add(struct stream_report *sum, const struct stream_report *one, bool first) {
    stream_report_add(sum, one);
    add_times(sum, one);
    add_errors(sum, one);
    add_lateness(sum, one, first);
    sum->delay_p50_ns_plus_1 =
        larger_known(sum->delay_p50_ns_plus_1, one->delay_p50_ns_plus_1, first);
    sum->delay_p99_ns_plus_1 =
        larger_known(sum->delay_p99_ns_plus_1, one->delay_p99_ns_plus_1, first);
    sum->delay_max_ns_plus_1 =
        larger_known(sum->delay_max_ns_plus_1, one->delay_max_ns_plus_1, first);
    sum->jitter_ns_plus_1 =
        first ? one->jitter_ns_plus_1 : add_plus_1(sum->jitter_ns_plus_1, one->jitter_ns_plus_1);
    sum->dropped_plus_1 =
        first ? one->dropped_plus_1 : add_plus_1(sum->dropped_plus_1, one->dropped_plus_1);
}

/* Returns false if a stream's report is missing. The jitter is the mean of the streams. */
static bool add_up(const struct direction *direction, bool sender, struct stream_report *sum) {
    for (uint32_t i = 0; i < direction->count; i++) {
        const struct stream_report *one = stream_report_of(&direction->streams[i], sender);
        if (!one)
            return false;
        add(sum, one, !i);
    }
    if (sum->jitter_ns_plus_1)
        sum->jitter_ns_plus_1 = (sum->jitter_ns_plus_1 - 1) / direction->count + 1;
    return direction->count > 0;
}

struct direction_totals direction_totals_of(const struct direction *direction) {
    struct direction_totals totals = {0};
    totals.sender_known = add_up(direction, true, &totals.sender);
    totals.receiver_known = add_up(direction, false, &totals.receiver);
    totals.lost =
        blocks_lost(totals.sender_known && totals.receiver_known, &totals.sender, &totals.receiver);
    return totals;
}

void transfer_add_totals(const struct transfer *transfer, struct direction_totals *sum) {
    for (unsigned name = 0; name < DIRECTIONS; name++) {
        if (!transfer->directions[name].is_active)
            continue;
        struct direction_totals totals = direction_totals_of(&transfer->directions[name]);
        sum->sender_known &= totals.sender_known;
        sum->receiver_known &= totals.receiver_known;
        sum->lost = sum->lost < 0 || totals.lost < 0
                        ? -1
                        : (int64_t)bounded_add((uint64_t)sum->lost, (uint64_t)totals.lost);
        stream_report_add(&sum->sender, &totals.sender);
        stream_report_add(&sum->receiver, &totals.receiver);
    }
}

/* A file must also have both checksums, and they must agree. */
bool transfer_is_complete(const struct transfer *transfer) {
    bool complete = !transfer->stopped_by;
    for (unsigned name = 0; name < DIRECTIONS; name++) {
        const struct direction *direction = &transfer->directions[name];
        if (!direction->is_active)
            continue;
        complete = complete && (direction->is_sending ? direction->peer_done : direction->ended);
    }
    if (transfer->content.is_used)
        complete = complete && transfer->content.own[0] && !transfer->content.error &&
                   !strcmp(transfer->content.own, transfer->content.peer);
    return complete;
}

double report_bytes_per_s(const struct transfer *transfer, const struct stream_report *report,
                          bool sender) {
    double bytes = (double)(sender ? report->bytes_sent : report->bytes_received);
    bool has_gaps = !sender && transfer_is_udp(transfer);
    if (!report->elapsed_ns || (has_gaps && report->blocks_received < 2))
        return -1;
    if (has_gaps)
        bytes -= bytes / (double)report->blocks_received;
    return bytes * 1e9 / (double)report->elapsed_ns;
}

int sender_kept_pace(const struct transfer *transfer, const struct stream_report *sent) {
    const struct transfer_plan *plan = &transfer->plan;
    if (plan->pacing != PACING_CONSTANT || !sent->blocks_sent)
        return -1;
    double gap_ns = transfer_plan_gap_ns(plan, plan->max_size);
    return !sent->moved_ns && ((double)sent->late_p99_ns <= gap_ns || sent->late_p99_ns <= LATE_NS);
}

/* Directions are compared one by one, because a full-duplex link carries its rate both ways. */
int transfer_exceeds_link(const struct transfer *transfer, bool sender) {
    int exceeds = -1;
    for (unsigned name = 0; name < DIRECTIONS && transfer->link_bps; name++) {
        struct direction_totals totals = direction_totals_of(&transfer->directions[name]);
        bool known = sender ? totals.sender_known : totals.receiver_known;
        double rate =
            report_bytes_per_s(transfer, sender ? &totals.sender : &totals.receiver, sender) * 8;
        if (known && rate >= 0)
            exceeds = exceeds > 0 || rate > (double)transfer->link_bps;
    }
    return exceeds;
}

const struct rate_unit *rate_unit_of(char letter) {
    static const struct rate_unit units[] = {
        {'k', "Kbit", 1024 / 8.0},       {'K', "KB", 1024},
        {'m', "Mbit", 1048576 / 8.0},    {'M', "MB", 1048576},
        {'g', "Gbit", 1073741824 / 8.0}, {'G', "GB", 1073741824},
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].letter == letter)
            return &units[i];
    return NULL;
}

bool rate_letter_take(void *letter, const char *value, const char **expected) {
    *expected = "one of k, K, m, M, g, G";
    *(char *)letter = *value;
    return strlen(value) == 1 && rate_unit_of(*value);
}
