/* SPDX-License-Identifier: Apache-2.0 */
/* The first request and its status line in HTTP/1 (RFC 9112); of HTTP/2 only the preface (RFC 9113
 * section 3.4). A header is read when all of it is
 * complete, or when FIRST_BYTES are: lines end with LF, and a CR before it is no part of the line.
 * Interim responses (1xx but 101) are skipped, because another one follows in the same stream. The
 * target of the request is not kept, because it may contain secrets. */
#include <string.h>
#include <strings.h>

#include "application/state.h"

#define STATUS_SWITCHING 101
#define STATUS_FINAL     200
#define INTERIM_MOST     4u /* interim responses of a segment that are skipped */

/* Of requests (those of RFC 9110, WebDAV and UPnP) and of a response. */
static const char *const beginnings[] = {
    "GET ",       "POST ",      "HEAD ",        "PUT ",    "DELETE ", "OPTIONS ",
    "PATCH ",     "TRACE ",     "CONNECT ",     "MKCOL ",  "COPY ",   "MOVE ",
    "LOCK ",      "UNLOCK ",    "REPORT ",      "PRI * ",  "SEARCH ", "PROPFIND ",
    "PROPPATCH ", "SUBSCRIBE ", "UNSUBSCRIBE ", "NOTIFY ", "HTTP/1."};
static const char preface[] = "PRI * HTTP/2.0";

/* A line without its end. */
struct line {
    const uint8_t *bytes;
    size_t length, next; /* position behind its end */
};

bool http_begins(const uint8_t *bytes, size_t length) {
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        size_t size = strlen(beginnings[i]);
        if (length && !memcmp(bytes, beginnings[i], length < size ? length : size))
            return true;
    }
    return false;
}

/* Returns false if the line at `at` is not complete. */
static bool read_line(const struct first_bytes *stream, size_t at, struct line *line) {
    const uint8_t *start = stream->bytes + at;
    const uint8_t *end = memchr(start, '\n', stream->ready - at);
    if (!end)
        return false;
    *line = (struct line){start, (size_t)(end - start), at + (size_t)(end - start) + 1};
    if (line->length && start[line->length - 1] == '\r')
        line->length--;
    return true;
}

static void set_host(struct http_request *http, struct pool *pool, const uint8_t *value,
                     size_t length) {
    while (length && (*value == ' ' || *value == '\t'))
        value++, length--;
    while (length && (value[length - 1] == ' ' || value[length - 1] == '\t'))
        length--;
    if (!http->host)
        http->host = name_copy(pool, value, length);
}

/* Sets the host to that of a target in absolute form, as proxies get it, which replaces the header
 * Host (RFC 9112 section 3.2.2). The user information before it is left out. */
static void set_authority(struct http_request *http, struct pool *pool, const uint8_t *target,
                          size_t length) {
    static const char *const schemes[] = {"http://", "https://", "ws://", "wss://", "ftp://"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t size = strlen(schemes[i]), end;
        if (length <= size || strncasecmp((const char *)target, schemes[i], size) != 0)
            continue;
        for (end = size; end < length && !strchr("/?#", target[end]); end++)
            if (target[end] == '@')
                size = end + 1;
        set_host(http, pool, target + size, end - size);
        return;
    }
}

/* Reads the method, and the host if the target has it: that of CONNECT is the host (RFC 9112
 * section 3.2.3). Returns false if the line is no request. */
static bool read_request_line(struct http_request *http, struct pool *pool,
                              const struct line *line) {
    const uint8_t *space = memchr(line->bytes, ' ', line->length);
    size_t method = space ? (size_t)(space - line->bytes) : 0;
    if (!method || method >= sizeof http->method)
        return false;
    const uint8_t *target = space + 1;
    size_t rest = line->length - method - 1;
    const uint8_t *end = memchr(target, ' ', rest);
    if (!end || rest - (size_t)(end - target) < sizeof " HTTP/1.x" - 1 ||
        memcmp(end, " HTTP/1.", sizeof " HTTP/1." - 1) != 0)
        return false;
    memcpy(http->method, line->bytes, method);
    http->method[method] = '\0';
    if (!strcmp(http->method, "CONNECT"))
        set_host(http, pool, target, (size_t)(end - target));
    else
        set_authority(http, pool, target, (size_t)(end - target));
    return true;
}

/* Whether a header line has a field whose value begins so. */
static bool has_value(const struct line *line, const char *name, const char *value) {
    size_t at = http_field(line->bytes, line->length, name), length = strlen(value);
    return at && line->length - at >= length &&
           !strncasecmp((const char *)line->bytes + at, value, length);
}

