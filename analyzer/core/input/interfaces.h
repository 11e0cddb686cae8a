/* SPDX-License-Identifier: Apache-2.0 */
/* The interfaces of all files of a set and the texts that the files say of them. */
#ifndef WIRETALE_INTERFACE_LIST_H
#define WIRETALE_INTERFACE_LIST_H

#include "pipeline/merged_input.h"

#define INTERFACE_TEXT_MAX  4096        /* bytes of one text with its NUL */
#define INTERFACE_TEXTS_MAX (32u << 20) /* of all texts; later ones are dropped (NULL) */

struct text_node;

struct interface_list {
    struct interface **items; /* their addresses never change */
    size_t count, room;
    struct text_node *texts;
    size_t texts_size;
};

/* A new interface with nothing told and its number, or NULL without memory. */
struct interface *interface_list_add(struct interface_list *list, uint32_t *number);

/* A copy of the text that lives as long as the list; NULL for an empty text, without memory, or
 * when the bound on all texts is reached. */
const char *interface_list_text(struct interface_list *list, const char *bytes, size_t size);
/* `before; after`, where either may be NULL. */
const char *interface_list_join(struct interface_list *list, const char *before, const char *after);
void interface_list_free(struct interface_list *list);

#endif
