/* SPDX-License-Identifier: Apache-2.0 */
/* Names as printable ASCII. Bytes of a name come from the network: whatever is not printable
 * becomes \DDD, so that no name can control a terminal or end a text, and the length is bounded. */
#include <stdio.h>

#include "application/state.h"
#include "base/bytes.h"
#include "common/utf8.h"

#define NAME_BYTES 255u
_Static_assert(NAME_BYTES *(sizeof "\\DDD" - 1) + sizeof UTF8_CUT <= NAME_TEXT_MAX,
               "the mark fits");

size_t name_escape(char text[static NAME_TEXT_MAX], size_t used, const uint8_t *bytes,
                   size_t length) {
    size_t i = 0;
    for (; i < length && used + sizeof "\\DDD" - 1 + sizeof UTF8_CUT <= NAME_TEXT_MAX; i++) {
        bool plain = bytes[i] > ' ' && bytes[i] < 0x7F && bytes[i] != '\\';
        if (plain)
            text[used++] = (char)bytes[i];
        else
            used += (size_t)snprintf(text + used, NAME_TEXT_MAX - used, "\\%03u", bytes[i]);
    }
    text[used] = '\0';
    return i < length ? name_cut(text, used) : used;
}

size_t name_cut(char text[static NAME_TEXT_MAX], size_t used) {
    const size_t size = sizeof UTF8_CUT - 1;
    if (used >= size && !memcmp(text + used - size, UTF8_CUT, size))
        return used;
    memcpy(text + used, UTF8_CUT, sizeof UTF8_CUT);
    return used + size;
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
    size_t used = name_escape(text, 0, bytes, length < NAME_BYTES ? length : NAME_BYTES);
    if (length > NAME_BYTES)
        name_cut(text, used);
    return text_copy(pool, text);
}

void name_free(struct pool *pool, char *name) {
    if (name)
        pool_free(pool, name, strlen(name) + 1);
}
