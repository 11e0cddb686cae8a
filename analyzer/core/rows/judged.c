/* SPDX-License-Identifier: Apache-2.0 */
/* Sums the traffic that was not judged for loss, round trips and limits, by reason.
 *
 * A flow is counted once its rows are complete, because their nulls show what could not be judged:
 * so the sums agree with the tables and need no pass over them. Callers must hold the lock of the
 * rows. The reasons are exclusive for each measure (JUDGED_REASONS in row_sink.h). Datagrams of one
 * application may be judged for some measures and not for others: judged_for() has them as bits. */
#include "application/application.h"
#include "rows/rows.h"

#define PORT_QUIC 443

static void count_direction(struct traffic_sum *sum, const struct direction *direction) {
    sum->packets += direction->packets;
    sum->wire_bytes += direction->wire_bytes;
}

static void count_flow(struct traffic_sum *sum, const struct flow *flow) {
    for (unsigned i = 0; i < 2; i++)
        count_direction(sum, &flow->directions[i]);
}

/* Returns the sum of a reason for its measures without those that were judged; the sum for no
 * measure is not shown. */
static struct traffic_sum *sum_of(struct judged_sums *sums, enum judged_reason reason,
                                  unsigned judged) {
    static const unsigned char most[] = {
#define X(name, text, measures) measures,
        JUDGED_REASONS(X)
#undef X
    };
    return &sums->unjudged[reason][most[reason] & ~judged];
}

static void leave_out(struct judged_sums *sums, enum judged_reason reason,
                      const struct flow *flow) {
    count_flow(sum_of(sums, reason, 0), flow);
}

static bool has_port(const struct flow *flow, uint16_t port) {
    return flow->ports_known && (flow->key.port[0] == port || flow->key.port[1] == port);
}

static bool either_known(const struct row directions[static 2], unsigned column) {
    return row_known(&directions[0], column) || row_known(&directions[1], column);
}

/* Whether half of the time of a direction or more is known. */
static bool is_limit_known(const struct row *direction) {
    static const unsigned columns[] = {directions_time_pause_ns,  directions_time_delayed_ack_ns,
                                       directions_time_window_ns, directions_time_send_buffer_ns,
                                       directions_time_loss_ns,   directions_time_network_ns};
    int64_t known_ns = 0;
    if (!row_known(direction, directions_time_unknown_ns))
        return false;
    for (unsigned i = 0; i < sizeof columns / sizeof *columns; i++)
        known_ns = add_ns(known_ns, direction->value[columns[i]]);
    return known_ns >= direction->value[directions_time_unknown_ns];
}

static void judge_tcp(struct judged_sums *sums, const struct flow *flow,
                      const struct row directions[static 2], bool has_handshake_rtt) {
    bool one_way = !flow->directions[0].packets || !flow->directions[1].packets;
    if (one_way || !either_known(directions, directions_lost_downstream)) {
        leave_out(sums, one_way ? UNJUDGED_ONE_WAY : UNJUDGED_HEADERS_CUT, flow);
        return;
    }
    if (!flow->timed) {
        leave_out(sums, UNJUDGED_NO_TIMES, flow);
        return;
    }
    if (!has_handshake_rtt && !either_known(directions, directions_rtt_ns_min))
        leave_out(sums, UNJUDGED_NO_ROUND_TRIP, flow);
    if (!is_limit_known(&directions[0]) && !is_limit_known(&directions[1]))
        leave_out(sums, UNJUDGED_SHORT, flow);
}

/* A direction with numbers is judged for loss; it has no acknowledgments. */
static void judge_numbered(struct judged_sums *sums, const struct flow *flow,
                           const struct row directions[static 2]) {
    for (unsigned i = 0; i < 2; i++) {
        bool numbered = row_known(&directions[i], directions_blocks);
        enum judged_reason reason = numbered ? UNJUDGED_NO_ACKNOWLEDGMENTS : UNJUDGED_UDP;
        count_direction(sum_of(sums, reason, 0), &flow->directions[i]);
    }
}

/* The content decides; if nothing was recognized, the ports do. */
static enum judged_reason datagram_reason(const struct flow *flow, enum word application) {
    if (is_dns(application) || application == WORD_QUIC)
        return application == WORD_QUIC ? UNJUDGED_QUIC : UNJUDGED_DNS;
    if (has_port(flow, PORT_DNS) || has_port(flow, PORT_MDNS) || has_port(flow, PORT_LLMNR))
        return UNJUDGED_DNS;
    return has_port(flow, PORT_QUIC) ? UNJUDGED_QUIC : UNJUDGED_UDP;
}

/* Returns the measures for which datagrams were judged. An answer of DNS is a
 * round trip. */
static unsigned judged_for(const struct flow *flow) {
    const struct quic *quic = flow->application ? flow->application->quic : NULL;
    if (flow->application && is_dns(flow->application->protocol))
        return flow->application->dns.answered ? MEASURE_RTT : 0;
    return quic_has_round_trip(quic) ? MEASURE_RTT : 0;
}

static void judge_datagrams(struct judged_sums *sums, const struct flow *flow,
                            enum word application) {
    enum judged_reason reason = datagram_reason(flow, application);
    for (unsigned i = 0; i < 2; i++)
        count_direction(sum_of(sums, reason, judged_for(flow)), &flow->directions[i]);
}

/* Echo requests show the loss and the round trip of a path. Without an answer, one direction alone
 * may have been captured. */
static void judge_echo(struct judged_sums *sums, const struct flow *flow) {
    bool one_way = !flow->directions[0].packets || !flow->directions[1].packets;
    if (one_way)
        leave_out(sums, UNJUDGED_ONE_WAY, flow);
    else
        count_flow(sum_of(sums, UNJUDGED_ECHO, flow->echo.answered ? MEASURE_RTT : 0), flow);
}

void judged_count(struct judged_sums *sums, const struct flow *flow, enum word application,
                  const struct row directions[static 2], bool has_handshake_rtt) {
    count_flow(&sums->whole, flow);
    if (flow->key.protocol == IP_TCP)
        judge_tcp(sums, flow, directions, has_handshake_rtt);
    else if (either_known(directions, directions_blocks))
        judge_numbered(sums, flow, directions);
    else if (flow->key.protocol == IP_UDP || flow->key.protocol == IP_UDP_LITE)
        judge_datagrams(sums, flow, application);
    else if (is_icmp(flow->key.protocol) && flow->echo.asked)
        judge_echo(sums, flow);
    else
        count_flow(&sums->protocols[flow->key.protocol], flow);
}
