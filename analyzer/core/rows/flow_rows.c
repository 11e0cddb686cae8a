/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of flows and directions of a conversation that is over. A column that the capture
 * cannot determine stays null: without the other direction, or if headers were cut.
 *
 * Direction 0 is that of the initiator. One flow adds one row to flows, two to directions and one
 * per bin to series, as groups under its number: flows end in any order, and their numbers are
 * provisional (row_sink.h). The functions only read the flow, except that quantiles may sort
 * samples. */
#include "flow/checksum.h"
#include "input/interfaces.h"
#include "rows/rows.h"
#include "tcp/wire_segments.h"
#include "tracker/steps.h"
#include "tracker/time_account.h"
#include "tracker/turns.h"
#include "verdict/recent_verdicts.h"
#include "verdict/verdict.h"

/* Quantiles in thousandths. */
#define MEDIAN 500
#define P99    990

/* Protocol numbers of IANA; one that is not listed becomes WORD_OTHER_IP; its number has a
 * column of its own. */
static const struct {
    uint8_t number;
    uint8_t word; /* enum word */
} protocols[] = {
    {IP_TCP, WORD_TCP},
    {IP_UDP, WORD_UDP},
    {IP_ICMP, WORD_ICMP},
    {IP_ICMPV6, WORD_ICMPV6},
    {IP_SCTP, WORD_SCTP},
    {IP_DCCP, WORD_DCCP},
    {IP_UDP_LITE, WORD_UDPLITE},
    {2, WORD_IGMP},
    {IP_ESP, WORD_ESP},
    {IP_AH, WORD_AH},
    {IP_GRE, WORD_GRE},
    {89, WORD_OSPF},
    {103, WORD_PIM},
    {112, WORD_VRRP},
    {115, WORD_L2TP},
};

static const enum word evidence_words[] = {
    [INITIATOR_FIRST_PACKET] = WORD_FIRST_PACKET,
    [INITIATOR_SYN] = WORD_SYN,
    [INITIATOR_SYN_ACK] = WORD_SYN_ACK,
};

enum word protocol_word(uint8_t number) {
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++)
        if (protocols[i].number == number)
            return (enum word)protocols[i].word;
    return WORD_OTHER_IP;
}

/* Sets the columns of an end. Port 0 is reserved (RFC 6335 section 6), but packets may have it. */
static void put_end(struct row_sink *sink, struct row *row, const struct flow *flow, unsigned end,
                    unsigned address_column, unsigned port_column) {
    uint16_t port = flow->key.port[end];
    row_set(row, address_column, add_address(sink, flow->key.ip_version, flow->key.address[end]));
    row_set_if(row, port_column, flow->ports_known, port);
}

/* A sum of payload would be too small if one packet's length is unknown, so it is null then. */
static void put_sums(struct row *row, const struct flow *flow) {
    const struct direction *a = &flow->directions[0], *b = &flow->directions[1];
    bool payload_known = !a->payload_unknown && !b->payload_unknown;
    row_set(row, flows_packets, (a->packets + b->packets));
    row_set(row, flows_wire_bytes, (a->wire_bytes + b->wire_bytes));
    row_set_if(row, flows_payload_bytes, payload_known, (a->payload_bytes + b->payload_bytes));
    row_set(row, flows_one_way, !a->packets || !b->packets);
    row_set(row, flows_icmp_errors, flow->icmp_errors);
}

static void put_span(struct row *row, const struct flow *flow) {
    row_set_if(row, flows_first_ns, flow->timed, flow->first_ns);
    row_set_if(row, flows_last_ns, flow->timed, flow->last_ns);
    row_set(row, flows_first_capture, flow->first_capture);
    row_set(row, flows_first_frame, flow->first_frame);
    row_set(row, flows_last_frame, flow->last_frame);
}

