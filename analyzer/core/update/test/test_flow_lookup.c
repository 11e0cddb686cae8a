/* SPDX-License-Identifier: Apache-2.0 */
/* What flows hold when they are over goes to those who took it, and none ends while another worker
 * may be at it. */
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "pipeline/analysis_state.h"

#define NS_A_SECOND INT64_C(1000000000)
#define ROUNDS      8u
#define FLOWS       10000u /* of a round */

static struct analysis *open_analysis(uint32_t flows_most) {
    struct analysis *analysis = calloc(1, sizeof *analysis);
    pthread_mutex_init(&analysis->lock, NULL);
    analysis->packets_only = true; /* no rows */
    analysis->memory_left = (size_t)64 << 20;
    for (unsigned i = 0; i < WORKERS; i++)
        analysis->workers[i] =
            (struct worker){.analysis = analysis, .pool = {.budget = &analysis->memory_left}};
    analysis->flows = flow_table_open(flows_most, true);
    analysis->datagrams =
        reassembly_open(datagram_finish, &analysis->workers[0], &analysis->workers[0].pool);
    flow_table_expired(analysis->flows, 0, flow_due_ns);
    return analysis;
}

static void close_analysis(struct analysis *analysis) {
    size_t place = 0;
    for (struct flow *flow; (flow = flow_table_drain(analysis->flows, &place));)
        flow_release(&analysis->workers[0], flow);
    flow_table_close(analysis->flows);
    reassembly_close(analysis->datagrams);
    for (unsigned i = 0; i < WORKERS; i++)
        pool_close(&analysis->workers[i].pool);
    batch_order_free(&analysis->order);
    pthread_mutex_destroy(&analysis->lock);
    free(analysis);
}

static struct flow *look_up(struct worker *worker, uint32_t number, int64_t time_ns) {
    struct flow_key key = {.protocol = 17, .ip_version = 4};
    struct packet_info seen = {.time_ns = time_ns, .time_known = true};
    unsigned direction;
    memcpy(key.address[0], &number, sizeof number);
    return flow_lookup(worker, flow_key_hash(worker->analysis->flows, &key), &key, false, NULL,
                       &seen, &direction);
}

static size_t chunks_of(const struct pool *pool) {
    size_t count = 0;
    for (void *chunk = pool->chunks; chunk; count++)
        memcpy(&chunk, chunk, sizeof chunk);
    return count;
}

/* One packet each of flows that a worker begins, until all are over. */
static void live_through(struct analysis *analysis, unsigned worker, uint32_t round) {
    int64_t now_ns = round * 1000 * NS_A_SECOND;
    for (uint32_t i = 0; i < FLOWS; i++) {
        struct worker *own = &analysis->workers[worker];
        struct flow *flow = look_up(own, round * FLOWS + i, now_ns);
        CHECK(flow);
        flow->last_ns = now_ns;
        CHECK(time_bins_at(&flow->directions[0].series, now_ns, 1, &own->pool));
    }
    analysis->now_ns = now_ns + 900 * NS_A_SECOND;
    flow_expire(analysis);
    CHECK_INT(flow_table_count(analysis->flows), 0);
}

static void check_memory_goes_back(unsigned worker) {
    struct analysis *analysis = open_analysis(FLOWS);
    live_through(analysis, worker, 0);
    size_t first = chunks_of(&analysis->workers[worker].pool);
    for (uint32_t round = 1; round < ROUNDS; round++)
        live_through(analysis, worker, round);
    CHECK_INT(chunks_of(&analysis->workers[worker].pool), first);
    close_analysis(analysis);
}

static void check_none_ends_while_taken(void) {
    struct analysis *analysis = open_analysis(1);
    batch_order_begin(analysis);
    struct flow *first = look_up(&analysis->workers[0], 1, 0);
    CHECK(first && first->live);
    CHECK(!look_up(&analysis->workers[1], 2, 0));
    CHECK(first->live && analysis->out_of_memory);
    CHECK_INT(analysis->totals.evicted_flows, 0);
    close_analysis(analysis);
}

static void check_oldest_makes_room(void) {
    struct analysis *analysis = open_analysis(1);
    CHECK(look_up(&analysis->workers[0], 1, 0));
    CHECK(look_up(&analysis->workers[0], 2, 0));
    CHECK_INT(analysis->totals.evicted_flows, 1);
    CHECK(!analysis->out_of_memory);
    close_analysis(analysis);
}

int main(void) {
    for (unsigned worker = 0; worker < WORKERS; worker++)
        check_memory_goes_back(worker);
    check_none_ends_while_taken();
    check_oldest_makes_room();
    return 0;
}
