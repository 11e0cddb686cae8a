/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and addresses of table rows, referenced by number. Equal texts are not merged. */
#ifndef WIRETALE_STRING_TABLE_H
#define WIRETALE_STRING_TABLE_H

#include "base/arena.h"

#define TEXT_MAX         8191 /* bytes of one text; the rest of a longer one is cut at a character */
#define ADDRESS_TEXT_MAX 46

struct string_table {
    struct arena arena;
};

/* Adds a text; malformed UTF-8 becomes U+FFFD. Returns its number, -1 without memory. */
int64_t string_table_add(struct string_table *store, const char *text);
/* The same without changing any byte. */
int64_t string_table_add_path(struct string_table *store, const char *path);
int64_t string_table_add_address(struct string_table *store, unsigned version,
                                 const uint8_t *address);

/* Returns text `number` and sets its size in bytes; it has no final NUL. */
const char *string_table_get(const struct string_table *store, int64_t number, size_t *size);
/* Writes address `number` as text; returns its length. */
size_t string_table_address(const struct string_table *store, int64_t number,
                            char buffer[static ADDRESS_TEXT_MAX]);
void string_table_free(struct string_table *store);

#endif
