/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of an analysis from Arrow streams: the parts of a cluster, joined by SQL
 * (src/wiretale/cluster/join.py). */
#ifndef WIRETALE_JOIN_H
#define WIRETALE_JOIN_H

#include "export/arrow_struct.h"
#include "pipeline/analysis.h"

/* Adds the rows of a stream, which has the columns of the table in their order: times and durations
 * as integers, words and addresses as text. Rows of a table that is grouped by flow must ascend by
 * flow, and those of flows come first. Returns false with `error` set if a row cannot be one of the
 * table, or without memory. */
bool join_rows(struct analysis *analysis, enum table_number number, struct ArrowArrayStream *stream,
               struct error *error);

/* Sorts the tables after the last row. Returns false with `error` set if a flow lacks the rows of
 * its directions, or without memory. */
bool join_end(struct analysis *analysis, struct error *error);

#endif