/* Returns the direction of the client; REQUESTER_UNKNOWN if nothing shows it. */
static unsigned client_of(const struct flow *flow) {
    const struct application *application = flow->application;
    if (application && application->protocol == WORD_TLS && application->tls.hello.frame)
        return application->tls.client;
    if (application && application->protocol == WORD_HTTP && application->http.requested.frame)
        return application->http.client;
    return flow->tcp.client_known ? flow->tcp.requester : REQUESTER_UNKNOWN;
}

static void put_multipath(struct row *row, const struct tcp_connection *connection) {
    unsigned facts[2];
    for (unsigned i = 0; i < 2; i++)
        facts[i] = recovery_of(&connection->streams[i])->multipath;
    row_set_if(row, flows_multipath_join, facts[0] || facts[1],
               facts[0] == MULTIPATH_TOKEN || facts[1] == MULTIPATH_TOKEN);
}

static void put_state(struct row *row, const struct flow *flow, enum word end) {
    bool tcp = flow->key.protocol == IP_TCP;
    row_set(row, flows_initiator_known, flow->initiator_evidence != INITIATOR_FIRST_PACKET);
    row_set(row, flows_initiator_evidence, evidence_words[flow->initiator_evidence]);
    row_set_if(row, flows_state, tcp, tcp ? connection_state(&flow->tcp) : 0);
    row_set(row, flows_end, end);
    if (tcp)
        put_multipath(row, &flow->tcp);
    int64_t handshake = tcp                 ? handshake_rtt(&flow->tcp)
                        : flow->application ? quic_handshake_rtt(flow->application->quic)
                                            : RTT_UNKNOWN;
    row_set_if(row, flows_handshake_rtt_ns, handshake >= 0, handshake);
    enum word exchange = tcp ? exchange_of(&flow->tcp) : WORD_NONE;
    row_set_if(row, flows_exchange, exchange != WORD_NONE, exchange);
    enum word talk = exchange == WORD_TURNS ? (enum word)flow->tcp.turns->server_talk : WORD_NONE;
    row_set_if(row, flows_server_talk, talk != WORD_NONE, talk);
    unsigned client = tcp ? client_of(flow) : REQUESTER_UNKNOWN;
    row_set_if(row, flows_client, client != REQUESTER_UNKNOWN, client);
}

/* The parts are in the order of enum time_part. */
static void put_time(struct row *row, const struct flow *flow) {
    if (!is_time_known(flow) || flow->tcp.time.incomplete)
        return;
    for (unsigned part = 0; part < PARTS; part++)
        row_set(row, flows_time_connecting_ns + part, part_ns(&flow->tcp.time, part));
    row_set(row, flows_reduced_path_ns, reduced_path_ns(&flow->tcp.time));
}

static void put_pause(struct row *row, const struct flow *flow) {
    const struct pause *pause = flow->pause;
    if (!pause)
        return;
    row_set(row, flows_pause_ns, pause->ns);
    row_set(row, flows_pause_until_ns, pause->until_ns);
    row_set(row, flows_pause_direction, pause->direction);
    row_set(row, flows_pause_frame, pause->frame);
    row_set(row, flows_pause_capture, pause->capture);
    row_set_if(row, flows_pause_before_ns, pause->before_ns > 0, pause->before_ns);
}

static void put_clock_jump(struct row *row, const struct flow *flow) {
    if (flow->key.protocol != IP_TCP)
        return;
    struct clock_jump jump = find_clock_jump(flow->tcp.streams);
    if (!jump.ns)
        return;
    row_set(row, flows_clock_jump_ns, jump.ns);
    row_set(row, flows_clock_jump_after_ns, jump.after_ns);
    row_set(row, flows_clock_jump_until_ns, jump.until_ns);
    row_set_if(row, flows_clock_jump_frame, jump.frame > 0, jump.frame);
}

