/* SPDX-License-Identifier: Apache-2.0 */
/* DHCP for IPv4 (RFC 2131): Discover and Offer, Request or Inform and ACK or NAK.
 *
 *   OFFSET SIZE                              OFFSET SIZE
 *   0      1    1 request, 2 reply           24     4    giaddr: the relay, or 0
 *   4      4    transaction id               28     16   MAC address of the client
 *   12     4    ciaddr: that the client has  236    4    magic cookie
 *   16     4    yiaddr: that it gets         240    ..   options: code, length, value
 *
 * A client is known by its MAC address, and by the relay through which it asks; a reply must have
 * the id of its latest request. A relay leaves its address in the reply that it passes on to the
 * client's port (RFC 1542 section 4.1.2), which answers the client's own request. A client that got
 * no reply asks again after 4, 8, 16, 32 and 64 s (RFC 2131 section 4.1), with the same id or
 * another. A Request that follows a Discover with the same id shows that there was an Offer, which
 * a switch may have sent to the client alone. A Request names the server that it is for; a NAK of
 * another one does not end it, because that server may still confirm. */
#include "base/bytes.h"
#include "exchange/exchange.h"

#define RELAY_AT     24u
#define OPTIONS_AT   240u
#define MAGIC_COOKIE 0x63825363u
#define CLIENT_PORT  68u

enum dhcp_operation { BOOT_REQUEST = 1, BOOT_REPLY = 2 };
enum dhcp_option {
    OPTION_PAD = 0,
    OPTION_HOST = 12,
    OPTION_ADDRESS = 50,
    OPTION_TYPE = 53,
    OPTION_SERVER = 54
};
enum dhcp_type {
    DHCP_DISCOVER = 1,
    DHCP_OFFER = 2,
    DHCP_REQUEST = 3,
    DHCP_DECLINE = 4,
    DHCP_ACK = 5,
    DHCP_NAK = 6,
    DHCP_INFORM = 8
};

struct message {
    const uint8_t *bytes;
    uint32_t length;
    uint8_t type;                    /* 0 without one */
    const uint8_t *server, *address; /* 4 bytes each; NULL without one */
    const uint8_t *host;             /* host_length bytes */
    uint8_t host_length;
};

/* Reads the options as far as they were captured. */
static void read_options(struct message *message) {
    const uint8_t *bytes = message->bytes;
    for (uint32_t at = OPTIONS_AT; at + 2 <= message->length && bytes[at] != 255;) {
        if (bytes[at] == OPTION_PAD) {
            at++;
            continue;
        }
        uint8_t size = bytes[at + 1];
        const uint8_t *value = bytes + at + 2;
        if (size > message->length - at - 2)
            return;
        if (bytes[at] == OPTION_TYPE && size == 1)
            message->type = *value;
        else if (bytes[at] == OPTION_SERVER && size == 4)
            message->server = value;
        else if (bytes[at] == OPTION_ADDRESS && size == 4)
            message->address = value;
        else if (bytes[at] == OPTION_HOST) {
            message->host = value;
            message->host_length = size;
        }
        at += 2u + size;
    }
}

static const uint8_t NO_RELAY[4];

/* Requests of a client through one relay, each type by itself. */
static struct exchange_key key_of(const struct local_packet *place, const uint8_t *bytes,
                                  const uint8_t *relay, uint8_t type) {
    struct exchange_key key = {
        .path = place->path, .interface = place->interface, .kind = WORD_DHCP, .version = 4};
    memcpy(key.client, bytes + 28, MAC_BYTES);
    memcpy(key.server, relay, 4);
    key.server[4] = type;
    return key;
}

static const char *type_text(uint8_t type) {
    return type == DHCP_DISCOVER  ? "Discover"
           : type == DHCP_REQUEST ? "Request"
           : type == DHCP_DECLINE ? "Decline"
                                  : "Inform";
}

static struct local_exchange *waiting(struct local_exchanges *local,
                                      const struct local_packet *place,
                                      const struct message *message, const uint8_t *relay,
                                      uint8_t type) {
    struct exchange_key key = key_of(place, message->bytes, relay, type);
    struct local_exchange *exchange = keyed_list_find(&local->exchanges, &key);
    bool open = exchange && (!exchange->settled || exchange->contested);
    return open && exchange->id == load_be32(message->bytes + 4) ? exchange : NULL;
}

