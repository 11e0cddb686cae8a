/* SPDX-License-Identifier: Apache-2.0 */
/* The texts and addresses that table rows refer to, by a number. */
#ifndef WIRETALE_TEXT_STORE_H
#define WIRETALE_TEXT_STORE_H

#include "base/arena.h"

#define TEXT_MAX         8191 /* bytes of one text; the rest of a longer one is cut at a character */
#define ADDRESS_TEXT_MAX 46

struct text_store {
    struct arena arena;
};

/* The number of a text, or -1 without memory. Bytes that are no UTF-8 become U+FFFD. */
int64_t text_store_add(struct text_store *store, const char *text);
/* The same with the bytes as they are. */
int64_t text_store_add_path(struct text_store *store, const char *path);
int64_t text_store_add_address(struct text_store *store, unsigned version, const uint8_t *address);

/* The bytes of text `number` and their count. */
const char *text_store_get(const struct text_store *store, int64_t number, size_t *size);
/* Address `number` as text in `buffer`; returns its length. */
size_t text_store_address(const struct text_store *store, int64_t number,
                          char buffer[static ADDRESS_TEXT_MAX]);
void text_store_free(struct text_store *store);

#endif
