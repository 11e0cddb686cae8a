/* SPDX-License-Identifier: Apache-2.0 */
/* Flows are found until removed, expire in their time, and the table stays whole through both. */
#include "flow/flow_table.h"

#include <string.h>

#include "common/test/check.h"

#define NS_A_SECOND INT64_C(1000000000)
#define FLOWS       20000u

static const struct shard_key seeds = {
    {0x0123456789ABCDEF, 0xFEDCBA9876543210, 0x5A5A5A5A5A5A5A5A}};
static struct flow_memory *memory;

static int64_t due_of(const struct flow *flow) {
    return flow->last_ns + 60 * NS_A_SECOND;
}

static struct flow_key key_of(uint32_t number) {
    struct flow_key key = {.protocol = 6, .ip_version = 4};
    memcpy(key.address[0], &number, sizeof number);
    return key;
}

static struct flow *find(struct flow_table *table, uint32_t number) {
    struct flow_key key = key_of(number);
    return flow_table_find(table, flow_key_hash(&seeds, &key).table, &key);
}

static struct flow *add(struct flow_table *table, uint32_t number, int64_t now_ns) {
    struct flow_key key = key_of(number);
    struct flow *flow =
        flow_table_add(table, flow_key_hash(&seeds, &key).table, &key, now_ns + 60 * NS_A_SECOND);
    if (flow) {
        flow->number = number;
        flow->last_ns = now_ns;
    }
    return flow;
}

static struct flow_table *open_table(uint32_t most) {
    memory = flow_memory_open(most, true);
    return flow_table_open(memory);
}

static void close_table(struct flow_table *table) {
    flow_table_close(table);
    flow_memory_close(memory);
}

static void check_find_and_remove(void) {
    struct flow_table *table = open_table(FLOWS);
    for (uint32_t i = 0; i < FLOWS; i++)
        CHECK(add(table, i, 0));
    for (uint32_t i = 0; i < FLOWS; i += 3)
        flow_table_remove(table, find(table, i));
    for (uint32_t i = 0; i < FLOWS; i++) {
        struct flow *flow = find(table, i);
        CHECK_INT(!flow, i % 3 == 0);
        CHECK(!flow || flow->number == i);
    }
    for (uint32_t i = 0; i < FLOWS; i += 3) {
        struct flow *flow = add(table, i, 0);
        CHECK(flow && flow->directions[0].packets == 0);
    }
    CHECK_INT(flow_table_count(table), FLOWS);
    close_table(table);
}

/* One flow a second for three hours; each is out within two seconds of its time. */
static void check_expiry(void) {
    struct flow_table *table = open_table(1000);
    int64_t start = 1700000000 * NS_A_SECOND;
    uint32_t finished = 0;
    for (uint32_t second = 0; second < 10800; second++) {
        int64_t now = start + second * NS_A_SECOND;
        for (struct flow *flow; (flow = flow_table_expired(table, now, due_of)); finished++) {
            CHECK(due_of(flow) <= now && due_of(flow) > now - 3 * NS_A_SECOND);
            flow_table_remove(table, flow);
        }
        CHECK(add(table, second, now));
        CHECK(flow_table_count(table) <= 64);
    }
    CHECK_INT(finished + flow_table_count(table), 10800);
    close_table(table);
}

/* A flow that goes on is not ended at the time it first had. */
static void check_renewal(void) {
    struct flow_table *table = open_table(10);
    CHECK(!flow_table_expired(table, 0, due_of));
    struct flow *flow = add(table, 1, 0);
    for (int64_t second = 1; second < 600; second++) {
        flow->last_ns = second * NS_A_SECOND;
        CHECK(!flow_table_expired(table, second * NS_A_SECOND, due_of));
    }
    CHECK(!flow_table_expired(table, 650 * NS_A_SECOND, due_of));
    CHECK(flow_table_expired(table, 662 * NS_A_SECOND, due_of) == flow);
    close_table(table);
}

/* Places that one table returns are used by another. */
static void check_places(void) {
    struct flow_table *table = open_table(FLOWS), *other = flow_table_open(memory);
    for (uint32_t i = 0; i < FLOWS; i++)
        CHECK(add(table, i, 0));
    uint32_t units = flow_memory_units(memory);
    for (uint32_t i = 0; i < FLOWS; i++)
        flow_table_remove(table, find(table, i));
    for (uint32_t i = 0; i < FLOWS - 1000; i++) {
        struct flow *flow = add(other, i, 0);
        CHECK(flow && !flow->last_ns && !flow->directions[0].packets);
        flow->directions[0].packets = 1;
    }
    CHECK_INT(flow_memory_units(memory), units);
    flow_table_close(other);
    close_table(table);
}

static void check_drain(void) {
    struct flow_table *table = open_table(FLOWS);
    uint32_t count = 0;
    for (uint32_t i = 0; i < 1000; i++)
        add(table, i, 0);
    flow_table_remove(table, find(table, 500));
    for (uint32_t unit = 0; unit < flow_memory_units(memory); unit++) {
        uint32_t place = 0;
        for (struct flow *flow; (flow = flow_memory_drain(memory, unit, &place)); count++)
            CHECK(flow->number != 500);
    }
    CHECK_INT(count, 999);
    close_table(table);
}

int main(void) {
    check_find_and_remove();
    check_expiry();
    check_renewal();
    check_places();
    check_drain();
    return 0;
}