/* Sets the columns of both ends and the paths between them. */
static void put_ends(struct row_sink *sink, struct row *row, const struct flow *flow) {
    char path[PATH_TEXT_MAX];
    row_set(row, flows_flow, flow->number);
    row_set(row, flows_protocol, protocol_word(flow->key.protocol));
    row_set(row, flows_protocol_number, flow->key.protocol);
    row_set(row, flows_ip_version, flow->key.ip_version);
    put_end(sink, row, flow, flow_end(flow, 0), flows_source, flows_source_port);
    put_end(sink, row, flow, flow_end(flow, 1), flows_destination, flows_destination_port);
    encapsulation_table_text(sink->encapsulations, path_of(flow, 0), path);
    row_set_text(sink, row, flows_path, path);
    if (flow->has_half) {
        encapsulation_table_text(sink->encapsulations, path_of(flow, 1), path);
        row_set_text(sink, row, flows_path_back, *path ? path : "none");
    }
}

void flow_ends_add(struct row_sink *sink, const struct flow *flow) {
    struct row row;
    row_clear(&row);
    put_ends(sink, &row, flow);
    if (begin_flow_group(sink, TABLE_flows, flow))
        add_row(sink, TABLE_flows, &row);
}

static void put_process(struct row_sink *sink, struct row *row, const struct flow *flow) {
    const struct process *process = flow->processes_differ ? NULL : flow->process;
    if (!process)
        return;
    row_set(row, flows_process_id, process->id);
    row_set_text(sink, row, flows_process_name, *process->name ? process->name : NULL);
}

static void add_flow_row(struct row_sink *sink, struct flow *flow, enum word end,
                         enum word application) {
    struct row row;
    row_clear(&row);
    put_ends(sink, &row, flow);
    put_state(&row, flow, end);
    put_span(&row, flow);
    put_sums(&row, flow);
    put_time(&row, flow);
    put_pause(&row, flow);
    put_clock_jump(&row, flow);
    row_set_if(&row, flows_application, application != WORD_NONE, application);
    if (flow->application) {
        row_set_text(sink, &row, flows_server_name, flow->application->server_name);
        row_set_if(&row, flows_proxy_header, flow->application->proxy_header, 1);
    }
    put_process(sink, &row, flow);
    add_row(sink, TABLE_flows, &row);
}

static void put_counts(struct row *row, const struct flow *flow, unsigned number) {
    const struct direction *direction = &flow->directions[number];
    const struct fragment_counts *fragments = fragments_of(flow, number);
    bool payload_known = !direction->payload_unknown;
    row_set(row, directions_packets, direction->packets);
    row_set(row, directions_wire_bytes, direction->wire_bytes);
    row_set(row, directions_ip_bytes, direction->ip_bytes);
    row_set_if(row, directions_payload_bytes, payload_known, direction->payload_bytes);
    row_set_if(row, directions_data_packets, payload_known, direction->data_packets);
    row_set_if(row, directions_segment_max, payload_known,
               max64(direction->segment_max, fragments->payload_max));
    row_set(row, directions_fragments, fragments->fragments);
    row_set(row, directions_fragmented_datagrams, fragments->fragmented_datagrams);
    row_set(row, directions_incomplete_datagrams, fragments->incomplete_datagrams);
    row_set(row, directions_fragment_overhead_bytes, fragments->overhead_bytes);
    row_set(row, directions_ecn_ce, direction->ecn_ce);
}

/* Rules V14. Wrong checksums that show no damage count as left to an adapter. */
static void put_checksums(struct row *row, const struct flow *flow, unsigned number) {
    const struct checksum_counts *counts = checksum_counts_of(flow, number);
    int64_t damaged = damaged_packets(flow, number);
    row_set_if(row, directions_checksum_errors, damaged >= 0, damaged);
    row_set(row, directions_checksums_verified,
            flow->directions[number].right_checksums + (damaged < 0 ? 0 : counts->wrong));
    row_set(row, directions_checksums_offloaded,
            counts->offloaded + (damaged < 0 ? counts->wrong : 0));
    row_set_if(row, directions_checksums_ignored,
               flow->key.protocol == IP_TCP && flow->directions[!number].packets &&
                   !counts->delivered,
               counts->wrong);
}

