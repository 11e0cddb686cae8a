/* SPDX-License-Identifier: Apache-2.0 */
/* Sums the traffic that was not judged for loss, round trips and limits, by reason.
 *
 * A flow is counted once its rows are complete, because their nulls show what could not be judged:
 * so the sums agree with the tables and need no pass over them. Callers must hold the lock of the
 * rows. The reasons are exclusive for each measure (JUDGED_REASONS in row_sink.h). */
#include "rows/rows.h"

#define PORT_DNS   53
#define PORT_MDNS  5353
#define PORT_LLMNR 5355
#define PORT_QUIC  443

static void count_flow(struct traffic_sum *sum, const struct flow *flow) {
    for (unsigned i = 0; i < 2; i++) {
        sum->packets += flow->directions[i].packets;
        sum->wire_bytes += flow->directions[i].wire_bytes;
    }
}

static bool has_port(const struct flow *flow, uint16_t port) {
    return flow->ports_known && (flow->key.port[0] == port || flow->key.port[1] == port);
}

static bool either_known(const struct row directions[static 2], unsigned column) {
    return row_known(&directions[0], column) || row_known(&directions[1], column);
}

static void judge_tcp(struct judged_sums *sums, const struct flow *flow,
                      const struct row directions[static 2], bool has_handshake_rtt) {
    struct traffic_sum *unjudged = sums->unjudged;
    bool one_way = !flow->directions[0].packets || !flow->directions[1].packets;
    if (one_way || !either_known(directions, directions_lost_downstream)) {
        count_flow(&unjudged[one_way ? UNJUDGED_ONE_WAY : UNJUDGED_HEADERS_CUT], flow);
        return;
    }
    if (!flow->timed) {
        count_flow(&unjudged[UNJUDGED_NO_TIMES], flow);
        return;
    }
    if (!has_handshake_rtt && !either_known(directions, directions_rtt_ns_min))
        count_flow(&unjudged[UNJUDGED_NO_ROUND_TRIP], flow);
    if (!either_known(directions, directions_limit_network_ns))
        count_flow(&unjudged[UNJUDGED_SHORT], flow);
}

/* A direction with numbers is judged for loss; it has no acknowledgments. */
static void judge_numbered(struct judged_sums *sums, const struct flow *flow,
                           const struct row directions[static 2]) {
    for (unsigned i = 0; i < 2; i++) {
        bool numbered = row_known(&directions[i], directions_blocks);
        struct traffic_sum *sum =
            &sums->unjudged[numbered ? UNJUDGED_NO_ACKNOWLEDGMENTS : UNJUDGED_UDP];
        sum->packets += flow->directions[i].packets;
        sum->wire_bytes += flow->directions[i].wire_bytes;
    }
}

/* The content decides; if nothing was recognised, the ports do. */
static enum judged_reason datagram_reason(const struct flow *flow, enum word application) {
    if (application == WORD_DNS || application == WORD_QUIC)
        return application == WORD_DNS ? UNJUDGED_DNS : UNJUDGED_QUIC;
    if (has_port(flow, PORT_DNS) || has_port(flow, PORT_MDNS) || has_port(flow, PORT_LLMNR))
        return UNJUDGED_DNS;
    return has_port(flow, PORT_QUIC) ? UNJUDGED_QUIC : UNJUDGED_UDP;
}

void judged_count(struct judged_sums *sums, const struct flow *flow, enum word application,
                  const struct row directions[static 2], bool has_handshake_rtt) {
    count_flow(&sums->whole, flow);
    if (flow->key.protocol == IP_TCP)
        judge_tcp(sums, flow, directions, has_handshake_rtt);
    else if (either_known(directions, directions_blocks))
        judge_numbered(sums, flow, directions);
    else if (flow->key.protocol == IP_UDP || flow->key.protocol == IP_UDP_LITE)
        count_flow(&sums->unjudged[datagram_reason(flow, application)], flow);
    else
        count_flow(&sums->protocols[flow->key.protocol], flow);
}
