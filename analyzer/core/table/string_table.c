/* SPDX-License-Identifier: Apache-2.0 */
/* Texts, paths and addresses of table rows. Each entry is a 16-bit length and that many bytes;
 * an address is its 4 or 16 raw bytes. The number of an entry is its place, so that neither an
 * index nor a search is needed, and entries never move. Equal texts are not merged, because most
 * rows have either no text or one of their own. */
#include "table/table.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/vocabulary.h"
#include "common/utf8.h"

/* `size` must be below 2^16 (TEXT_MAX). The length may be unaligned, hence memcpy(). */
static int64_t add_bytes(struct string_table *store, const void *bytes, size_t size) {
    uint64_t offset;
    uint16_t length = (uint16_t)size;
    uint8_t *place = arena_reserve(&store->arenas[store->part], size + sizeof length, &offset);
    if (!place)
        return -1;
    memcpy(place, &length, sizeof length);
    memcpy(place + sizeof length, bytes, size);
    return (int64_t)((uint64_t)store->part << PART_SHIFT | offset);
}

int64_t string_table_add(struct string_table *store, const char *text) {
    char clean[TEXT_MAX + 1];
    return add_bytes(store, clean, utf8_copy(clean, sizeof clean, text, strlen(text)));
}

int64_t string_table_add_bytes(struct string_table *store, const void *bytes, size_t size) {
    return add_bytes(store, bytes, size < TEXT_MAX ? size : TEXT_MAX);
}

int64_t string_table_add_address(struct string_table *store, unsigned version,
                                 const uint8_t *address) {
    return add_bytes(store, address, version == 4 ? 4 : 16);
}

const char *string_table_get(const struct string_table *store, int64_t number, size_t *size) {
    uint64_t offset = (uint64_t)number & ((UINT64_C(1) << PART_SHIFT) - 1);
    const uint8_t *entry = arena_at(&store->arenas[number >> PART_SHIFT], offset);
    uint16_t length;
    if (size) {
        memcpy(&length, entry, sizeof length);
        *size = length;
    }
    return (const char *)entry + sizeof length;
}

/* Writes the decimal digits without leading zeros. */
static char *put_octet(char *out, uint8_t octet) {
    if (octet >= 100)
        *out++ = (char)('0' + octet / 100);
    if (octet >= 10)
        *out++ = (char)('0' + octet / 10 % 10);
    *out++ = (char)('0' + octet % 10);
    return out;
}

/* The common case of an export. glibc's inet_ntop() parses a format string for each address. */
static size_t ipv4_text(const char *bytes, char *buffer) {
    char *out = buffer;
    for (size_t i = 0; i < 4; i++) {
        if (i)
            *out++ = '.';
        out = put_octet(out, (uint8_t)bytes[i]);
    }
    *out = 0;
    return (size_t)(out - buffer);
}

const char *string_table_text(const struct string_table *store, enum column_type type,
                              int64_t value, char buffer[static ADDRESS_TEXT_MAX], size_t *size) {
    const char *text = type == TYPE_WORD ? word_text((enum word)value) : NULL;
    if (text)
        *size = strlen(text);
    else
        text = string_table_get(store, value, size);
    if (type != TYPE_ADDRESS)
        return text;
    if (*size == 4)
        *size = ipv4_text(text, buffer);
    else
        *size = inet_ntop(AF_INET6, text, buffer, ADDRESS_TEXT_MAX) ? strlen(buffer) : 0;
    return buffer;
}

void string_table_join(struct string_table *store, struct string_table *other) {
    store->arenas[other->part] = other->arenas[other->part];
    other->arenas[other->part] = (struct arena){0};
}

void string_table_free(struct string_table *store) {
    for (unsigned i = 0; i < PARTS_MOST; i++)
        arena_free(&store->arenas[i]);
}
