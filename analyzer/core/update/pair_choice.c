/* SPDX-License-Identifier: Apache-2.0 */
/* Two passes over the table of flows: the pairs of the wanted flows, then all flows of these pairs.
 */
#include "update/pair_choice.h"

#include <stdlib.h>
#include <string.h>

static void copy_address(const struct table *flows, int64_t number, uint8_t address[static 16]) {
    size_t size;
    const char *bytes = string_table_get(flows->texts, number, &size);
    memset(address, 0, 16);
    memcpy(address, bytes, size < 16 ? size : 16);
}

static uint32_t pair_of(const struct pair_choice *choice, const struct table *flows,
                        const struct row *row) {
    uint8_t source[16], destination[16];
    copy_address(flows, row->value[flows_source], source);
    copy_address(flows, row->value[flows_destination], destination);
    return shard_of_addresses(&choice->key, source, destination, PAIRS);
}

static bool next_flow(const struct table *flows, struct table_cursor *cursor, struct row *row) {
    return table_next_of(flows, cursor, flows_destination + 1, row);
}

_Static_assert(flows_flow == 0 && flows_source < flows_destination, "the columns that are read");

struct pair_choice *pair_choice_open(const struct table *flows, const uint8_t *wanted,
                                     uint32_t bits) {
    struct pair_choice *choice = calloc(1, sizeof *choice);
    struct table_cursor cursor = {0};
    struct row row;
    if (!choice || !(choice->flows = malloc((flows->row_count + 1) * sizeof *choice->flows))) {
        free(choice);
        return NULL;
    }
    hash_seed_fill(choice->key.seed, SHARD_SEEDS);
    for (uint32_t flow = 0; flow < bits && next_flow(flows, &cursor, &row); flow++) {
        uint32_t pair = pair_of(choice, flows, &row);
        if (wanted[flow / 8] >> flow % 8 & 1)
            choice->pairs[pair / 8] |= (uint8_t)(1u << pair % 8);
    }
    cursor = (struct table_cursor){0};
    for (uint32_t flow = 0; next_flow(flows, &cursor, &row); flow++)
        if (pair_choice_has(choice, pair_of(choice, flows, &row)))
            choice->flows[choice->count++] = flow;
    return choice;
}

void pair_choice_close(struct pair_choice *choice) {
    if (choice)
        free(choice->flows);
    free(choice);
}
