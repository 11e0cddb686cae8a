/* SPDX-License-Identifier: Apache-2.0 */
/* The report as one JSON object on one line. A figure that is unknown is null, never 0; "lost" is
 * known only if both ends reported. Schemas are "wiretale.send/1" and "wiretale.receive/1".
 *
 * A peer's numbers are at most INT64_MAX (control.h), so the casts to int64_t keep their values.
 * Members that are stored plus 1 become -1 if unknown, which json_count() writes as null. */
#include <string.h>

#include "report/report.h"

static double seconds(uint64_t ns) {
    return (double)ns / 1e9;
}

/* json_count() writes a negative number as null. */
static int64_t or_null(uint64_t value) {
    return value ? (int64_t)value : -1;
}

void report_put_rates(struct json *json, const struct stream_report *report, double rate) {
    bool known = rate >= 0;
    json_count(json, "first_ns", or_null(report->first_ns));
    json_count(json, "last_ns", or_null(report->last_ns));
    json_decimal(json, "elapsed_s", seconds(report->elapsed_ns), report->first_ns);
    json_decimal(json, "rate_kb_s", rate / 1e3, known);
    json_decimal(json, "rate_mbit_s", rate * 8 / 1e6, known);
    json_decimal(json, "cpu_user_s", seconds(report->cpu_user_ns), true);
    json_decimal(json, "cpu_system_s", seconds(report->cpu_system_ns), true);
}

/* An object with a member for each kind of error. */
static void put_errors(struct json *json, const char *errors) {
    struct error_counts counts = {0};
    error_counts_add(&counts, errors);
    json_open(json, "send_errors", '{');
    for (size_t i = 0; i < counts.kinds; i++)
        json_count(json, counts.names[i], (int64_t)counts.counts[i]);
    json_close(json, '}');
}

/* A negative value is unknown. */
static void put_known_bool(struct json *json, const char *name, int value) {
    if (value < 0)
        json_text(json, name, NULL);
    else
        json_bool(json, name, value);
}

/* Without a rate, or a block, nothing can be late. */
static void put_pace(struct json *json, const struct transfer *transfer,
                     const struct stream_report *report) {
    bool is_paced = transfer->plan.pacing != PACING_NONE && report->blocks_sent;
    json_count(json, "late_p50_ns", is_paced ? (int64_t)report->late_p50_ns : -1);
    json_count(json, "late_p99_ns", is_paced ? (int64_t)report->late_p99_ns : -1);
    json_count(json, "late_max_ns", is_paced ? (int64_t)report->late_max_ns : -1);
    json_count(json, "largest_burst", is_paced ? (int64_t)report->largest_burst : -1);
    json_count(json, "moved_ns", is_paced ? (int64_t)report->moved_ns : -1);
    put_known_bool(json, "real_time", is_paced ? report->real_time != 0 : -1);
    put_known_bool(json, "constant_rate", sender_kept_pace(transfer, report));
}

static void put_turns(struct json *json, const struct transfer *transfer,
                      const struct stream_report *report) {
    bool has_turns = transfer->plan.turns, has_times = has_turns && report->responses;
    json_count(json, "responses", has_turns ? (int64_t)report->responses : -1);
    json_count(json, "response_bytes", has_turns ? (int64_t)report->response_bytes : -1);
    json_count(json, "turn_p50_ns", has_times ? (int64_t)report->turn_p50_ns : -1);
    json_count(json, "turn_p99_ns", has_times ? (int64_t)report->turn_p99_ns : -1);
    json_count(json, "turn_max_ns", has_times ? (int64_t)report->turn_max_ns : -1);
}

static void put_sender(struct json *json, const struct transfer *transfer,
                       const struct stream_report *report) {
    json_count(json, "blocks_sent", (int64_t)report->blocks_sent);
    json_count(json, "bytes_sent", (int64_t)report->bytes_sent);
    report_put_rates(json, report, report_bytes_per_s(transfer, report, true));
    put_pace(json, transfer, report);
    json_count(json, "paused_ns", transfer_is_udp(transfer) ? (int64_t)report->paused_ns : -1);
    json_count(json, "blocks_offloaded",
               transfer_is_udp(transfer) ? (int64_t)report->blocks_offloaded : -1);
    put_turns(json, transfer, report);
    put_errors(json, report->errors);
}

