/* SPDX-License-Identifier: Apache-2.0 */
/* The packets of a batch may be taken flow by flow instead of in their own order, so that a flow's
 * state is fetched once for all of them; and flows that are over at the same time end as they lie
 * in memory. What depends on the order is kept here until the batch is over, and then put as if
 * turn had followed turn: numbers of flows, and rows of events and blocks. */
#ifndef WIRETALE_BATCH_ORDER_H
#define WIRETALE_BATCH_ORDER_H

#include "flow/flow.h"
#include "table/table.h"

#define HELD_COLUMNS 16         /* of a table whose rows are held */
#define HELD_MOST    (1u << 18) /* rows of flows that end at once */

/* A row that waits for its place. */
struct held_row {
    uint32_t turn;  /* that it came with */
    uint32_t known; /* bit i: value[i] is not null */
    int64_t value[HELD_COLUMNS];
};

struct held_rows {
    struct held_row *rows;
    size_t count, room;
};

/* A flow that the batch began. */
struct birth {
    uint32_t turn;
    struct flow *flow; /* NULL when it is over */
};

struct batch_order {
    bool active;
    uint32_t first_flow; /* number of the first flow that the batch began */
    struct birth *births;
    size_t birth_count, birth_room;
    struct held_rows events, blocks;
};

struct analysis;
struct worker;

/* From here on until batch_order_end() turns may come in any order, to several workers; each is
 * announced by setting a worker's `turn`. */
void batch_order_begin(struct analysis *analysis);
void batch_order_end(struct analysis *analysis);
void batch_order_free(struct batch_order *order);

/* The turn of a flow that is over. Where many end at once, what those before it gave is put in
 * order first when it has become much. */
void batch_order_take_flow(struct worker *worker, const struct flow *flow);

/* A flow has got the next number; a flow is over. Both may be called at any time. */
void batch_order_note_birth(const struct worker *worker, struct flow *flow);
void batch_order_note_end(struct analysis *analysis, const struct flow *flow);

/* Adds a row to events or blocks; returns its number, by which it can be amended. */
uint64_t batch_order_add(const struct worker *worker, enum table_number number,
                         const struct row *row);
/* Rows of the table, those held with them. */
uint64_t batch_order_rows(const struct analysis *analysis, enum table_number number);

#endif