static void put_header_fields(struct row *row, const struct direction *direction) {
    bool seen = direction->packets > 0;
    row_set_if(row, directions_ttl_min, seen, direction->ttl_min);
    row_set_if(row, directions_ttl_max, seen, direction->ttl_max);
    row_set_if(row, directions_dscp, seen, direction->dscp);
    row_set_if(row, directions_last_dscp, seen, direction->last_dscp);
}

/* Returns the payload without retransmissions: for TCP each byte of the stream once, for others the
 * payload except that of datagrams that were damaged, or whose fragments did not all arrive. */
static uint64_t useful_bytes(const struct flow *flow, unsigned number) {
    uint64_t payload = flow->directions[number].payload_bytes;
    uint64_t incomplete = fragments_of(flow, number)->incomplete_bytes;
    if (damaged_packets(flow, number) > 0)
        incomplete += checksum_counts_of(flow, number)->wrong_bytes;
    if (flow->key.protocol == IP_TCP)
        return flow->tcp.streams[number].unique_bytes;
    return payload > incomplete ? payload - incomplete : 0;
}

/* Rates are averages from the first to the last packet of the direction, null if these have the
 * same time. Duplicates that the capture made were never on the link twice, so throughput excludes
 * them. */
static void put_rates(struct row *row, const struct flow *flow, unsigned number) {
    const struct direction *direction = &flow->directions[number];
    bool tcp = flow->key.protocol == IP_TCP;
    int64_t span = direction->timed ? direction->last_ns - direction->first_ns : 0;
    row_set_if(row, directions_first_ns, direction->timed, direction->first_ns);
    row_set_if(row, directions_last_ns, direction->timed, direction->last_ns);
    row_set_if(row, directions_idle_ns_max, direction->timed && direction->packets > 1,
               direction->idle_ns_max);
    uint64_t copied = tcp ? recovery_of(&flow->tcp.streams[number])->mirror_ip_bytes : 0;
    if (span <= 0)
        return;
    row_set(row, directions_throughput_bps, rate_bps(direction->ip_bytes - copied, span));
    row_set_if(row, directions_goodput_bps, !direction->payload_unknown,
               rate_bps(useful_bytes(flow, number), span));
}

/* Samples taken before the tick of the capture's clock was known may be shorter than it. */
static void put_round_trip(struct row *row, unsigned column, const struct tcp_stream *stream,
                           int64_t rtt_ns) {
    row_set(row, column, max64(rtt_ns, stream->clock_step_ns));
}

/* A sample needs packets of both directions and their times. */
static void put_round_trips(struct row *row, const struct flow *flow, struct tcp_stream *stream,
                            struct pool *pool) {
    row_set_if(row, directions_rtt_samples, flow->directions[0].timed && flow->directions[1].timed,
               stream->rtt.count);
    if (!stream->rtt.count)
        return;
    put_round_trip(row, directions_rtt_ns_min, stream, stream->rtt.least);
    put_round_trip(row, directions_rtt_ns_median, stream,
                   histogram_quantile(&stream->rtt, MEDIAN, pool));
    put_round_trip(row, directions_rtt_ns_p99, stream, histogram_quantile(&stream->rtt, P99, pool));
    put_round_trip(row, directions_rtt_ns_max, stream, stream->rtt.greatest);
}

/* Bytes of the stream; they would be wrong if a payload's length is unknown. */
static void put_bytes(struct row *row, const struct tcp_stream *stream,
                      const struct fragment_counts *fragments) {
    const struct tcp_recovery_state *recovery = recovery_of(stream);
    row_set(row, directions_unique_bytes, stream->unique_bytes);
    row_set(row, directions_retransmitted_bytes, recovery->retransmitted_bytes);
    row_set(row, directions_duplicate_bytes, recovery->duplicate_bytes + fragments->copied_bytes);
    row_set(row, directions_probe_bytes, recovery->probe_bytes);
    row_set(row, directions_gap_bytes, range_set_bytes(&stream->gaps));
    row_set(row, directions_unknown_bytes, recovery->unknown_bytes);
    int64_t flight = stream_flight(stream);
    bool fin = stream->fin_seen && stream->snd_una < stream->fin_end;
    row_set_if(row, directions_unacked_bytes, flight >= 0, flight > fin ? flight - fin : 0);
}

