/* SPDX-License-Identifier: Apache-2.0 */
/* Associations of SCTP (RFC 9260): how they begin, and who aborts them.
 *
 *   chunk, behind 12 bytes of header     INIT        ABORT
 *   0      1    type                     4   4  tag  4   2  code of the first cause, if any
 *   1      1    flags
 *   2      2    length
 *
 * The client's INIT and COOKIE ECHO wait for the server's INIT ACK and COOKIE ACK; the association
 * then stands, and an ABORT of either end is a further answer, for which nobody waited. Only the
 * first chunk of a packet is read: all of these come first. */
#include "base/bytes.h"
#include "exchange/exchange.h"

#define CHUNK_BYTES 4u

enum chunk { INIT = 1, INIT_ACK = 2, ABORT = 6, COOKIE_ECHO = 10, COOKIE_ACK = 11 };

static const char BEGUN[] = "INIT", GREETED[] = "COOKIE ECHO", ESTABLISHED[] = "association",
                  OVER[] = "over";

static const char *cause_text(const struct headers *headers) {
    static const char *const texts[] = {NULL,
                                        "invalid stream identifier",
                                        "missing mandatory parameter",
                                        "stale cookie",
                                        "out of resource",
                                        "unresolvable address",
                                        "unrecognized chunk type",
                                        "invalid mandatory parameter",
                                        "unrecognized parameters",
                                        "no user data",
                                        "cookie received while shutting down",
                                        "restart with new addresses",
                                        "user-initiated abort",
                                        "protocol violation"};
    const uint8_t *chunk = headers->payload;
    if (headers->payload_captured < 2 * CHUNK_BYTES || load_be16(chunk + 2) < 2 * CHUNK_BYTES)
        return "no cause";
    uint16_t code = load_be16(chunk + CHUNK_BYTES);
    return code && code < sizeof texts / sizeof *texts ? texts[code] : "another cause";
}

/* `by_client`: the packet is of the end that sent the INIT. */
static struct exchange_key key_of(const struct local_packet *place, const struct headers *headers,
                                  bool by_client) {
    uint16_t client = by_client ? headers->source_port : headers->destination_port,
             server = by_client ? headers->destination_port : headers->source_port;
    struct exchange_key key = {.path = place->path,
                               .interface = place->interface,
                               .kind = WORD_SCTP,
                               .version = headers->ip_version,
                               .id = (uint64_t)server << 16 | client};
    memcpy(key.client, by_client ? headers->source : headers->destination, sizeof key.client);
    memcpy(key.server, by_client ? headers->destination : headers->source, sizeof key.server);
    return key;
}

static struct local_exchange *known(struct local_exchanges *local, const struct local_packet *place,
                                    const struct headers *headers, bool by_client) {
    struct exchange_key key = key_of(place, headers, by_client);
    return keyed_list_find(&local->exchanges, &key);
}

static void take_init(struct local_exchanges *local, const struct local_packet *place,
                      const struct headers *headers) {
    struct exchange_key key = key_of(place, headers, true);
    if (headers->payload_captured < 2 * CHUNK_BYTES)
        return;
    uint32_t tag = load_be32(headers->payload + CHUNK_BYTES);
    exchange_renew(local, &key, tag, place);
    struct local_exchange *exchange = exchange_ask(local, &key, place);
    if (!exchange || exchange->type)
        return;
    exchange->id = tag;
    exchange->type = BEGUN;
}

/* Settles an exchange that waits, or tells the end of an association that stood. Returns false if
 * it does neither. */
static bool end(struct local_exchanges *local, const struct local_packet *place,
                struct local_exchange *exchange, enum word outcome, const char *cause) {
    if (!exchange || (exchange->settled && exchange->type != ESTABLISHED))
        return false;
    exchange->unasked = exchange->settled;
    exchange_settle(local, exchange, place, outcome, cause);
    exchange->type = OVER;
    return true;
}

/* An ABORT that belongs to no association of the capture is of one that began before. */
static void take_abort(struct local_exchanges *local, const struct local_packet *place,
                       const struct headers *headers) {
    const char *cause = cause_text(headers);
    struct local_exchange *of_server = known(local, place, headers, false),
                          *of_client = known(local, place, headers, true);
    if (end(local, place, of_server, WORD_REFUSED, cause) ||
        end(local, place, of_client, WORD_ABANDONED, cause) || of_server || of_client)
        return;
    struct exchange_key key = key_of(place, headers, false);
    struct local_exchange *exchange = exchange_ask(local, &key, place);
    if (!exchange)
        return;
    exchange->type = ESTABLISHED;
    exchange->settled = true;
    end(local, place, exchange, WORD_REFUSED, cause);
}

void sctp_take(struct local_exchanges *local, const struct local_packet *place,
               const struct headers *headers) {
    uint8_t chunk = headers->payload[0];
    if (chunk == INIT) {
        take_init(local, place, headers);
        return;
    }
    if (chunk == ABORT) {
        take_abort(local, place, headers);
        return;
    }
    struct local_exchange *exchange = known(local, place, headers, chunk == COOKIE_ECHO);
    if (!exchange || exchange->settled)
        return;
    if (chunk == COOKIE_ECHO)
        exchange->type = GREETED;
    if (chunk != COOKIE_ACK)
        return;
    exchange_settle(local, exchange, place, WORD_ANSWERED, "COOKIE ACK");
    exchange->type = ESTABLISHED;
}
