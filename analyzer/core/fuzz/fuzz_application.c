/* SPDX-License-Identifier: Apache-2.0 */
/* First bytes in any order, of both directions and of datagrams: every query that is sent must be
 * finished once, and all memory must return to the pool. */
#include <stdlib.h>
#include <string.h>

#include "application/application.h"
#include "common/utf8.h"

#define RECORD_BYTES 6u /* of the input, before the bytes of each segment */

static void count(void *context, const struct dns_query *query) {
    uint64_t *queries = context;
    if (!query->sent || !query->first.frame)
        abort();
    ++*queries;
}

static void check_name(const char *name) {
    if (name && strlen(name) >= NAME_TEXT_MAX)
        abort();
    for (; name && *name && strcmp(name, UTF8_CUT) != 0; name++)
        if (*name <= ' ' || *name > '~')
            abort();
}

static void check(const struct application *application) {
    check_name(application->server_name);
    for (unsigned i = 0; i < 2; i++) {
        const struct first_bytes *stream = &application->streams[i];
        if (stream->ready > FIRST_BYTES || stream->room > FIRST_BYTES ||
            (stream->bytes && stream->ready > stream->room))
            abort();
    }
    if (application->protocol == WORD_HTTP)
        check_name(application->http.host);
    else if (application->protocol == WORD_TLS)
        check_name(application->tls.alpn);
}

/* Each record: two bytes of position or 0xFFFF, two of length, one of flags, one of time. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct application application = {0};
    struct pool pool = {.own.most = 1 << 20};
    uint64_t queries = 0;
    int64_t now_ns = 0;
    struct arrival arrival = {.pool = &pool, .finish_query = count, .context = &queries};
    bool datagrams = size && data[0] & 1;
    static const uint16_t ports[] = {0, PORT_DNS, PORT_MDNS, PORT_LLMNR};
    arrival.dns_port = size ? ports[data[0] >> 1 & 3] : 0;
    arrival.multicast = size && data[0] & 8;
    const bool unread[2] = {size && data[0] & 16, size && data[0] & 32};
    for (size_t at = 1; at + RECORD_BYTES <= size; arrival.frame++) {
        const uint8_t *record = data + at;
        uint32_t position = (uint32_t)(record[0] << 8 | record[1]) % (STREAM_BYTES + 1);
        uint32_t length = (uint32_t)(record[2] << 8 | record[3]) % (STREAM_BYTES + 1);
        at += RECORD_BYTES;
        if (length > size - at)
            length = (uint32_t)(size - at);
        uint8_t *bytes = malloc(length + 1); /* so that a read behind the end is found */
        if (!bytes)
            abort();
        memcpy(bytes, data + at, length);
        at += length;
        arrival.direction = record[4] & 1;
        arrival.ip_id = record[4] >> 1;
        arrival.frame += !arrival.frame;
        now_ns += record[5] * INT64_C(200000000);
        arrival.time_ns = record[5] == UINT8_MAX ? TIME_UNKNOWN : now_ns;
        if (datagrams)
            application_datagram(&application, &arrival, bytes, length, length + (record[4] >> 7));
        else
            application_segment(&application, &arrival, position, bytes, length);
        free(bytes);
        check(&application);
    }
    application_finish_queries(&application, &arrival, unread);
    application_free(&application, &pool);
    if (pool.own.used)
        abort();
    pool_close(&pool);
    return 0;
}
