/* SPDX-License-Identifier: Apache-2.0 */
/* A table as JSON (RFC 8259): an array of row objects, in pieces. */
#ifndef WIRETALE_TABLE_JSON_H
#define WIRETALE_TABLE_JSON_H

#include "table/table.h"

/* The room that the widest row of a table can take: a piece needs at least that. */
size_t table_json_room(const struct schema *schema);

/* Writes rows from the cursor on, as many as surely fit; returns the bytes written, 0 when all rows
 * are out. The first piece begins with [ and rows are parted by commas; the caller writes the ]. */
size_t table_json(const struct table *table, struct table_cursor *cursor, char *out, size_t room);

#endif
