/* SPDX-License-Identifier: Apache-2.0 */
/* Stations of 802.11 that join an access point or leave it (IEEE 802.11 section 9.3.3), in clear.
 *
 *   of the header: 0 frame control   4, 10, 16 receiver, sender, access point (BSSID)   22 sequence
 *   of the body:   authentication    0 algorithm   2 number   4 status
 *                  association       0 capability  2 status
 *                  the others        0 reason
 *
 * Each is a row without a wait: only its answer says what came of it. */
#include <stdio.h>

#include "base/bytes.h"
#include "exchange/exchange.h"

#define HEADER_BYTES 24u
#define STATUS_BYTES 6u

enum subtype { ASSOCIATED = 1, REASSOCIATED = 3, DISASSOCIATED = 10, AUTHENTICATED = 11 };

/* `02:00:00:00:00:0a 02:00:00:00:00:01`: the station, and its access point. */
static void put_ends(struct local_exchange *exchange, const uint8_t *station,
                     const uint8_t *point) {
    char text[6 * MAC_BYTES + 1];
    for (unsigned i = 0; i < 2 * MAC_BYTES; i++)
        snprintf(text + (size_t)3 * i, sizeof text - (size_t)3 * i, "%02x%c",
                 (i < MAC_BYTES ? station : point)[i % MAC_BYTES], i == MAC_BYTES - 1 ? ' ' : ':');
    exchange_put_name(exchange, (const uint8_t *)text, 6 * MAC_BYTES - 1);
}

static void add(struct local_exchanges *local, const struct local_packet *place,
                const uint8_t *header, const char *type, const char *word, uint16_t code) {
    bool by_point = !memcmp(header + 10, header + 16, MAC_BYTES);
    const uint8_t *station = header + (by_point ? 4 : 10);
    struct exchange_key key = {
        .path = place->path, .interface = place->interface, .kind = WORD_WLAN, .id = header[0]};
    char text[24];
    memcpy(key.client, station, MAC_BYTES);
    memcpy(key.server, header + 16, MAC_BYTES);
    uint32_t sequence = load_le16(header + 22);
    exchange_renew(local, &key, sequence, place);
    struct local_exchange *exchange = exchange_ask(local, &key, place);
    if (!exchange || exchange->settled) /* a retry */
        return;
    exchange->id = sequence;
    exchange->type = type;
    put_ends(exchange, station, header + 16);
    snprintf(text, sizeof text, "%s %u", word, code);
    exchange_settle(local, exchange, NULL, code ? WORD_REFUSED : WORD_ANSWERED, text);
}

void wlan_take(struct local_exchanges *local, const struct local_packet *place,
               const struct packet *packet, const struct headers *headers) {
    uint32_t at = headers->control_offset;
    if (at < HEADER_BYTES || packet->captured < at + STATUS_BYTES - 4)
        return;
    const uint8_t *body = packet->data + at, *header = body - HEADER_BYTES;
    uint8_t subtype = header[0] >> 4;
    bool whole = packet->captured >= at + STATUS_BYTES;
    bool by_point = !memcmp(header + 10, header + 16, MAC_BYTES);
    if (subtype == ASSOCIATED || subtype == REASSOCIATED) {
        if (whole)
            add(local, place, header, "Association", "status", load_le16(body + 2));
    } else if (subtype == AUTHENTICATED) {
        if (whole && by_point && load_le16(body + 4)) /* of an answer */
            add(local, place, header, "Authentication", "status", load_le16(body + 4));
    } else {
        add(local, place, header, by_point ? "Removal" : "Departure", "reason", load_le16(body));
    }
}
