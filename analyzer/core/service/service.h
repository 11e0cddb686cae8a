/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to services that say yes or no in the first bytes of their answer: logins, mail
 * commands, boot files, the time, tunnels. One message per packet is read, at its start.
 *
 *   service_concerns() -> service_take() -> a reader -> a row of exchanges (kind service)
 *
 * A request is known by the ends and their ports, and its place in the stream or a digest of its
 * bytes. Names of users are kept, passwords never. */
#ifndef WIRETALE_SERVICE_H
#define WIRETALE_SERVICE_H

#include "decode/headers.h"
#include "exchange/exchange.h"

static inline bool is_rare_service_port(uint16_t port) {
    switch (port) {
    case 143:
    case 179:
    case 1080:
    case 1433:
    case 1521:
    case 5672:
    case 6432:
    case 27017: return true;
    default: return false;
    }
}

static inline bool is_service_port(uint16_t port) {
    switch (port) {
    case 21:
    case 25:
    case 88:
    case 110:
    case 389:
    case 445:
    case 502:
    case 587:
    case 1883:
    case 3268:
    case 3306:
    case 3389:
    case 5432:
    case 6379: return true;
    default: return is_rare_service_port(port);
    }
}

static inline bool is_time_or_tunnel_port(uint16_t port) {
    return port == 123 || port == 500 || port == 4500 || port == 88 || port == 69 || port == 111;
}

/* TFTP goes on from other ports: an error, or its first block. */
static inline bool is_boot_file(const struct headers *headers) {
    const uint8_t *bytes = headers->payload;
    return headers->payload_captured > 4 && !bytes[0] && !bytes[2] &&
           (bytes[1] == 5 || (bytes[1] == 3 && bytes[3] == 1));
}

#define HTTP2_BYTES_MOST 256u /* of a segment that ends a connection */
/* HTTP/2 has no port of its own: a small frame that is not data, and a GOAWAY is one. */
static inline bool is_http2_frame(const struct headers *headers) {
    const uint8_t *bytes = headers->payload;
    return headers->payload_captured > 16 && headers->payload_captured < HTTP2_BYTES_MOST &&
           !bytes[0] && !bytes[1] && bytes[3] && bytes[3] < 10 && !(bytes[5] & 0x80);
}

/* Returns whether a packet may have such a message. */
static inline bool service_concerns(const struct headers *headers) {
    if (headers->layer != LAYER_TRANSPORT || headers->fragment || headers->payload_captured < 4)
        return false;
    if (headers->protocol == IP_TCP)
        return is_service_port(headers->destination_port) ||
               is_service_port(headers->source_port) || is_http2_frame(headers);
    return is_time_or_tunnel_port(headers->destination_port) ||
           is_time_or_tunnel_port(headers->source_port) || is_boot_file(headers);
}

/* Takes a packet of which service_concerns() is true. */
void service_take(struct local_exchanges *local, const struct local_packet *place,
                  const struct headers *headers);

#endif
