/* SPDX-License-Identifier: Apache-2.0 */
/* Each entry is a 16-bit length and that many bytes; an address is its 4 or 16 raw bytes. */
#include "text_store.h"

#include <arpa/inet.h>
#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* Length of the well-formed UTF-8 character at p (Unicode 15, table 3-7), 0 when there is none. */
static size_t utf8_length(const uint8_t *p) {
    static const struct {
        uint8_t first_low, first_high, second_low, second_high, length;
    } forms[] = {
        {0x01, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (*p < forms[i].first_low || *p > forms[i].first_high)
            continue;
        if (forms[i].length == 1)
            return 1;
        if (p[1] < forms[i].second_low || p[1] > forms[i].second_high)
            return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if ((p[k] & 0xC0) != 0x80)
                return 0;
        return forms[i].length;
    }
    return 0;
}

/* Copies what fits; returns the bytes written. */
static size_t copy_utf8(char *out, size_t room, const char *text) {
    size_t used = 0;
    while (*text) {
        size_t length = utf8_length((const uint8_t *)text);
        const char *from = length ? text : REPLACEMENT;
        size_t count = length ? length : sizeof REPLACEMENT - 1;
        if (count > room - used)
            break;
        memcpy(out + used, from, count);
        used += count;
        text += length ? length : 1;
    }
    return used;
}

static int64_t add_bytes(struct text_store *store, const void *bytes, size_t size) {
    uint64_t offset;
    uint16_t length = (uint16_t)size;
    uint8_t *place = arena_reserve(&store->arena, size + sizeof length, &offset);
    if (!place)
        return -1;
    memcpy(place, &length, sizeof length);
    memcpy(place + sizeof length, bytes, size);
    return (int64_t)offset;
}

int64_t text_store_add(struct text_store *store, const char *text) {
    char clean[TEXT_MAX];
    return add_bytes(store, clean, copy_utf8(clean, sizeof clean, text));
}

int64_t text_store_add_address(struct text_store *store, unsigned version, const uint8_t *address) {
    return add_bytes(store, address, version == 4 ? 4 : 16);
}

const char *text_store_get(const struct text_store *store, int64_t number, size_t *size) {
    const uint8_t *entry = arena_at(&store->arena, (uint64_t)number);
    uint16_t length;
    memcpy(&length, entry, sizeof length);
    *size = length;
    return (const char *)entry + sizeof length;
}

size_t text_store_address(const struct text_store *store, int64_t number,
                          char buffer[static ADDRESS_TEXT_MAX]) {
    size_t size;
    const char *bytes = text_store_get(store, number, &size);
    if (!inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes, buffer, ADDRESS_TEXT_MAX))
        return 0;
    return strlen(buffer);
}

void text_store_free(struct text_store *store) {
    arena_free(&store->arena);
}
