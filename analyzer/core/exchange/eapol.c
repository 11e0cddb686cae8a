/* SPDX-License-Identifier: Apache-2.0 */
/* EAPOL of 802.1X over Ethernet (IEEE 802.1X clause 11, RFC 3748): who asks for a login, and what
 * came of it.
 *
 *   OFFSET SIZE                                       of EAP, from 4 on
 *   0      1    version                               0   1   1 request, 2 response, 3 success, 4
 * failure 1      1    0 EAP, 1 start, 2 logoff, 3 key       1   1   identifier 2      2    length
 * 4   1   type: 1 identity
 *
 * A Start of a station waits for the first message of the switch. A Request of the switch waits for
 * any Response. A login begins with the identity of the station, and ends with Success or Failure.
 * Switches send to the station or to the group of all ports, which no bridge forwards, so the
 * answers are those of this capture point. */
#include <stdio.h>

#include "exchange/exchange.h"

#define EAPOL_BYTES    4u
#define EAP_AT         4u
#define ETHERNET_BYTES 14u

enum eapol_type { EAPOL_EAP = 0, EAPOL_START = 1 };
enum eap_code { EAP_REQUEST = 1, EAP_RESPONSE = 2, EAP_SUCCESS = 3, EAP_FAILURE = 4 };
enum step { STEP_START, STEP_REQUEST, STEP_LOGIN };

static const char *const types[] = {"Start", "Request", "Login"};

/* A port has one station as a rule, and the switch may answer to the group: no address counts. */
static struct exchange_key key_of(const struct local_packet *place, enum step step) {
    return (struct exchange_key){
        .path = place->path, .interface = place->interface, .kind = WORD_EAPOL, .id = step};
}

static void put_sender(struct local_exchange *exchange, const uint8_t *mac) {
    char text[3 * MAC_BYTES];
    for (unsigned i = 0; i < MAC_BYTES; i++)
        snprintf(text + (size_t)3 * i, sizeof text - (size_t)3 * i,
                 i + 1 < MAC_BYTES ? "%02x:" : "%02x", mac[i]);
    exchange_put_name(exchange, (const uint8_t *)text, sizeof text - 1);
}

static void ask(struct local_exchanges *local, const struct local_packet *place, enum step step,
                const uint8_t *mac) {
    struct exchange_key key = key_of(place, step);
    struct local_exchange *exchange = exchange_ask(local, &key, place);
    if (!exchange || exchange->type)
        return;
    exchange->type = types[step];
    put_sender(exchange, mac);
}

static void settle(struct local_exchanges *local, const struct local_packet *place, enum step step,
                   enum word outcome, const char *code) {
    struct exchange_key key = key_of(place, step);
    struct local_exchange *exchange = keyed_list_find(&local->exchanges, &key);
    if (exchange && !exchange->settled)
        exchange_settle(local, exchange, place, outcome, code);
}

static void take_eap(struct local_exchanges *local, const struct local_packet *place,
                     const uint8_t *mac, uint8_t code, bool identity) {
    switch (code) {
    case EAP_REQUEST:
        settle(local, place, STEP_START, WORD_ANSWERED, "Request");
        ask(local, place, STEP_REQUEST, mac);
        break;
    case EAP_RESPONSE:
        settle(local, place, STEP_REQUEST, WORD_ANSWERED, "Response");
        if (identity)
            ask(local, place, STEP_LOGIN, mac);
        break;
    case EAP_SUCCESS:
        settle(local, place, STEP_START, WORD_ANSWERED, "Success");
        settle(local, place, STEP_LOGIN, WORD_ANSWERED, "Success");
        break;
    case EAP_FAILURE:
        settle(local, place, STEP_START, WORD_ANSWERED, "Failure");
        settle(local, place, STEP_LOGIN, WORD_REFUSED, "Failure");
        break;
    default: break;
    }
}

/* Only whole frames of Ethernet have the sender where it is looked for. */
void eapol_take(struct local_exchanges *local, const struct local_packet *place,
                const struct packet *packet, const struct headers *headers) {
    uint32_t at = headers->control_offset;
    if (at != ETHERNET_BYTES || packet->captured < at + EAPOL_BYTES)
        return;
    const uint8_t *eapol = packet->data + at, *mac = packet->data + MAC_BYTES;
    uint32_t length = packet->captured - at;
    if (eapol[1] == EAPOL_START)
        ask(local, place, STEP_START, mac);
    else if (eapol[1] == EAPOL_EAP && length > EAP_AT)
        take_eap(local, place, mac, eapol[EAP_AT], length > EAP_AT + 4 && eapol[EAP_AT + 4] == 1);
}
