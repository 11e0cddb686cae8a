/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the first bytes of streams to the parser of their protocol, and datagrams of DNS to that of
 * DNS. */
#include "application/application.h"

#include "quic/quic.h"

static enum word dns_word(const struct arrival *arrival) {
    return arrival->dns_port == PORT_MDNS    ? WORD_MDNS
           : arrival->dns_port == PORT_LLMNR ? WORD_LLMNR
                                             : WORD_DNS;
}

/* Returns WORD_NONE if the bytes begin like no protocol. */
static enum word protocol_of(const struct first_bytes *stream, const struct arrival *arrival) {
    if (tls_begins(stream->bytes, stream->ready))
        return WORD_TLS;
    if (http_begins(stream->bytes, stream->ready))
        return WORD_HTTP;
    bool dns = arrival->dns_port || dns_stream_begins(stream->bytes, stream->ready);
    return dns ? dns_word(arrival) : WORD_NONE;
}

/* Removes a header of the PROXY protocol, once it is complete. Returns whether more must come
 * before the protocol behind it is known. */
static bool waits_behind_proxy(struct application *application, struct first_bytes *stream) {
    if (application->proxy_header || !proxy_header_begins(stream->bytes, stream->ready) ||
        http_begins(stream->bytes, stream->ready))
        return false;
    size_t length = proxy_header_length(stream->bytes, stream->ready);
    if (!length)
        return !first_bytes_full(stream);
    application->proxy_header = true;
    first_bytes_remove(stream, 0, length);
    return !stream->ready;
}

static void parse(struct application *application, const struct arrival *arrival,
                  struct first_bytes *stream) {
    if (application->protocol == WORD_NONE && waits_behind_proxy(application, stream))
        return;
    if (application->protocol == WORD_NONE)
        application->protocol = protocol_of(stream, arrival);
    if (application->protocol == WORD_TLS) {
        tls_note(&application->tls, arrival);
        tls_parse(application, arrival, stream);
    } else if (application->protocol == WORD_HTTP)
        http_parse(application, arrival, stream);
    else if (is_dns(application->protocol))
        dns_parse(application, arrival, stream);
    else
        stream->over = true;
}

/* Places bytes and parses them, as long as the parser makes room for more. */
static void take_bytes(struct application *application, const struct arrival *arrival,
                       uint32_t position, const uint8_t *bytes, uint32_t length) {
    struct first_bytes *stream = &application->streams[arrival->direction];
    for (uint32_t used = 0, ready; used < length && !stream->over;) {
        ready = stream->ready;
        uint32_t more =
            first_bytes_place(stream, arrival->pool, position + used, bytes + used, length - used);
        if (!more)
            break;
        used += more;
        if (stream->ready == ready)
            continue;
        parse(application, arrival, stream);
        if (application->protocol != WORD_HTTP)
            first_bytes_move_on(stream, arrival->pool);
    }
}

/* Bytes that are skipped are a sign of their sender, too. */
void application_segment(struct application *application, const struct arrival *arrival,
                         uint32_t position, const uint8_t *bytes, uint32_t length) {
    struct first_bytes *stream = &application->streams[arrival->direction];
    if (stream->over || position >= STREAM_BYTES || length > STREAM_BYTES - position)
        return;
    uint32_t end = position + length;
    bool new = end > stream->seen;
    if (new)
        stream->seen = (uint16_t)end;
    bool skipped = end <= stream->base && application->protocol == WORD_TLS;
    if (skipped && new)
        tls_note(&application->tls, arrival);
    else if (skipped)
        tls_note_again(&application->tls, arrival);
    else
        take_bytes(application, arrival, position, bytes, length);
    for (unsigned i = 0; i < 2; i++)
        if (application->streams[i].over || application->streams[i].ready == FIRST_BYTES)
            first_bytes_drop(&application->streams[i], arrival->pool);
}

/* Protocols over UDP are recognized by datagrams, each by itself. */
void application_datagram(struct application *application, const struct arrival *arrival,
                          const uint8_t *bytes, uint32_t captured, uint32_t length) {
    bool known = is_dns(application->protocol), plain = arrival->dns_port == PORT_DNS;
    if (!known && application->protocol != WORD_NONE)
        return;
    if (!known && !plain && !dns_plausible(bytes, captured, length, arrival->dns_port))
        return;
    if (dns_take(application, arrival, bytes, captured, length))
        application->protocol = dns_word(arrival);
}

bool application_holds_bytes(const struct application *application) {
    return application->streams[0].bytes || application->streams[1].bytes;
}

void application_finish_queries(struct application *application, const struct arrival *arrival,
                                const bool unread[static 2]) {
    if (is_dns(application->protocol))
        dns_finish(&application->dns, arrival, unread);
}

void application_free(struct application *application, struct pool *pool) {
    for (unsigned i = 0; i < 2; i++)
        first_bytes_drop(&application->streams[i], pool);
    name_free(pool, application->server_name);
    application->server_name = NULL;
    if (application->protocol == WORD_HTTP)
        name_free(pool, application->http.host);
    else if (application->protocol == WORD_TLS || application->protocol == WORD_QUIC)
        name_free(pool, application->tls.alpn);
    else if (is_dns(application->protocol))
        dns_free(&application->dns, pool);
    application->protocol = WORD_NONE;
    quic_free(application->quic, pool);
    application->quic = NULL;
}
