/* SPDX-License-Identifier: Apache-2.0 */
/* The encapsulations that were met, each distinct chain once, by number; 0 is none at all. */
#ifndef WIRETALE_PATH_TABLE_H
#define WIRETALE_PATH_TABLE_H

#include "decode/headers.h"
#include "table/string_table.h"

#define PATHS_MOST    65536u /* numbers of 16 bits; further chains share the number of the last */
#define PATH_TEXT_MAX 256

struct path_table;

struct path_table *path_table_open(void);
void path_table_close(struct path_table *table);
uint32_t path_table_number(struct path_table *table, const struct path_step *steps, unsigned depth);

/* As in `vlan 10 / vxlan 7`; the empty path is "". */
void path_table_text(const struct path_table *table, uint32_t number, char text[PATH_TEXT_MAX]);

#endif
