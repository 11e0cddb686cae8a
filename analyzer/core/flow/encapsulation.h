/* SPDX-License-Identifier: Apache-2.0 */
/* Interned encapsulation stacks (VLAN, MPLS, PPPoE, tunnels): each distinct one is stored once
 * and has a number; 0 is none at all. */
#ifndef WIRETALE_ENCAPSULATION_H
#define WIRETALE_ENCAPSULATION_H

#include "decode/headers.h"
#include "table/string_table.h"

#define PATHS_MOST    65536u /* because numbers have 16 bits; later stacks share the last number */
#define PATH_TEXT_MAX 256

struct encapsulation_table;

struct encapsulation_table *encapsulation_table_open(void);
void encapsulation_table_close(struct encapsulation_table *table);
uint32_t encapsulation_table_number(struct encapsulation_table *table,
                                    const struct path_step *steps, unsigned depth);

/* Writes the stack as in `vlan 10 / vxlan 7`; the empty one is "". */
void encapsulation_table_text(const struct encapsulation_table *table, uint32_t number,
                              char text[PATH_TEXT_MAX]);

#endif
