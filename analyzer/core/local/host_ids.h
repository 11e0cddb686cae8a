/* SPDX-License-Identifier: Apache-2.0 */
/* The IPv4 IDs that each host used last, in packets of all its flows (RFC 6864): a host may count
 * its packets with one counter, so an ID that is missing in a flow may be that of another one.
 *
 * A host is an address at an interface. It has a place in a table of fixed size, by a seeded hash;
 * one that displaces another there begins anew. Its IDs are kept as runs of consecutive ones, each
 * by its end and length, of which a new one replaces the oldest. */
#ifndef WIRETALE_HOST_IDS_H
#define WIRETALE_HOST_IDS_H

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "common/hash.h"

#define HOST_ID_BITS  12u
#define HOST_ID_RUNS  8u
#define HOST_RUN_MOST UINT8_MAX /* longer runs count as so long */

typedef uint16_t host_runs __attribute__((vector_size(2 * HOST_ID_RUNS)));

struct host_ids {
    host_runs end, length; /* an unused run has length 0 */
};

struct host_id_table {
    struct host_ids hosts[1u << HOST_ID_BITS];
    uint32_t tags[1u << HOST_ID_BITS]; /* a part of the hash, and the run to replace */
    uint64_t seeds[2];
};

/* Returns NULL without memory; freed with free(). */
static inline struct host_id_table *host_ids_open(void) {
    struct host_id_table *table = NULL;
    if (posix_memalign((void **)&table, sizeof(struct host_ids), sizeof *table))
        return NULL;
    memset(table, 0, sizeof *table);
    hash_seed_fill(table->seeds, 2);
    return table;
}

/* Returns the first run for which the comparison holds, HOST_ID_RUNS for none. */
static inline unsigned first_run(host_runs holds) {
    uint64_t half[2];
    _Static_assert(sizeof half == sizeof holds, "two words");
    memcpy(half, &holds, sizeof half);
    if (half[0])
        return (unsigned)__builtin_ctzll(half[0]) / 16;
    return half[1] ? 4 + (unsigned)__builtin_ctzll(half[1]) / 16 : HOST_ID_RUNS;
}

/* Returns the place of a host. */
static inline uint32_t host_place(struct host_id_table *table, uint32_t address,
                                  uint32_t interface) {
    uint64_t host = (uint64_t)interface << 32 | address;
    uint64_t hash = hash_fold(host ^ table->seeds[0], table->seeds[1] | 1);
    uint32_t place = (uint32_t)(hash >> (64 - HOST_ID_BITS)), tag = (uint32_t)hash << 3;
    if (!LIKELY((table->tags[place] ^ tag) < HOST_ID_RUNS)) {
        table->tags[place] = tag;
        table->hosts[place] = (struct host_ids){{0}, {0}};
    }
    return place;
}

/* Begins a run with an ID. */
static inline void begin_run(struct host_id_table *table, uint32_t place, uint16_t id) {
    struct host_ids *host = &table->hosts[place];
    unsigned run = table->tags[place] % HOST_ID_RUNS;
    table->tags[place] += run == HOST_ID_RUNS - 1 ? 1 - HOST_ID_RUNS : 1;
    host->end[run] = id;
    host->length[run] = 1;
}

/* Adds the run that ends just before a short one. */
static inline void join_runs(struct host_ids *host, unsigned run) {
    uint16_t before = (uint16_t)(host->end[run] - host->length[run]);
    unsigned lower = first_run((host_runs)((host->end == before) & (host->length > 0)));
    if (lower < HOST_ID_RUNS && lower != run) {
        host->length[run] = (uint16_t)(host->length[run] + host->length[lower]);
        host->length[lower] = 0;
    }
}

/* Takes the ID of a packet, not 0. Returns how many IDs right before it the host's packets before
 * had, HOST_RUN_MOST for so many or more. */
static inline uint8_t host_ids_before(struct host_id_table *table, uint32_t address,
                                      uint32_t interface, uint16_t id) {
    uint32_t place = host_place(table, address, interface);
    struct host_ids *host = &table->hosts[place];
    unsigned run = first_run((host_runs)(host->end - id < host->length));
    if (run < HOST_ID_RUNS) { /* it is in the run already */
        uint16_t behind = (uint16_t)(host->end[run] - id);
        return (uint8_t)(host->length[run] - behind - 1);
    }
    uint16_t before = (uint16_t)(id - 1 - (id == 1)); /* 0 is no ID */
    run = first_run((host_runs)((host->end == before) & (host->length > 0)));
    if (run == HOST_ID_RUNS) {
        begin_run(table, place, id);
        return 0;
    }
    host->end[run] = id;
    if (host->length[run] < HOST_RUN_MOST)
        join_runs(host, run);
    uint16_t length = host->length[run];
    host->length[run] = length < HOST_RUN_MOST ? (uint16_t)(length + 1) : HOST_RUN_MOST;
    return (uint8_t)(length < HOST_RUN_MOST ? length : HOST_RUN_MOST);
}

#endif