/* The client refuses the address that it got: another host has it. */
static void decline(struct local_exchanges *local, struct local_exchange *exchange,
                    const struct message *message) {
    if (exchange->settled)
        return;
    if (message->address)
        memcpy(exchange->address, message->address, 4);
    if (message->server)
        memcpy(exchange->server, message->server, 4);
    exchange_settle(local, exchange, NULL, WORD_REFUSED, "DECLINE");
}

static void take_request(struct local_exchanges *local, const struct local_packet *place,
                         const struct message *message) {
    const uint8_t *relay = message->bytes + RELAY_AT;
    struct exchange_key key = key_of(place, message->bytes, relay, message->type);
    if (message->type == DHCP_DECLINE)
        exchange_renew(local, &key, load_be32(message->bytes + 4), place);
    if (message->type == DHCP_REQUEST) {
        struct local_exchange *discover = waiting(local, place, message, relay, DHCP_DISCOVER);
        if (discover)
            exchange_settle(local, discover, NULL, WORD_ANSWERED, "OFFER");
    }
    struct local_exchange *exchange = exchange_ask(local, &key, place);
    if (!exchange)
        return;
    exchange->id = load_be32(message->bytes + 4);
    exchange->type = type_text(message->type);
    memcpy(exchange->address, message->bytes + 12, 4);
    if (message->server)
        memcpy(exchange->chosen, message->server, 4);
    size_t used = message->host_length < HOST_BYTES ? message->host_length : HOST_BYTES;
    if (used)
        memcpy(exchange->host, message->host, used);
    exchange->host_length = (uint8_t)used;
    if (message->type == DHCP_DECLINE)
        decline(local, exchange, message);
}

/* Returns whether a NAK is of another server than the client named in its request. */
static bool is_foreign(const struct local_exchange *exchange, bool nak) {
    return nak && memcmp(exchange->chosen, NO_RELAY, 4) != 0 &&
           memcmp(exchange->chosen, exchange->server, 4) != 0;
}

static const char *reply_text(uint8_t type) {
    return type == DHCP_OFFER ? "OFFER" : type == DHCP_NAK ? "NAK" : "ACK";
}

static void take_reply(struct local_exchanges *local, const struct local_packet *place,
                       const struct message *message, const struct headers *headers) {
    const uint8_t *relay =
        headers->destination_port == CLIENT_PORT ? NO_RELAY : message->bytes + RELAY_AT;
    bool offer = message->type == DHCP_OFFER, nak = message->type == DHCP_NAK;
    const uint8_t types[] = {offer ? DHCP_DISCOVER : DHCP_REQUEST, DHCP_INFORM, DHCP_DISCOVER};
    struct local_exchange *exchange = NULL;
    for (unsigned i = 0; i < (offer || nak ? 1 : 3) && !exchange; i++)
        exchange = waiting(local, place, message, relay, types[i]);
    if (!exchange)
        return;
    memcpy(exchange->server, message->server ? message->server : headers->source, 4);
    if (!offer && !nak && memcmp(message->bytes + 16, NO_RELAY, 4) != 0)
        memcpy(exchange->address, message->bytes + 16, 4);
    exchange->contested = is_foreign(exchange, nak);
    exchange_settle(local, exchange, place, nak ? WORD_REFUSED : WORD_ANSWERED,
                    exchange->contested ? "FOREIGN NAK" : reply_text(message->type));
}

void dhcp_take(struct local_exchanges *local, const struct local_packet *place,
               const struct headers *headers) {
    struct message message = {.bytes = headers->payload, .length = headers->payload_captured};
    if (message.length < OPTIONS_AT || load_be32(message.bytes + 236) != MAGIC_COOKIE)
        return;
    read_options(&message);
    bool request = message.bytes[0] == BOOT_REQUEST;
    uint8_t type = message.type;
    if (request && (type == DHCP_DISCOVER || type == DHCP_REQUEST || type == DHCP_DECLINE ||
                    type == DHCP_INFORM))
        take_request(local, place, &message);
    else if (message.bytes[0] == BOOT_REPLY &&
             (type == DHCP_OFFER || type == DHCP_ACK || type == DHCP_NAK))
        take_reply(local, place, &message, headers);
}