static void parse_request(struct application *application, struct first_bytes *stream,
                          const struct arrival *arrival) {
    struct http_request *http = &application->http;
    struct line line;
    while (!stream->over && read_line(stream, stream->parsed, &line)) {
        bool first = !stream->parsed;
        stream->parsed = (uint16_t)line.next;
        if (first && line.length == sizeof preface - 1 &&
            !memcmp(line.bytes, preface, line.length)) {
            application->protocol = WORD_HTTP2;
            application->streams[0].over = application->streams[1].over = true;
        } else if (first)
            stream->over = !read_request_line(http, arrival->pool, &line);
        else if (line.length > 5 && !strncasecmp((const char *)line.bytes, "Host:", 5))
            set_host(http, arrival->pool, line.bytes + 5, line.length - 5);
        else {
            http->expects |=
                has_value(&line, "Expect:", "100-continue"); /* RFC 9110 section 10.1.1 */
            http->upgrades |= has_value(&line, "Upgrade:", "websocket"); /* RFC 6455 section 4.1 */
            http->keyed |= has_value(&line, "Sec-WebSocket-Key:", "");
            http_content_length(line.bytes, line.length, &http->content_length);
        }
        if (!first && !line.length) {
            http->requested = moment_of(arrival);
            if (http->content_length)
                http->announced = stream->base + line.next + http->content_length;
            stream->over = true;
        }
    }
    if (!application->server_name && http->host)
        application->server_name = text_copy(arrival->pool, http->host);
}

unsigned http_status(const uint8_t *bytes, size_t length) {
    unsigned status = 0;
    if (length < HTTP_STATUS_AT + 3 || memcmp(bytes, "HTTP/1.", 7) != 0)
        return 0;
    for (size_t i = HTTP_STATUS_AT; i < HTTP_STATUS_AT + 3; i++) {
        if (bytes[i] < '0' || bytes[i] > '9')
            return 0;
        status = 10 * status + (unsigned)(bytes[i] - '0');
    }
    return status;
}

/* Returns the position behind the empty line that ends a header; 0 without one. */
static size_t header_end(const uint8_t *bytes, size_t length) {
    for (size_t at = 0; at + 4 <= length && at < FIRST_BYTES; at++)
        if (bytes[at] == '\r' && !memcmp(bytes + at, "\r\n\r\n", 4))
            return at + 4;
    return 0;
}

unsigned http_segment_status(const uint8_t *bytes, size_t length, uint32_t *message) {
    unsigned status = http_status(bytes, length), next = status;
    const uint8_t *first = bytes;
    for (unsigned i = 0; i < INTERIM_MOST && next && next < STATUS_FINAL; i++) {
        size_t end = next == STATUS_SWITCHING ? 0 : header_end(bytes, length);
        if (!end)
            break;
        bytes += end;
        length -= end;
        next = http_status(bytes, length);
        status = next ? next : status;
    }
    *message = status < STATUS_FINAL ? 0 : http_message_bytes(bytes, length, status);
    if (*message && *message != HTTP_UNTIL_CLOSE)
        *message += (uint32_t)(bytes - first);
    return status;
}

/* Reads a header line of the final response. The length counts unless the content has chunks (RFC
 * 9112 section 6.3). */
static void parse_answer_line(struct http_request *http, struct first_bytes *stream,
                              const struct line *line) {
    stream->over = !line->length;
    http->coded |= http_field(line->bytes, line->length, "Transfer-Encoding:") > 0;
    http_content_length(line->bytes, line->length, &http->answer_length);
    if (stream->over && http->answer_length && !http->coded)
        http->answer_announced = stream->base + line->next + http->answer_length;
}

/* Skips the header of an interim response: its lines, up to an empty one. */
static void parse_response(struct http_request *http, struct first_bytes *stream,
                           const struct arrival *arrival) {
    struct line line;
    while (!stream->over && read_line(stream, stream->parsed, &line)) {
        unsigned status = http_status(line.bytes, line.length);
        stream->over = !stream->parsed && !status;
        stream->parsed = (uint16_t)line.next;
        if (http->status)
            parse_answer_line(http, stream, &line);
        else if (status >= STATUS_FINAL || status == STATUS_SWITCHING) {
            http->status = (uint16_t)status;
            http->answered = moment_of(arrival);
            stream->over = status == STATUS_SWITCHING;
        }
    }
}

void http_parse(struct application *application, const struct arrival *arrival,
                struct first_bytes *stream) {
    static const char answer[] = "HTTP/1.";
    size_t size = sizeof answer - 1;
    if (stream->ready < size)
        return;
    bool response = !memcmp(stream->bytes, answer, size);
    application->http.client = arrival->direction ^ response;
    if (response)
        parse_response(&application->http, stream, arrival);
    else
        parse_request(application, stream, arrival);
}
