/* SPDX-License-Identifier: Apache-2.0 */
/* The PROXY protocol, versions 1 and 2 (haproxy.org, proxy-protocol.txt): a line of text, or a
 * signature, two bytes, and the length of the addresses. */
#include <string.h>

#include "application/state.h"
#include "base/bytes.h"

#define TEXT_MOST 107u /* bytes of a line with its end */
#define HEAD      16u  /* of version 2 */

static const char text[] = "PROXY ";
static const uint8_t signature[] = {'\r', '\n', '\r', '\n', 0,   '\r',
                                    '\n', 'Q',  'U',  'I',  'T', '\n'};

static bool begins(const uint8_t *bytes, size_t length, const void *with, size_t size) {
    return length && !memcmp(bytes, with, length < size ? length : size);
}

bool proxy_header_begins(const uint8_t *bytes, size_t length) {
    return begins(bytes, length, text, sizeof text - 1) ||
           begins(bytes, length, signature, sizeof signature);
}

size_t proxy_header_length(const uint8_t *bytes, size_t length) {
    if (!length)
        return 0;
    if (bytes[0] == text[0]) {
        const uint8_t *end = memchr(bytes, '\n', length < TEXT_MOST ? length : TEXT_MOST);
        return end && end[-1] == '\r' ? (size_t)(end - bytes) + 1 : 0;
    }
    if (length < HEAD)
        return 0;
    size_t size = HEAD + (size_t)load_be16(bytes + HEAD - 2);
    return size <= length ? size : 0;
}