/* `lost` is -1 if it is unknown, because one end did not report. */
static void put_receiver(struct json *json, const struct transfer *transfer,
                         const struct stream_report *report, int64_t lost) {
    json_count(json, "blocks_received", (int64_t)report->blocks_received);
    json_count(json, "blocks_lost", lost);
    json_count(json, "blocks_out_of_order", (int64_t)report->out_of_order);
    json_count(json, "blocks_duplicate", (int64_t)report->duplicate);
    json_count(json, "blocks_corrupt", (int64_t)report->corrupt);
    json_count(json, "blocks_late", (int64_t)report->late);
    json_count(json, "blocks_missing", (int64_t)report->missing);
    bool can_catch_up = transfer_is_udp(transfer) && transfer->plan.pacing != PACING_NONE;
    json_count(json, "blocks_missing_in_catch_up",
               can_catch_up ? (int64_t)report->missing_in_catch_up : -1);
    json_count(json, "foreign_datagrams", (int64_t)report->foreign);
    json_count(json, "bytes_received", (int64_t)report->bytes_received);
    report_put_rates(json, report, report_bytes_per_s(transfer, report, false));
    json_count(json, "jitter_ns", (int64_t)report->jitter_ns_plus_1 - 1);
    json_count(json, "delay_p50_ns", (int64_t)report->delay_p50_ns_plus_1 - 1);
    json_count(json, "delay_p99_ns", (int64_t)report->delay_p99_ns_plus_1 - 1);
    json_count(json, "delay_max_ns", (int64_t)report->delay_max_ns_plus_1 - 1);
    json_count(json, "host_dropped", (int64_t)report->dropped_plus_1 - 1);
}

