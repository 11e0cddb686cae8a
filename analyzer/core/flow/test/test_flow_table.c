/* SPDX-License-Identifier: Apache-2.0 */
/* Flows are found until removed, expire in their time, and the table stays whole through both. */
#include "flow/flow_table.h"

#include <string.h>

#include "common/test/check.h"

#define NS_A_SECOND INT64_C(1000000000)
#define FLOWS       20000u

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
    return flow_table_find(table, flow_key_hash(table, &key), &key);
}

static struct flow *add(struct flow_table *table, uint32_t number, int64_t now_ns) {
    struct flow_key key = key_of(number);
    struct flow *flow =
        flow_table_add(table, flow_key_hash(table, &key), &key, now_ns + 60 * NS_A_SECOND);
    if (flow) {
        flow->number = number;
        flow->last_ns = now_ns;
    }
    return flow;
}

static void check_find_and_remove(void) {
    struct flow_table *table = flow_table_open(FLOWS, true);
    for (uint32_t i = 0; i < FLOWS; i++)
        CHECK(add(table, i, 0));
    CHECK(!add(table, FLOWS, 0));
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
    flow_table_close(table);
}

/* One flow a second for three hours; each is out within two seconds of its time. */
static void check_expiry(void) {
    struct flow_table *table = flow_table_open(1000, true);
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
    flow_table_close(table);
}

/* A flow that goes on is not ended at the time it first had. */
static void check_renewal(void) {
    struct flow_table *table = flow_table_open(10, true);
    CHECK(!flow_table_expired(table, 0, due_of));
    struct flow *flow = add(table, 1, 0);
    for (int64_t second = 1; second < 600; second++) {
        flow->last_ns = second * NS_A_SECOND;
        CHECK(!flow_table_expired(table, second * NS_A_SECOND, due_of));
    }
    CHECK(!flow_table_expired(table, 650 * NS_A_SECOND, due_of));
    CHECK(flow_table_expired(table, 662 * NS_A_SECOND, due_of) == flow);
    flow_table_close(table);
}

static void check_oldest(void) {
    struct flow_table *table = flow_table_open(3, true);
    CHECK(!flow_table_oldest(table, due_of));
    flow_table_expired(table, 0, due_of);
    for (uint32_t i = 0; i < 3; i++)
        add(table, i, i * 10 * NS_A_SECOND);
    find(table, 0)->last_ns = 100 * NS_A_SECOND;
    CHECK_INT(flow_table_oldest(table, due_of)->number, 1);
    flow_table_close(table);
}

static void check_drain(void) {
    struct flow_table *table = flow_table_open(FLOWS, true);
    size_t place = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < 1000; i++)
        add(table, i, 0);
    flow_table_remove(table, find(table, 500));
    for (struct flow *flow; (flow = flow_table_drain(table, &place)); count++)
        CHECK(flow->number != 500);
    CHECK_INT(count, 999);
    flow_table_close(table);
}

int main(void) {
    check_find_and_remove();
    check_expiry();
    check_renewal();
    check_oldest();
    check_drain();
    return 0;
}
