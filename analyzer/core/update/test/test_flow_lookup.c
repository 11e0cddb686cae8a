/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of flows that are over is used again, and at the limit of live flows the one that would be
 * due first makes room, in whichever shard it is. */
#include <stdlib.h>
#include <string.h>

#include "common/test/check.h"
#include "update/update.h"

#define NS_A_SECOND INT64_C(1000000000)
#define ROUNDS      8u
#define FLOWS       10000u /* of a round */
#define OPENED      8u     /* shards */

static struct updater updater;
static struct shard shards[OPENED];
static struct worker worker, other;

static void open_updater(uint32_t max_flows) {
    memset(shards, 0, sizeof shards);
    updater = (struct updater){.shards = shards,
                               .numbers.shard_bits = 3,
                               .seeds = {{1, 2, 3}},
                               .memory = flow_memory_open(max_flows, true),
                               .max_flows = max_flows,
                               .workers = &worker,
                               .worker_count = 1};
    worker = (struct worker){
        .updater = &updater, .rows.sink = &worker.sink, .allowance.memory = &updater.pool_memory};
    pool_memory_open(&updater.pool_memory, (size_t)64 << 20, false);
    row_sink_open(&worker.sink, 0, true); /* no rows */
    worker.sink.numbers = &updater.numbers;
    other = worker;
    other.rows.sink = &other.sink;
    for (unsigned i = 0; i < OPENED; i++) {
        shards[i].number = i;
        shards[i].flows = flow_table_open(updater.memory);
        flow_table_expired(shards[i].flows, 0, flow_due_ns);
    }
    for (unsigned i = 0; i < SHARDS; i++)
        updater.owners[i] = &shards[i * OPENED / SHARDS];
}

static void close_updater(void) {
    uint32_t place = 0;
    for (struct flow *flow; (flow = flow_memory_next(updater.memory, &place));) {
        worker_enter(&worker, updater.owners[shard_of_flow(flow->hash)]);
        flow_release(&worker, flow);
    }
    for (unsigned i = 0; i < OPENED; i++) {
        flow_table_close(shards[i].flows);
        free(shards[i].firsts);
        free(shards[i].begun);
    }
    flow_memory_close(updater.memory);
    pool_memory_close(&updater.pool_memory);
    row_sink_free(&worker.sink);
    free(updater.eviction.heap);
}

/* A packet of a flow at a time, in a frame. */
static struct flow *look_up(uint32_t number, int64_t time_ns, uint64_t frame) {
    struct flow_key key = {.protocol = 17, .ip_version = 4};
    struct packet_info info = {.time_ns = time_ns, .time_known = true, .frame = frame};
    unsigned direction;
    memcpy(key.address[0], &number, sizeof number);
    uint32_t hash = flow_key_hash(&updater.seeds, &key).table;
    worker_enter(&worker, updater.owners[shard_of_flow(hash)]);
    struct flow *flow = flow_lookup(&worker, hash, &key, false, NULL, &info, &direction);
    if (flow)
        flow->last_ns = time_ns;
    return flow;
}

static size_t chunks_of(const struct pool_memory *memory) {
    size_t count = 0;
    for (void *chunk = memory->chunks.newest; chunk; count++)
        memcpy(&chunk, chunk, sizeof chunk);
    return count;
}

/* In each round one packet each of some flows, until all are over. Their memory is used again
 * although another worker ends them than began them. */
static void check_memory_goes_back(void) {
    open_updater(FLOWS);
    size_t first = 0;
    for (uint32_t i = 0; i < ROUNDS * FLOWS; i++) {
        int64_t now_ns = i / FLOWS * 1000 * NS_A_SECOND;
        struct flow *flow = look_up(i, now_ns, i + 1);
        CHECK(flow);
        CHECK(time_bins_at(&flow->directions[0].series, now_ns, 1, worker.rows.pool));
        if ((i + 1) % FLOWS)
            continue;
        for (unsigned s = 0; s < OPENED; s++) {
            worker_enter(&other, &shards[s]);
            shards_expire(&other, other.shard, 1, now_ns + 900 * NS_A_SECOND, 0);
        }
        CHECK_INT(live_flows(&updater), 0);
        first = first ? first : chunks_of(&updater.pool_memory);
    }
    CHECK_INT(chunks_of(&updater.pool_memory), first);
    CHECK(flow_memory_units(updater.memory) * 512 < 2 * FLOWS);
    close_updater();
}

/* Each new flow above the limit ends the one that has been silent for longest; of equal ones, the
 * one that began first. */
static void check_oldest_makes_room(void) {
    open_updater(100);
    updater.serial = true;
    for (uint32_t i = 0; i < 100; i++)
        CHECK(look_up(i, i / 2 * NS_A_SECOND, i + 1));
    CHECK_INT(updater.evicted_flows, 0);
    look_up(0, 60 * NS_A_SECOND, 101);
    for (uint32_t i = 100; i < 199; i++) {
        CHECK(look_up(i, 60 * NS_A_SECOND, i + 2));
        CHECK_INT(live_flows(&updater), 100);
        CHECK_INT(updater.evicted_flows, i - 99);
    }
    /* Flow 0 was silent until it was seen again, so it is still the same. */
    CHECK_INT(look_up(0, 60 * NS_A_SECOND, 300)->first_frame, 1);
    CHECK_INT(look_up(1, 60 * NS_A_SECOND, 301)->first_frame, 301);
    CHECK(!worker.sink.out_of_memory);
    close_updater();
}

int main(void) {
    check_memory_goes_back();
    check_oldest_makes_room();
    return 0;
}
