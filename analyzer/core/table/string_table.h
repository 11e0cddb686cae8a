/* SPDX-License-Identifier: Apache-2.0 */
/* The texts and addresses that table rows refer to, by a number. */
#ifndef WIRETALE_STRING_TABLE_H
#define WIRETALE_STRING_TABLE_H

#include "base/arena.h"

#define TEXT_MAX         8191 /* bytes of one text; the rest of a longer one is cut at a character */
#define ADDRESS_TEXT_MAX 46

struct string_table {
    struct arena arena;
};

/* The number of a text, or -1 without memory. Bytes that are no UTF-8 become U+FFFD. */
int64_t string_table_add(struct string_table *store, const char *text);
/* The same with the bytes as they are. */
int64_t string_table_add_path(struct string_table *store, const char *path);
int64_t string_table_add_address(struct string_table *store, unsigned version,
                                 const uint8_t *address);

/* The bytes of text `number` and their count. */
const char *string_table_get(const struct string_table *store, int64_t number, size_t *size);
/* Address `number` as text in `buffer`; returns its length. */
size_t string_table_address(const struct string_table *store, int64_t number,
                            char buffer[static ADDRESS_TEXT_MAX]);
void string_table_free(struct string_table *store);

#endif
