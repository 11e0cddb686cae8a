/* SPDX-License-Identifier: Apache-2.0 */
/* Names as printable ASCII. Bytes of a name come from the network: whatever is not printable
 * becomes \DDD, so that no name can control a terminal or end a text, and the length is bounded. */
#include <stdio.h>

#include "application/state.h"
#include "base/bytes.h"

#define NAME_BYTES 255u

size_t name_escape(char text[static NAME_TEXT_MAX], size_t used, const uint8_t *bytes,
                   size_t length) {
    for (size_t i = 0; i < length && used + sizeof "\\DDD" <= NAME_TEXT_MAX; i++) {
        bool plain = bytes[i] > ' ' && bytes[i] < 0x7F && bytes[i] != '\\';
        if (plain)
            text[used++] = (char)bytes[i];
        else
            used += (size_t)snprintf(text + used, NAME_TEXT_MAX - used, "\\%03u", bytes[i]);
    }
    text[used] = '\0';
    return used;
}

char *text_copy(struct pool *pool, const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = size > 1 ? pool_alloc(pool, size) : NULL;
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

char *name_copy(struct pool *pool, const uint8_t *bytes, size_t length) {
    char text[NAME_TEXT_MAX];
    name_escape(text, 0, bytes, length < NAME_BYTES ? length : NAME_BYTES);
    return text_copy(pool, text);
}

void name_free(struct pool *pool, char *name) {
    if (name)
        pool_free(pool, name, strlen(name) + 1);
}
