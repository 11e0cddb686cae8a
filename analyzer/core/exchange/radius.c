/* SPDX-License-Identifier: Apache-2.0 */
/* RADIUS (RFC 2865, 2866): each request and its answer.
 *
 *   OFFSET SIZE                            attribute, from 20 on
 *   0      1    code                       0   1   type: 1 user name
 *   1      1    identifier                 1   1   length with these two
 *   2      2    length                     2   ..  value
 *   4      16   authenticator
 *
 * A client repeats a request with the same port, identifier and authenticator; another
 * authenticator is another request, which reuses the identifier of one that it gave up. The first
 * fragment of a request is enough: it has the header and, as a rule, the user. */
#include "base/bytes.h"
#include "exchange/exchange.h"

#define HEADER_BYTES 20u
#define USER_NAME    1u

enum code {
    ACCESS_REQUEST = 1,
    ACCESS_ACCEPT = 2,
    ACCESS_REJECT = 3,
    ACCOUNTING_REQUEST = 4,
    ACCOUNTING_RESPONSE = 5,
    ACCESS_CHALLENGE = 11
};

static const char *code_text(uint8_t code) {
    switch (code) {
    case ACCESS_ACCEPT: return "Access-Accept";
    case ACCESS_REJECT: return "Access-Reject";
    case ACCESS_CHALLENGE: return "Access-Challenge";
    case ACCOUNTING_RESPONSE: return "Accounting-Response";
    default: return NULL;
    }
}

/* The request of a client's port with an identifier. */
static struct exchange_key key_of(const struct local_packet *place, const struct headers *headers,
                                  bool request) {
    const uint8_t *client = request ? headers->source : headers->destination,
                  *server = request ? headers->destination : headers->source;
    uint16_t client_port = request ? headers->source_port : headers->destination_port,
             server_port = request ? headers->destination_port : headers->source_port;
    struct exchange_key key = {.path = place->path,
                               .interface = place->interface,
                               .kind = WORD_RADIUS,
                               .version = headers->ip_version,
                               .id = (uint64_t)server_port << 32 | (uint64_t)client_port << 8 |
                                     headers->payload[1]};
    memcpy(key.client, client, sizeof key.client);
    memcpy(key.server, server, sizeof key.server);
    return key;
}

static void take_user(struct local_exchange *exchange, const uint8_t *bytes, uint32_t length) {
    for (uint32_t at = HEADER_BYTES; at + 2 <= length; at += bytes[at + 1]) {
        uint8_t size = bytes[at + 1];
        if (size < 2 || size > length - at)
            return;
        if (bytes[at] == USER_NAME) {
            exchange_put_name(exchange, bytes + at + 2, size - 2u);
            return;
        }
    }
}

static void take_request(struct local_exchanges *local, const struct local_packet *place,
                         const struct headers *headers, uint32_t length) {
    const uint8_t *bytes = headers->payload;
    struct exchange_key key = key_of(place, headers, true);
    uint32_t authenticator = 31 * load_be32(bytes + 4) + load_be32(bytes + 8);
    exchange_renew(local, &key, authenticator, place);
    struct local_exchange *exchange = exchange_ask(local, &key, place);
    if (!exchange || exchange->type)
        return;
    exchange->id = authenticator;
    exchange->type = bytes[0] == ACCESS_REQUEST ? "Access-Request" : "Accounting-Request";
    exchange->request_bytes = headers->udp_length > 8 ? headers->udp_length - 8 : 0;
    take_user(exchange, bytes, length);
}

void radius_take(struct local_exchanges *local, const struct local_packet *place,
                 const struct headers *headers) {
    uint32_t length = headers->payload_captured;
    if (length < HEADER_BYTES || load_be16(headers->payload + 2) < HEADER_BYTES)
        return;
    if (load_be16(headers->payload + 2) < length)
        length = load_be16(headers->payload + 2);
    uint8_t code = headers->payload[0];
    if (code == ACCESS_REQUEST || code == ACCOUNTING_REQUEST) {
        take_request(local, place, headers, length);
        return;
    }
    if (!code_text(code))
        return;
    struct exchange_key key = key_of(place, headers, false);
    struct local_exchange *exchange = keyed_list_find(&local->exchanges, &key);
    if (exchange && !exchange->settled)
        exchange_settle(local, exchange, place,
                        code == ACCESS_REJECT ? WORD_REFUSED : WORD_ANSWERED, code_text(code));
}