/* Rule V7.8: retransmissions that are neither lost at a known place nor spurious. */
static uint64_t unplaced(const struct tcp_recovery_state *recovery) {
    uint64_t placed = recovery->lost_upstream + recovery->lost_downstream +
                      recovery->spurious_count + recovery->checksum_retransmissions;
    return recovery->retransmissions > placed ? recovery->retransmissions - placed : 0;
}

/* Verdicts from the packets of the direction itself. */
static void put_verdicts(struct row *row, const struct tcp_recovery_state *recovery) {
    row_set(row, directions_retransmissions, recovery->retransmissions);
    row_set(row, directions_out_of_order, recovery->out_of_order);
    row_set(row, directions_ambiguous, recovery->ambiguous);
    row_set(row, directions_network_duplicates, recovery->network_duplicates);
    row_set(row, directions_mirror_duplicates, recovery->mirror_duplicates);
    row_set(row, directions_unknown_duplicates, recovery->unknown_duplicates);
    row_set(row, directions_lost_upstream, recovery->lost_upstream);
    row_set(row, directions_syn_fin_retransmissions, recovery->syn_fin.retransmissions);
    row_set(row, directions_syn_fin_lost_upstream, recovery->syn_fin.lost_upstream);
    row_set(row, directions_unplaced_retransmissions, unplaced(recovery));
    row_set(row, directions_checksum_retransmissions, recovery->checksum_retransmissions);
    row_set(row, directions_gaps, recovery->gaps_opened);
    row_set(row, directions_gaps_filled, recovery->gaps_filled);
    row_set(row, directions_suspected_timeouts, recovery->suspected_rto_count);
}

/* Columns that count segments on the wire, and those of the captured packets. */
static const struct {
    unsigned column, captured;
    enum wire_counter counter;
} wire_columns[] = {
    {directions_wire_segments, directions_data_packets, WIRE_DATA},
    {directions_wire_retransmissions, directions_retransmissions, WIRE_RETRANSMITTED},
    {directions_wire_spurious, directions_spurious_retransmissions, WIRE_SPURIOUS},
    {directions_wire_lost_upstream, directions_lost_upstream, WIRE_LOST_UPSTREAM},
    {directions_wire_lost_downstream, directions_lost_downstream, WIRE_LOST_DOWNSTREAM},
};

/* The same difference as unplaced(). Super-segments from before the path's MSS was known count by
 * their sum, which may be less than the sum of those that were judged since, one by one: each
 * count is the least possible, so all are at least as many as their parts. */
static void put_wire_unplaced(struct row *row, const struct tcp_stream *stream) {
    const struct tcp_recovery_state *recovery = recovery_of(stream);
    int64_t all = wire_count(stream, WIRE_RETRANSMITTED, recovery->retransmissions);
    int64_t known = wire_count(stream, WIRE_SPURIOUS, recovery->spurious_count) +
                    wire_count(stream, WIRE_LOST_UPSTREAM, recovery->lost_upstream) +
                    wire_count(stream, WIRE_LOST_DOWNSTREAM, recovery->lost_downstream) +
                    (int64_t)recovery->checksum_retransmissions;
    int64_t packets = row_known(row, directions_unplaced_retransmissions)
                          ? row->value[directions_unplaced_retransmissions]
                          : 0;
    int64_t open = max64(all - known, packets);
    if (all >= 0 && row_known(row, directions_wire_retransmissions))
        row_set(row, directions_wire_retransmissions, known + open);
    row_set_if(row, directions_wire_unplaced, all >= 0, open);
}

/* The largest payload that the other end acknowledged, of a segment on the wire: what it has of a
 * super-segment is its first segment. It is known if no larger one may have passed unseen, or if
 * there is none. */
