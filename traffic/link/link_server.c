/* SPDX-License-Identifier: Apache-2.0 */
#include "link_server.h"

#include <math.h>

#include "loss_model.h"

int64_t link_server_start(const struct link_server *server, int64_t arrival_ns) {
    int64_t start = arrival_ns > server->free_ns ? arrival_ns : server->free_ns;
    const struct time_span *stall;
    while ((stall = span_list_find(&server->spec->stalls, start - server->origin_ns)))
        start = server->origin_ns + stall->end_ns;
    return start;
}

static int64_t send_by_rate(struct link_server *server, int64_t start_ns, uint32_t bytes) {
    double fraction = start_ns == server->free_ns ? server->fraction_ns : 0;
    double took = bytes * 8e9 / server->spec->rate_bps + fraction, whole = floor(took);
    server->fraction_ns = took - whole;
    return start_ns + (int64_t)whole;
}

/* What an opportunity leaves is for packets that are there at its time; later ones wait for the
 * next. */
static int64_t send_by_trace(struct link_server *server, int64_t start_ns, uint32_t bytes) {
    const struct rate_trace *trace = &server->trace;
    int64_t since = start_ns - server->origin_ns;
    if (!server->left || rate_trace_time_ns(trace, server->opportunity) < since) {
        uint64_t next = rate_trace_find(trace, since);
        bool used_up =
            next <= server->opportunity && !server->left && server->free_ns > server->origin_ns;
        server->opportunity = used_up ? server->opportunity + 1 : next;
        server->left = OPPORTUNITY_BYTES;
    }
    for (; bytes > server->left; server->left = OPPORTUNITY_BYTES) {
        bytes -= server->left;
        server->opportunity++;
    }
    server->left -= bytes;
    int64_t end = server->origin_ns + rate_trace_time_ns(trace, server->opportunity);
    return end > start_ns ? end : start_ns;
}

int64_t link_server_send(struct link_server *server, int64_t start_ns, uint32_t bytes) {
    int64_t end = start_ns;
    if (server->trace.count)
        end = send_by_trace(server, start_ns, bytes);
    else if (server->spec->rate_bps > 0)
        end = send_by_rate(server, start_ns, bytes);
    server->free_ns = end;
    server->bytes = bytes;
    return end;
}
