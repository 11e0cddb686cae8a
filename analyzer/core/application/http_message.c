/* SPDX-License-Identifier: Apache-2.0 */
/* The length of an HTTP/1 message whose header is whole in one segment (RFC 9112 section 6.3). */
#include <string.h>
#include <strings.h>

#include "application/state.h"

#define CONTENT_MOST (UINT64_C(1) << 56) /* bytes of a content, to a factor of 10 */

#define STATUS_NO_CONTENT   204u
#define STATUS_NOT_MODIFIED 304u

size_t http_field(const uint8_t *line, size_t length, const char *name) {
    size_t at = strlen(name);
    if (length < at || strncasecmp((const char *)line, name, at) != 0)
        return 0;
    while (at < length && (line[at] == ' ' || line[at] == '\t'))
        at++;
    return at;
}

bool http_content_length(const uint8_t *line, size_t length, uint64_t *content) {
    size_t at = http_field(line, length, "Content-Length:");
    if (!at || at == length || line[at] < '0' || line[at] > '9')
        return false;
    for (*content = 0; at < length && *content < CONTENT_MOST; at++) {
        if (line[at] < '0' || line[at] > '9')
            break;
        *content = 10 * *content + (uint64_t)(line[at] - '0');
    }
    return true;
}

/* Whether a field says that the length is another, that the sender may stop before it, or that the
 * content is a stream that is not meant to end. */
static bool is_unknown_field(const uint8_t *line, size_t length) {
    static const char *const streams[] = {"text/event-stream", "multipart/"};
    if (http_field(line, length, "Transfer-Encoding:") || http_field(line, length, "Expect:"))
        return true;
    size_t at = http_field(line, length, "Content-Type:");
    for (size_t i = 0; at && i < sizeof streams / sizeof *streams; i++)
        if (http_field(line + at, length - at, streams[i]))
            return true;
    return false;
}

/* Responses that end with their header, whatever it says: their length is not told. */
static bool is_without_content(unsigned status) {
    return status == STATUS_NO_CONTENT || status == STATUS_NOT_MODIFIED;
}

uint32_t http_message_bytes(const uint8_t *bytes, size_t length, unsigned status) {
    uint64_t content = 0;
    bool known = false;
    size_t most = length < FIRST_BYTES ? length : FIRST_BYTES;
    for (size_t at = 0; at < most;) {
        const uint8_t *line = bytes + at, *end = memchr(line, '\n', most - at);
        if (!end)
            return 0;
        size_t size = (size_t)(end - line);
        size -= size && line[size - 1] == '\r';
        at += (size_t)(end - line) + 1;
        if (!size) {
            if (is_without_content(status))
                return 0;
            if (!known)
                return status ? HTTP_UNTIL_CLOSE : 0;
            return content < UINT32_MAX - at ? (uint32_t)(at + content) : 0;
        }
        if (is_unknown_field(line, size))
            return 0;
        known |= http_content_length(line, size, &content);
    }
    return 0;
}

uint32_t http_request_bytes(const uint8_t *bytes, size_t length, uint16_t *kind) {
    static const char *const methods[] = {"POST ", "PUT ", "PATCH ", "HEAD ", "CONNECT "};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        size_t size = strlen(methods[i]);
        if (length <= size || memcmp(bytes, methods[i], size) != 0)
            continue;
        *kind = i >= 3 ? HTTP_ASKS_HEADER : 0;
        return http_message_bytes(bytes, length, 0);
    }
    return 0;
}