static void put_acknowledged(struct row *row, const struct tcp_stream *stream, uint32_t mss) {
    const struct unacked_segments *ring = &stream->unacked;
    int64_t most = min64(stream->segment_max, mss), acked = min64(ring->acked_max, mss);
    bool complete = !ring->forgot && !recovery_of(stream)->unseen_bytes;
    row_set_if(row, directions_acked_segment_max,
               stream->snd_una_known && mss && (complete || acked >= most), acked);
    const struct scoreboard *board = &recovery_of(stream)->scoreboard;
    int64_t sacked = 0;
    for (uint32_t i = 0; i < board->count; i++)
        sacked += board->ranges[i].end - board->ranges[i].start;
    row_set_if(row, directions_sacked_bytes, row_known(row, directions_unacked_bytes), sacked);
    bool outstanding =
        row_known(row, directions_unacked_bytes) && row->value[directions_unacked_bytes];
    const struct unacked_segment *first = unacked_find(ring, stream->snd_una);
    if (outstanding && first && row_known(row, directions_last_ns))
        row_set(row, directions_unacked_first_ns, first->time_ns);
}

/* Counts on the wire, null where those of the captured packets are; the row must hold these. */
static void put_wire(struct row *row, const struct tcp_stream *stream) {
    const struct tcp_recovery_state *recovery = recovery_of(stream);
    bool known = row_known(row, directions_data_packets);
    uint64_t packets = known ? (uint64_t)row->value[directions_data_packets] : 0;
    uint64_t payload = known ? (uint64_t)row->value[directions_payload_bytes] : 0;
    uint32_t mss = wire_mss(stream, packets, payload);
    row_set_if(row, directions_wire_mss, mss, mss);
    put_acknowledged(row, stream, mss);
    row_set_if(row, directions_lost_upstream_bytes, row_known(row, directions_lost_upstream),
               recovery->lost_upstream_bytes);
    row_set_if(row, directions_lost_downstream_bytes, row_known(row, directions_lost_downstream),
               recovery->lost_downstream_bytes);
    for (size_t i = 0; i < sizeof wire_columns / sizeof *wire_columns; i++) {
        unsigned captured = wire_columns[i].captured;
        if (!row_known(row, captured))
            continue;
        uint64_t count = (uint64_t)row->value[captured];
        if (captured == directions_data_packets)
            count -= recovery->duplicate_data; /* counted there too */
        int64_t segments = wire_count(stream, wire_columns[i].counter, count);
        row_set_if(row, wire_columns[i].column, segments >= 0, segments);
    }
    put_wire_unplaced(row, stream);
}

/* Verdicts that need the ACKs of the other direction; if their options were cut, those of
 * retransmissions without a place may be spurious (rule V7.6). */
static void put_acked_verdicts(struct row *row, const struct tcp_recovery_state *recovery,
                               bool cut) {
    bool proven = !cut || !unplaced(recovery);
    row_set(row, directions_fast_retransmissions, recovery->fast_count);
    row_set(row, directions_timeout_retransmissions, recovery->rto_retransmissions);
    row_set(row, directions_timeouts, recovery->rto_count);
    row_set(row, directions_probe_retransmissions, recovery->tlp_count);
    row_set_if(row, directions_spurious_retransmissions, proven, recovery->spurious_count);
    row_set_if(row, directions_lost_downstream, proven, recovery->lost_downstream);
    row_set_if(row, directions_syn_fin_spurious, proven, recovery->syn_fin.spurious);
    row_set_if(row, directions_syn_fin_lost_downstream, proven, recovery->syn_fin.lost_downstream);
    row_set(row, directions_capture_reordered, recovery->capture_reordered);
    row_set(row, directions_window_probes, recovery->window_probes);
    row_set(row, directions_keep_alives, recovery->keep_alives);
}

