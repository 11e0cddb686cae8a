/* SPDX-License-Identifier: Apache-2.0 */
/* Chains are numbered in the order in which they come, all are found again, and ids that a sender
 * chose to collide cost no more than others. */
#include "flow/flow.h"

#include <string.h>
#include <time.h>

#include "common/test/check.h"

#define VXLAN_IDS   (1u << 24)
#define OLD_BUCKETS (1u << 17)
#define RUNS        3
/* The crafted ids cost 90 times as much as others when the hash had no seed. */
#define RATIO_MOST 3

static uint32_t number_of(struct encapsulation_table *table, uint32_t id) {
    struct path_step step = {.kind = PATH_VXLAN, .id = id};
    return encapsulation_table_number(table, &step, 1);
}

/* FNV-1a without a seed, by which paths were found once: the worst case for it must be harmless. */
static uint32_t old_bucket(uint32_t id) {
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    hash = (hash ^ PATH_VXLAN) * UINT64_C(0x100000001B3);
    hash = (hash ^ id) * UINT64_C(0x100000001B3);
    return (uint32_t)(hash >> 32 ^ hash) % OLD_BUCKETS;
}

/* As many ids as there are paths, all of the first buckets: with linear probing one long run. */
static void craft(uint32_t *ids) {
    uint32_t count = 0;
    for (uint32_t id = 0; id < VXLAN_IDS && count < PATHS_MOST; id++)
        if (old_bucket(id) < 1024)
            ids[count++] = id;
    CHECK_INT(count, PATHS_MOST);
}

/* CPU time of a table that fills up with these ids and then meets all of them again, ns. */
static int64_t cost_of(const uint32_t *ids) {
    int64_t least = INT64_MAX;
    for (unsigned run = 0; run < RUNS; run++) {
        struct timespec from, to;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
        struct encapsulation_table *table = encapsulation_table_open();
        for (unsigned pass = 0; pass < 2; pass++)
            for (uint32_t i = 0; i < PATHS_MOST; i++)
                number_of(table, ids[i]);
        encapsulation_table_close(table);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
        int64_t spent = (to.tv_sec - from.tv_sec) * INT64_C(1000000000) + to.tv_nsec - from.tv_nsec;
        least = spent < least ? spent : least;
    }
    return least;
}

static void check_crafted_ids(void) {
    static uint32_t crafted[PATHS_MOST], benign[PATHS_MOST];
    craft(crafted);
    for (uint32_t i = 0; i < PATHS_MOST; i++)
        benign[i] = i;
    CHECK(cost_of(crafted) <= RATIO_MOST * cost_of(benign));
}

static bool finds(const struct encapsulation_table *table, uint32_t id, uint32_t expected) {
    struct path_step step = {PATH_VXLAN, id};
    uint32_t number;
    return encapsulation_table_find(table, &step, 1, &number) && number == expected;
}

static void check_numbers(void) {
    struct encapsulation_table *table = encapsulation_table_open();
    char text[PATH_TEXT_MAX];
    CHECK_INT(encapsulation_table_number(table, NULL, 0), 0);
    CHECK_INT(number_of(table, 7), 1);
    CHECK(finds(table, 7, 1) && !finds(table, 14, 2)); /* another thread must add it */
    for (uint32_t i = 0; i < 2 * (PATHS_MOST - 1); i++)
        CHECK_INT(number_of(table, (i % (PATHS_MOST - 1) + 1) * 7), i % (PATHS_MOST - 1) + 1);
    encapsulation_table_text(table, 300, text);
    CHECK(!strcmp(text, "vxlan 2100"));
    encapsulation_table_text(table, 0, text);
    CHECK(!strcmp(text, ""));
    /* Full: further chains share the last number, and those of before keep theirs. */
    CHECK_INT(number_of(table, 1), PATHS_MOST - 1);
    CHECK_INT(number_of(table, 2), PATHS_MOST - 1);
    CHECK_INT(number_of(table, 7), 1);
    CHECK(finds(table, 7, 1) && finds(table, 3, PATHS_MOST - 1));
    encapsulation_table_close(table);
}

static void check_chains(void) {
    struct encapsulation_table *table = encapsulation_table_open();
    struct path_step steps[] = {{PATH_VLAN, 10}, {PATH_VXLAN, 7}, {PATH_IPIP, 0}};
    struct path_step service[] = {{PATH_PBB, 256}, {PATH_GTP_U, 0}, {PATH_CAPWAP, 0}};
    char text[PATH_TEXT_MAX];
    for (unsigned i = 0; i < 6; i++)
        CHECK_INT(encapsulation_table_number(table, steps, i % 3 + 1), i % 3 + 1);
    encapsulation_table_text(table, 3, text);
    CHECK(!strcmp(text, "vlan 10 / vxlan 7 / ipip"));
    encapsulation_table_text(table, encapsulation_table_number(table, service, 3), text);
    CHECK(!strcmp(text, "pbb 256 / gtp-u / capwap"));
    encapsulation_table_close(table);
}

int main(void) {
    check_numbers();
    check_chains();
    check_crafted_ids();
    return 0;
}