/* A list of all streams at one end. A stream without a report has only its number. */
static void put_streams(struct json *json, const struct direction *direction, bool sender) {
    json_open(json, "streams", '[');
    for (uint32_t i = 0; i < direction->count; i++) {
        const struct stream_report *sent = stream_report_of(&direction->streams[i], true);
        const struct stream_report *got = stream_report_of(&direction->streams[i], false);
        json_open(json, NULL, '{');
        json_count(json, "stream", i);
        if (sender && sent)
            put_sender(json, direction->transfer, sent);
        else if (got)
            put_receiver(json, direction->transfer, got, blocks_lost(sent != NULL, sent, got));
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* A member of struct tcp_info with its name in JSON. */
struct sample_member {
    const char *name;
    size_t offset, size;
    uint64_t factor;
};

#define MEMBER(name, member, factor)                                                               \
    { name, offsetof(struct tcp_info, member), sizeof((struct tcp_info *)0)->member, factor }

static const struct sample_member sample_members[] = {
    MEMBER("rtt_us", tcpi_rtt, 1),
    MEMBER("rttvar_us", tcpi_rttvar, 1),
    MEMBER("min_rtt_us", tcpi_min_rtt, 1),
    MEMBER("cwnd", tcpi_snd_cwnd, 1),
    MEMBER("ssthresh", tcpi_snd_ssthresh, 1),
    MEMBER("mss", tcpi_snd_mss, 1),
    MEMBER("path_mtu", tcpi_pmtu, 1),
    MEMBER("unacked", tcpi_unacked, 1),
    MEMBER("lost", tcpi_lost, 1),
    MEMBER("retransmitted_now", tcpi_retrans, 1),
    MEMBER("retransmissions", tcpi_total_retrans, 1),
    MEMBER("reordering", tcpi_reordering, 1),
    MEMBER("delivery_rate_bps", tcpi_delivery_rate, 8),
    MEMBER("pacing_rate_bps", tcpi_pacing_rate, 8),
    MEMBER("data_segments_sent", tcpi_data_segs_out, 1),
    MEMBER("bytes_acked", tcpi_bytes_acked, 1),
    MEMBER("bytes_retransmitted", tcpi_bytes_retrans, 1),
    MEMBER("not_sent_bytes", tcpi_notsent_bytes, 1),
    MEMBER("busy_us", tcpi_busy_time, 1),
    MEMBER("receive_window_limited_us", tcpi_rwnd_limited, 1),
    MEMBER("send_buffer_limited_us", tcpi_sndbuf_limited, 1),
};

/* Samples are those of this end's sockets, of all streams in the order of time. A pacing rate of
 * all bits is not limited, and is written as 0. */
static void put_samples(struct json *json, const struct tcp_samples *samples) {
    json_open(json, "tcp_info", '[');
    for (uint32_t i = 0; i < samples->count; i++) {
        const struct tcp_sample *sample = &samples->list[i];
        json_open(json, NULL, '{');
        json_count(json, "time_ns", (int64_t)sample->time_ns);
        json_count(json, "stream", sample->stream);
        for (size_t m = 0; m < sizeof sample_members / sizeof *sample_members; m++) {
            const struct sample_member *member = &sample_members[m];
            uint64_t value = 0;
            memcpy(&value, (const char *)&sample->info + member->offset, member->size);
            json_count(json, member->name,
                       value < UINT64_MAX / 8 ? (int64_t)(value * member->factor) : 0);
        }
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* The two ends of a direction: `sender` and `receiver` are the names of the members. An end whose
 * report is missing is null. */
static void put_direction(struct json *json, const struct direction *direction, const char *sender,
                          const char *receiver, const char *losses) {
    struct direction_totals totals = direction_totals_of(direction);
    if (totals.sender_known) {
        json_open(json, sender, '{');
        put_sender(json, direction->transfer, &totals.sender);
        if (direction->is_sending && !transfer_is_udp(direction->transfer))
            put_samples(json, &direction->transfer->samples);
        put_streams(json, direction, true);
        json_close(json, '}');
    } else {
        json_text(json, sender, NULL);
    }
    if (totals.receiver_known) {
        json_open(json, receiver, '{');
        put_receiver(json, direction->transfer, &totals.receiver, totals.lost);
        json_text(json, "host_dropped_source",
                  totals.receiver.dropped_plus_1 ? "SO_MEMINFO" : NULL);
        if (!direction->is_sending)
            json_count(json, "host_udp_buffer_errors", direction->transfer->udp_drops);
        put_streams(json, direction, false);
        json_close(json, '}');
    } else {
        json_text(json, receiver, NULL);
    }
    struct losses parts = losses_of(direction, &totals);
    if (transfer_is_udp(direction->transfer))
        report_losses_json(json, losses, &parts, direction);
    else
        json_text(json, losses, NULL);
}

static int64_t count_or_null(bool is_known, uint64_t count) {
    return is_known ? (int64_t)count : -1;
}

/* Sums of both directions. If one of them is unknown, the sum is null. */
static void put_totals(struct json *json, const struct transfer *transfer) {
    struct direction_totals sum = {.sender_known = true, .receiver_known = true};
    transfer_add_totals(transfer, &sum);
    const struct stream_report *sent = &sum.sender, *got = &sum.receiver;
    bool has_sent = sum.sender_known, has_got = sum.receiver_known;
    json_count(json, "blocks_sent", count_or_null(has_sent, sent->blocks_sent));
    json_count(json, "blocks_received", count_or_null(has_got, got->blocks_received));
    json_count(json, "blocks_lost", sum.lost);
    json_count(json, "blocks_out_of_order", count_or_null(has_got, got->out_of_order));
    json_count(json, "blocks_duplicate", count_or_null(has_got, got->duplicate));
    json_count(json, "blocks_corrupt", count_or_null(has_got, got->corrupt));
    json_count(json, "bytes_sent", count_or_null(has_sent, sent->bytes_sent));
    json_count(json, "bytes_received", count_or_null(has_got, got->bytes_received));
}

/* An option that was not given is null: the system's value applied. */
static void put_socket(struct json *json, const struct socket_plan *plan) {
    json_count(json, "dscp", (int64_t)plan->dscp_plus_1 - 1);
    json_count(json, "ttl", or_null(plan->ttl));
    json_text(json, "df", plan->path_mtu ? path_mtu_names[plan->path_mtu] : NULL);
    json_count(json, "buffer_bytes", or_null(plan->buffer));
    json_bool(json, "no_delay", plan->no_delay);
    json_text(json, "congestion", plan->congestion[0] ? plan->congestion : NULL);
    json_count(json, "mss", or_null(plan->mss));
    json_decimal(json, "fq_rate_bps", plan->fq_rate_bps, plan->fq_rate_bps > 0);
}

/* The plan as it was run, with the defaults filled in. */
static void put_plan(struct json *json, const struct transfer *transfer, const char *host) {
    const struct transfer_plan *plan = &transfer->plan;
    char address[ADDRESS_SIZE];
    endpoint_name(&transfer->peer, address);
    json_open(json, "test", '{');
    json_count(json, "run", (int64_t)plan->run);
    json_text(json, "protocol", protocol_names[plan->protocol]);
    json_text(json, "direction", direction_names[plan->direction]);
    json_count(json, "streams", (int64_t)plan->streams);
    json_open(json, "sizes", '[');
    for (uint32_t i = 0; i < plan->size_count; i++)
        json_count(json, NULL, plan->sizes[i]);
    json_close(json, ']');
    json_count(json, "count", or_null(plan->count));
    json_count(json, "bytes", or_null(plan->bytes));
    json_decimal(json, "seconds", seconds(plan->time_ns), plan->time_ns);
    json_decimal(json, "rate_bps", plan->rate_bps, plan->rate_bps > 0);
    json_decimal(json, "rate_pps", plan->rate_pps, plan->rate_pps > 0);
    json_text(json, "pacing", pacing_names[plan->pacing]);
    json_count(json, "burst", or_null(plan->burst));
    json_count(json, "burst_cap", or_null(plan->burst_cap));
    json_bool(json, "kernel_pacing", plan->kernel_pacing);
    json_bool(json, "write_each", plan->write_each);
    json_bool(json, "stop_receiver", plan->stop_receiver);
    json_text(json, "host", host);
    json_text(json, "address", address);
    json_count(json, "port",
               endpoint_port(transfer->is_initiator ? &transfer->peer : &transfer->own));
    json_decimal(json, "start_offset_s", seconds(plan->start_offset_ns), true);
    json_decimal(json, "stagger_s", seconds(plan->stagger_ns), true);
    json_decimal(json, "idle_s", seconds(plan->idle_ns), true);
    json_text(json, "bind", transfer->local.bind);
    json_text(json, "device", transfer->local.device);
    put_socket(json, &plan->socket);
    put_known_bool(json, "offload",
                   plan->offload == OFFLOAD_IF_SOFTWARE ? -1 : plan->offload == OFFLOAD_ALWAYS);
    json_bool(json, "authenticate", plan->authentic);
    json_bool(json, "check", !plan->unchecked);
    json_text(json, "file", plan->content ? plan->file_name : NULL);
    json_close(json, '}');
}

/* The offset may be negative, which json_count() would write as null. */
static void put_clock(struct json *json, const struct transfer *transfer) {
    const struct clock_offset *clock = &transfer->clock;
    if (!clock->is_known) {
        json_text(json, "clock", NULL);
        return;
    }
    json_open(json, "clock", '{');
    json_text(json, "model", clock->is_same ? "same clock" : "measured offset");
    json_decimal(json, "offset_ns", (double)clock->ns, true);
    json_count(json, "error_ns", (int64_t)clock->error_ns);
    json_close(json, '}');
}

/* The file and both checksums; `same` is null if one of them is unknown. */
static void put_content(struct json *json, const struct transfer *transfer) {
    const struct content *content = &transfer->content;
    if (!transfer->plan.content)
        return;
    bool known = content->own[0] && content->peer[0];
    json_open(json, "file", '{');
    json_text(json, "name", content->name);
    json_count(json, "bytes", (int64_t)content->bytes);
    json_text(json, "checksum", content->own[0] ? content->own : NULL);
    json_text(json, "checksum_there", content->peer[0] ? content->peer : NULL);
    json_text(json, "checksum_kind", "BLAKE2b-256");
    put_known_bool(json, "same", known ? !strcmp(content->own, content->peer) : -1);
    if (!transfer->is_initiator)
        json_bool(json, "written", content->kept);
    json_text(json, "error", content->error ? strerror(content->error) : NULL);
    json_close(json, '}');
}

/* With --reverse, "sender" and "receiver" are those of the reverse direction; with --both, that
 * direction has members of its own. */
void report_json(const struct transfer *transfer, const struct report_style *style) {
    struct json json = {.out = style->out};
    char schema[40];
    bool reverse_only = !transfer->directions[DIRECTION_FORWARD].is_active;
    snprintf(schema, sizeof schema, "wiretale.%s/1", style->role);
    json_open(&json, NULL, '{');
    json_text(&json, "schema", schema);
    json_text(&json, "wiretale", WIRETALE_VERSION);
    json_text(&json, "role", style->role);
    put_plan(&json, transfer, style->host);
    json_bool(&json, "complete", transfer_is_complete(transfer));
    json_text(&json, "stopped_by", transfer->stopped_by);
    json_text(&json, "stopped_at", transfer->stopped_at);
    json_text(&json, "error", transfer->error_text[0] ? transfer->error_text : NULL);
    json_count(&json, "start_ns", (int64_t)transfer->start_realtime_ns);
    put_totals(&json, transfer);
    json_count(&json, "link_bps", or_null(transfer->link_bps));
    json_count(&json, "rtt_us", or_null(transfer->rtt_us));
    put_known_bool(&json, "throughput_exceeds_link", transfer_exceeds_link(transfer, false));
    put_known_bool(&json, "sending_exceeds_link", transfer_exceeds_link(transfer, true));
    put_clock(&json, transfer);
    put_content(&json, transfer);
    put_direction(&json,
                  &transfer->directions[reverse_only ? DIRECTION_REVERSE : DIRECTION_FORWARD],
                  "sender", "receiver", "losses");
    if (transfer->plan.direction == DIRECTION_BOTH)
        put_direction(&json, &transfer->directions[DIRECTION_REVERSE], "reverse_sender",
                      "reverse_receiver", "reverse_losses");
    json_close(&json, '}');
    fputc('\n', style->out);
}