/* Windows that hold the other end back. */
static void put_low_window(struct row *row, const struct flow *flow,
                           const struct tcp_stream *stream) {
    const struct tcp_recovery_state *recovery = recovery_of(stream);
    int64_t since_ns = stream->low_window ? recovery->low_since_ns : recovery->zero_since_ns;
    bool shut = stream->low_window || stream->zero_window;
    row_set_if(row, directions_low_window_ns, flow->timed && stream->window_range_known,
               low_window_ns(stream, flow->last_ns));
    row_set_if(row, directions_window_shut_ns, flow->timed && shut && !stream->resets,
               max64(flow->last_ns - since_ns, 0));
}

/* Rules V7.12 and V9.3. */
static void put_missing(struct row *row, const struct flow *flow, const struct tcp_stream *stream) {
    struct missing_data missing = find_missing_data(stream);
    row_set(row, directions_unseen_bytes,
            (int64_t)recovery_of(stream)->unseen_bytes + missing.unseen_bytes);
    bool reports =
        !is_without_sack(&flow->tcp, stream) && !peer_of(&flow->tcp, stream)->reports_truncated;
    row_set_if(row, directions_missing_bytes, reports, missing.bytes);
    row_set_if(row, directions_missing_ns, missing.bytes && flow->timed,
               flow->last_ns - missing.since_ns);
}

/* An option counts as absent only if all options could be read. If the SYN was not captured, `isn`
 * is one below the first byte seen, and the initial sequence number is that of this byte. Extremes
 * are null if only the SYN's window is known: it is never scaled (RFC 7323 section 2.2). */
static void put_handshake(struct row *row, const struct tcp_stream *stream) {
    uint32_t initial = stream->isn + !stream->syn_seen;
    row_set_if(row, directions_mss, stream->mss, stream->mss);
    row_set_if(row, directions_window_scale, stream->scale_offered, stream->window_scale);
    row_set_if(row, directions_syn_nops, stream->syn_seen && stream->mss && !stream->syn_truncated,
               stream->syn_nops);
    row_set_if(row, directions_sack_permitted,
               stream->syn_seen && (stream->sack_permitted || !stream->syn_truncated),
               stream->sack_permitted);
    row_set_if(row, directions_timestamps,
               stream->base_known && (stream->timestamps || !stream->options_truncated),
               stream->timestamps);
    row_set_if(row, directions_initial_sequence, stream->base_known, initial);
    row_set_if(row, directions_first_tsval, stream->timestamps, stream->first_tsval);
    const struct tcp_recovery_state *end = recovery_of(stream);
    if (end->multipath)
        row_set(row, directions_multipath_token, end->multipath_token);
    bool windows_known = stream->window_range_known && stream->window >= 0; /* not only the SYN's */
    row_set_if(row, directions_window_min, windows_known, stream->window_min);
    row_set_if(row, directions_window_max, windows_known, stream->window_max);
}

/* Counts of control segments, and of options that need every option to be readable. */
static void put_segments(struct row *row, const struct tcp_stream *stream) {
    const struct tcp_recovery_state *recovery = recovery_of(stream);
    row_set_if(row, directions_sack_acks, !stream->options_truncated, recovery->sack_acks);
    row_set_if(row, directions_sack_shift_spread, recovery->sacks_outside,
               recovery->sack_shift_max - recovery->sack_shift_min);
    row_set(row, directions_zero_windows, recovery->zero_windows);
    row_set(row, directions_window_openings, recovery->window_openings);
    row_set(row, directions_probed_openings, recovery->probed_openings);
    row_set_if(row, directions_unusual_options, !stream->options_truncated,
               recovery->unusual_options);
    row_set_if(row, directions_signed_segments, !stream->options_truncated,
               recovery->signed_segments);
    row_set(row, directions_syns, stream->syns);
    row_set(row, directions_fins, stream->fins);
    row_set(row, directions_resets, stream->resets);
    row_set(row, directions_acks_out_of_range, recovery->acks_out_of_range);
    row_set(row, directions_ecn_echo, recovery->ecn_echo);
    row_set(row, directions_ecn_cwr, recovery->ecn_cwr);
}

