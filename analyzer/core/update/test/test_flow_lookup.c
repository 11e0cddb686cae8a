/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of flows that are over returns to the pool that it came from, and no flow ends while
 * another worker may use it. */
#include <stdlib.h>
#include <string.h>

#include "common/test/check.h"
#include "update/update.h"

#define NS_A_SECOND INT64_C(1000000000)
#define ROUNDS      8u
#define FLOWS       10000u /* of a round */

static struct updater *open_updater(uint32_t flows_most) {
    struct updater *updater = calloc(1, sizeof *updater);
    row_sink_open(&updater->sink, true); /* no rows */
    updater->memory_left = (size_t)64 << 20;
    for (unsigned i = 0; i < WORKERS; i++)
        updater->workers[i] = (struct worker){
            .rows = {.sink = &updater->sink, .pool = {.budget = &updater->memory_left}},
            .updater = updater};
    updater->flows = flow_table_open(flows_most, true);
    updater->datagrams =
        reassembly_open(datagram_finish, &updater->workers[0], &updater->workers[0].rows.pool);
    flow_table_expired(updater->flows, 0, flow_due_ns);
    return updater;
}

static void close_updater(struct updater *updater) {
    size_t place = 0;
    for (struct flow *flow; (flow = flow_table_drain(updater->flows, &place));)
        flow_release(&updater->workers[0], flow);
    flow_table_close(updater->flows);
    reassembly_close(updater->datagrams);
    for (unsigned i = 0; i < WORKERS; i++)
        pool_close(&updater->workers[i].rows.pool);
    row_sink_free(&updater->sink);
    free(updater);
}

static struct flow *look_up(struct worker *worker, uint32_t number, int64_t time_ns) {
    struct flow_key key = {.protocol = 17, .ip_version = 4};
    struct packet_info info = {.time_ns = time_ns, .time_known = true};
    unsigned direction;
    memcpy(key.address[0], &number, sizeof number);
    return flow_lookup(worker, flow_key_hash(worker->updater->flows, &key), &key, false, NULL,
                       &info, &direction);
}

static size_t chunks_of(const struct pool *pool) {
    size_t count = 0;
    for (void *chunk = pool->chunks; chunk; count++)
        memcpy(&chunk, chunk, sizeof chunk);
    return count;
}

/* In each round one packet each of flows that a worker begins, until all are over. */
static void check_memory_goes_back(unsigned worker) {
    struct updater *updater = open_updater(FLOWS);
    struct worker *own = &updater->workers[worker];
    size_t first = 0;
    for (uint32_t i = 0; i < ROUNDS * FLOWS; i++) {
        int64_t now_ns = i / FLOWS * 1000 * NS_A_SECOND;
        struct flow *flow = look_up(own, i, now_ns);
        CHECK(flow);
        flow->last_ns = now_ns;
        CHECK(time_bins_at(&flow->directions[0].series, now_ns, 1, &own->rows.pool));
        if ((i + 1) % FLOWS)
            continue;
        updater->now_ns = now_ns + 900 * NS_A_SECOND;
        flow_expire(updater);
        CHECK_INT(flow_table_count(updater->flows), 0);
        first = first ? first : chunks_of(&own->rows.pool);
    }
    CHECK_INT(chunks_of(&own->rows.pool), first);
    close_updater(updater);
}

static void check_none_ends_while_taken(void) {
    struct updater *updater = open_updater(1);
    row_sink_begin_batch(&updater->sink, updater->flow_count);
    struct flow *first = look_up(&updater->workers[0], 1, 0);
    CHECK(first && first->live);
    CHECK(!look_up(&updater->workers[1], 2, 0));
    CHECK(first->live && updater->sink.out_of_memory);
    CHECK_INT(updater->evicted_flows, 0);
    close_updater(updater);
}

static void check_oldest_makes_room(void) {
    struct updater *updater = open_updater(1);
    CHECK(look_up(&updater->workers[0], 1, 0));
    CHECK(look_up(&updater->workers[0], 2, 0));
    CHECK_INT(updater->evicted_flows, 1);
    CHECK(!updater->sink.out_of_memory);
    close_updater(updater);
}

int main(void) {
    for (unsigned worker = 0; worker < WORKERS; worker++)
        check_memory_goes_back(worker);
    check_none_ends_while_taken();
    check_oldest_makes_room();
    return 0;
}
