/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a table as JSON (RFC 8259): an array of row objects, in pieces. */
#ifndef WIRETALE_TABLE_JSON_H
#define WIRETALE_TABLE_JSON_H

#include "table/table.h"

/* Returns the largest possible size of a row in bytes; a piece must have at least that. */
size_t table_json_room(const struct schema *schema);

/* Writes rows from the cursor on, as many as certainly fit. Returns the bytes written, 0 at the
 * end. The first piece begins with [ and commas separate rows; the caller must write the closing ].
 */
size_t table_json(const struct table *table, struct table_cursor *cursor, char *out, size_t room);

#endif