/* Sets the columns of TCP, grouped by their sources: the handshake, complete headers, packets of
 * the other direction. If the direction itself was not captured, its gaps are known only from the
 * SACK blocks of its receiver. */
static void put_tcp(struct row *row, struct flow *flow, unsigned number, struct pool *pool) {
    struct direction *direction = &flow->directions[number];
    struct tcp_stream *stream = &flow->tcp.streams[number];
    const struct tcp_recovery_state *recovery = recovery_of(stream);
    bool answered = flow->directions[!number].packets > 0;
    put_handshake(row, stream);
    put_round_trips(row, flow, stream, pool);
    row_set_if(row, directions_sack_gaps, !stream->counts_missing && !direction->packets,
               recovery->sack_gaps);
    if (stream->counts_missing || direction->payload_unknown) /* some headers could not be read */
        return;
    put_segments(row, stream);
    row_set_if(row, directions_zero_window_ns, direction->timed,
               zero_window_ns(stream, direction->last_ns));
    put_low_window(row, flow, stream);
    row_set_if(row, directions_duplicate_acks, answered, recovery->duplicate_acks);
    row_set_if(row, directions_flight_max, answered, stream->flight_max);
    row_set_if(row, directions_window_full, flow->tcp.streams[!number].window >= 0,
               recovery->window_full);
    put_bytes(row, stream, fragments_of(flow, number));
    put_verdicts(row, recovery);
    if (answered) {
        const struct tcp_stream *data = &flow->tcp.streams[!number]; /* that its ACKs are for */
        row_set_if(row, directions_acks_lost_downstream, stream->timestamps && data->timestamps,
                   recovery_of(data)->acks_lost);
        put_acked_verdicts(row, recovery, flow->tcp.streams[!number].reports_truncated);
        row_set_if(row, directions_sacks_outside, !stream->options_truncated,
                   recovery->sacks_outside);
        put_missing(row, flow, stream);
        put_sender_times(row, &flow->tcp, stream);
    }
    put_wire(row, stream);
}

/* `row` already holds the columns of numbered units (sequence_finish()). */
static void add_direction_row(struct row_writer *writer, struct flow *flow, unsigned number,
                              struct row *row) {
    struct row_sink *sink = writer->sink;
    const struct direction *direction = &flow->directions[number];
    bool tcp = flow->key.protocol == IP_TCP;
    row_set(row, directions_flow, flow->number);
    row_set(row, directions_direction, number);
    put_end(sink, row, flow, flow_end(flow, number), directions_source, directions_source_port);
    put_end(sink, row, flow, flow_end(flow, !number), directions_destination,
            directions_destination_port);
    put_counts(row, flow, number);
    put_header_fields(row, direction);
    put_checksums(row, flow, number);
    put_rates(row, flow, number);
    if (tcp)
        put_tcp(row, flow, number, writer->pool);
    add_row(sink, TABLE_directions, row);
}

/* Returns false without memory. The group of series stays empty if no packet had a time. */
static bool begin_rows(struct row_sink *sink, const struct flow *flow) {
    return begin_flow_group(sink, TABLE_flows, flow) &&
           begin_flow_group(sink, TABLE_directions, flow) &&
           begin_flow_group(sink, TABLE_series, flow);
}

void flow_rows_add(struct row_writer *writer, struct flow *flow, const struct flow_end *end,
                   enum word application, struct row directions[static 2]) {
    struct row_sink *sink = writer->sink;
    if (!begin_rows(sink, flow))
        return;
    add_flow_row(sink, flow, end->end, application);
    for (unsigned number = 0; number < 2; number++) {
        add_direction_row(writer, flow, number, &directions[number]);
        series_rows_add(sink, flow, number);
    }
    bool handshake = flow->key.protocol == IP_TCP && handshake_rtt(&flow->tcp) >= 0;
    judged_count(&sink->judged, flow, application, directions, handshake);
    exchange_rows_add(sink, flow, end);
    time_rows_add(sink, flow);
}
