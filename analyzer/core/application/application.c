/* SPDX-License-Identifier: Apache-2.0 */
/* Places the first bytes of streams and gives them to the parser of their protocol.
 *
 * Bytes come in the order of packets and are placed by their stream position; a byte that was
 * placed is kept if it comes again. The buffer grows to FIRST_BYTES at most and is freed when the
 * parser needs no more. Up to FIRST_PIECES pieces may wait behind a missing byte; later ones are
 * dropped, and the parser then gets no more than was complete. */
#include "application/application.h"

#include "base/bytes.h"

#define ROOM_LEAST 512u

static void drop_bytes(struct first_bytes *stream, struct pool *pool) {
    pool_release(pool, stream->bytes, stream->room, 1);
    stream->bytes = NULL;
    stream->room = 0;
    stream->over = true;
}

/* Returns false without memory. */
static bool make_room(struct first_bytes *stream, struct pool *pool, uint32_t end) {
    uint32_t room = stream->room ? stream->room : ROOM_LEAST;
    if (end <= stream->room)
        return true;
    while (room < end)
        room *= 2;
    uint8_t *bytes = pool_alloc(pool, room);
    if (!bytes)
        return false;
    if (stream->bytes)
        memcpy(bytes, stream->bytes, stream->room);
    pool_release(pool, stream->bytes, stream->room, 1);
    stream->bytes = bytes;
    stream->room = (uint16_t)room;
    return true;
}

/* Adds the pieces that continue the complete bytes. */
static void join_pieces(struct first_bytes *stream) {
    for (unsigned i = 0; i < stream->piece_count;) {
        if (stream->pieces[i].start > stream->ready) {
            i++;
            continue;
        }
        if (stream->pieces[i].end > stream->ready)
            stream->ready = stream->pieces[i].end;
        stream->pieces[i] = stream->pieces[--stream->piece_count];
        i = 0;
    }
}

/* Returns whether more bytes are complete than before. The position and the end are at most
 * FIRST_BYTES. */
static bool place_bytes(struct first_bytes *stream, struct pool *pool, uint32_t position,
                        const uint8_t *bytes, uint32_t length) {
    uint32_t end = position + length;
    if (end <= stream->ready)
        return false;
    if (position > stream->ready && stream->piece_count == FIRST_PIECES)
        return false;
    if (!make_room(stream, pool, end))
        return false;
    if (position > stream->ready) {
        memcpy(stream->bytes + position, bytes, length);
        stream->pieces[stream->piece_count].start = (uint16_t)position;
        stream->pieces[stream->piece_count++].end = (uint16_t)end;
        return false;
    }
    uint32_t known = stream->ready - position;
    memcpy(stream->bytes + stream->ready, bytes + known, length - known);
    stream->ready = (uint16_t)end;
    join_pieces(stream);
    return true;
}

/* Returns WORD_NONE if the bytes begin like no protocol. */
static enum word protocol_of(const struct first_bytes *stream, const struct arrival *arrival) {
    if (tls_begins(stream->bytes, stream->ready))
        return WORD_TLS;
    if (http_begins(stream->bytes, stream->ready))
        return WORD_HTTP;
    return arrival->dns_port ? WORD_DNS : WORD_NONE;
}

static void parse(struct application *application, const struct arrival *arrival,
                  struct first_bytes *stream) {
    if (application->protocol == WORD_TLS)
        tls_parse(application, arrival, stream);
    else if (application->protocol == WORD_HTTP)
        http_parse(application, arrival, stream);
    else if (application->protocol == WORD_DNS)
        dns_parse(application, arrival, stream);
    else
        stream->over = true;
}

void application_segment(struct application *application, const struct arrival *arrival,
                         uint32_t position, const uint8_t *bytes, uint32_t length) {
    struct first_bytes *stream = &application->streams[arrival->direction];
    if (stream->over || position >= FIRST_BYTES || length > FIRST_BYTES - position)
        return;
    if (!place_bytes(stream, arrival->pool, position, bytes, length))
        return;
    if (application->protocol == WORD_NONE)
        application->protocol = protocol_of(stream, arrival);
    parse(application, arrival, stream);
    for (unsigned i = 0; i < 2; i++)
        if (application->streams[i].over || application->streams[i].ready == FIRST_BYTES)
            drop_bytes(&application->streams[i], arrival->pool);
}

/* Protocols over UDP are recognised by datagrams, each by itself. */
void application_datagram(struct application *application, const struct arrival *arrival,
                          const uint8_t *bytes, uint32_t length) {
    bool unknown = application->protocol == WORD_NONE;
    if ((unknown || application->protocol == WORD_DNS) && arrival->dns_port &&
        dns_take(application, arrival, bytes, length))
        application->protocol = WORD_DNS;
}

bool application_holds_bytes(const struct application *application) {
    return application->streams[0].bytes || application->streams[1].bytes;
}

void application_finish_queries(struct application *application, const struct arrival *arrival) {
    if (application->protocol == WORD_DNS)
        dns_finish(&application->dns, arrival);
}

void application_free(struct application *application, struct pool *pool) {
    for (unsigned i = 0; i < 2; i++)
        drop_bytes(&application->streams[i], pool);
    name_free(pool, application->server_name);
    application->server_name = NULL;
    if (application->protocol == WORD_HTTP)
        name_free(pool, application->http.host);
    else if (application->protocol == WORD_TLS)
        name_free(pool, application->tls.alpn);
    else if (application->protocol == WORD_DNS)
        dns_free(&application->dns, pool);
    application->protocol = WORD_NONE;
    quic_free(application->quic, pool);
    application->quic = NULL;
}
