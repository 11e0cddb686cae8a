/* SPDX-License-Identifier: Apache-2.0 */
/* When flows end, and the sweep of a shard that ends those which were silent for too long. */
#include "update/update.h"

#define NS_A_SECOND INT64_C(1000000000)
/* How long a flow may be silent before it is over. An open connection must survive the keep-
 * alive interval of two hours (RFC 9293 section 3.8.4), for which NATs keep it 2 h 4 min (RFC 5382
 * REQ-5); for UDP 5 minutes are recommended to them (RFC 4787 REQ-5). */
#define TCP_OPEN_NS  (7500 * NS_A_SECOND)
#define TCP_BEGUN_NS (120 * NS_A_SECOND)
#define OTHERS_NS    (300 * NS_A_SECOND)

/* Reads the state of TCP: a connection that was reset or has a FIN of both ends is over soon; one
 * of which a single direction was captured, without a SYN, cannot be known to be open. */
int64_t flow_due_ns(const struct flow *flow) {
    const struct tcp_stream *from = flow->tcp.streams, *to = &flow->tcp.streams[1];
    if (flow->key.protocol != IP_TCP)
        return flow->last_ns + OTHERS_NS;
    if (flow->tcp.reset || (from->fin_seen && to->fin_seen))
        return flow->last_ns + TCP_ENDED_NS;
    if (!from->base_known || !to->base_known)
        return flow->last_ns + (from->syn_seen || to->syn_seen ? TCP_BEGUN_NS : OTHERS_NS);
    return flow->last_ns + TCP_OPEN_NS;
}

void worker_enter(struct worker *worker, struct shard *shard) {
    worker->found = NULL; /* another worker may have ended it */
    worker->shard = shard;
    worker->rows.pool = &worker->ending;
    if (!worker->updater->ending) {
        shard->pool.charged = &worker->allowance;
        worker->rows.pool = &shard->pool;
    }
    row_sink_use_groups(&worker->sink, shard->groups);
    if (shard->datagrams)
        reassembly_use(shard->datagrams, worker, worker->rows.pool);
}

/* `found` may point to the flow. */
void flow_end_now(struct worker *worker, struct flow *flow, enum word end) {
    flow_finish(worker, flow, end);
    flow_table_remove(worker->shard->flows, flow);
    worker->found = NULL;
}

struct shard *oldest_datagram(struct shard *shards, size_t count, bool complete,
                              const int64_t *now_ns) {
    struct shard *found = NULL;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        const struct reassembly *datagrams = shards[i].datagrams;
        uint64_t at = UINT64_MAX;
        if (datagrams)
            at = now_ns ? reassembly_oldest_due(datagrams, complete, *now_ns)
                        : reassembly_oldest(datagrams, complete);
        if (at >= least)
            continue;
        least = at;
        found = &shards[i];
    }
    return found;
}

void end_datagrams(struct worker *worker, struct shard *shards, size_t count, bool complete,
                   const int64_t *now_ns) {
    for (struct shard *shard; (shard = oldest_datagram(shards, count, complete, now_ns));) {
        worker_enter(worker, shard);
        reassembly_evict(shard->datagrams, complete);
    }
}

/* Flows become due in the order of the wheel, which is arbitrary within a second; their first
 * frames order the rows that they write. */
static void expire_flows(struct worker *worker, int64_t now_ns) {
    struct flow_table *flows = worker->shard->flows;
    for (struct flow *flow; (flow = flow_table_expired(flows, now_ns, flow_due_ns));) {
        worker->sink.minor = flow_first(worker->updater, flow);
        flow_end_now(worker, flow, WORD_IDLE);
    }
}

void shards_expire(struct worker *worker, struct shard *shards, size_t count, int64_t now_ns,
                   uint64_t at) {
    worker->sweep = at;
    worker->now_ns = now_ns;
    end_datagrams(worker, shards, count, true, &now_ns);
    end_datagrams(worker, shards, count, false, &now_ns);
    worker->sink.at = at | ORDER_PHASE(3);
    for (size_t i = 0; i < count; i++) {
        worker_enter(worker, &shards[i]);
        expire_flows(worker, now_ns);
    }
    worker->sink.minor = worker->sweep = 0;
}
