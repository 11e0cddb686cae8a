/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbor solicitations and advertisements of IPv6 (RFC 4861 sections 4.3, 4.4 and 4.6.1).
 *
 *   OFFSET SIZE   behind the first 4 bytes of ICMPv6
 *   0      4      advertisement: router, solicited, override
 *   4      16     target
 *   20     ..     options: type, length in units of 8 bytes; 1 and 2 have a MAC address
 *
 * Duplicate address detection asks from the unspecified address (RFC 4862 section 5.4) and expects
 * no answer: it is a row only if another host advertises the address to all nodes at once. Else an
 * advertisement that nobody solicited announces. */
#include <stdio.h>

#include "base/bytes.h"
#include "exchange/exchange.h"
#include "local/announcers.h"
#include "local/neighbor.h"

#define TARGET_BYTES   16u
#define ETHERNET_BYTES 14u
#define TAG_BYTES      4u
#define HEADERS_BYTES  48u /* of IPv6, and of ICMPv6 before the target */
#define DETECTION_NS                                                                               \
    INT64_C(1000000000) /* RetransTimer: a host that got no answer has the address */

enum { SOLICITED = 0x40, OPTION_SOURCE = 1, OPTION_TARGET = 2, OPTION_BYTES = 8 };

/* Returns the MAC address of an option; NULL without it. */
static const uint8_t *mac_of(const struct headers *headers, uint8_t type) {
    const uint8_t *payload = headers->payload;
    uint32_t at = TARGET_BYTES;
    while (at + OPTION_BYTES <= headers->payload_captured && payload[at + 1]) {
        if (payload[at] == type && payload[at + 1] == 1)
            return payload + at + 2;
        at += payload[at + 1] * OPTION_BYTES;
    }
    return NULL;
}

static bool is_host(const uint8_t *address) {
    static const uint8_t unspecified[TARGET_BYTES];
    return address[0] != 0xFF && memcmp(address, unspecified, TARGET_BYTES) != 0;
}

static struct exchange_key key_of(const struct local_packet *place, const uint8_t *client,
                                  const uint8_t *server) {
    struct exchange_key key = {
        .path = place->path, .interface = place->interface, .kind = WORD_ND, .version = 6};
    memcpy(key.client, client, sizeof key.client);
    memcpy(key.server, server, sizeof key.server);
    return key;
}

/* Returns who sent a frame; NULL if it is no frame of Ethernet, tagged or not. */
static const uint8_t *sender_of(const struct packet *packet, const struct headers *headers) {
    size_t at = (size_t)(headers->payload - packet->data);
    for (unsigned tags = 0; tags < 3; tags++)
        if (at == ETHERNET_BYTES + tags * TAG_BYTES + HEADERS_BYTES)
            return packet->data + MAC_BYTES;
    return NULL;
}

static struct exchange_key detection_of(const struct local_packet *place, const uint8_t *target) {
    static const uint8_t unspecified[TARGET_BYTES];
    struct exchange_key key = key_of(place, unspecified, target);
    key.kind = WORD_DAD;
    return key;
}

/* Settled at once, so that it is no row without an answer. */
static void take_detection(struct local_exchanges *local, const struct local_packet *place,
                           const uint8_t *target, const uint8_t *mac) {
    char text[3 * MAC_BYTES + 1] = "";
    struct exchange_key key = detection_of(place, target);
    struct local_exchange *exchange = mac ? exchange_ask(local, &key, place) : NULL;
    if (!exchange || exchange->settled)
        return;
    exchange->settled = exchange->unasked = true; /* it waits in any case */
    for (unsigned i = 0; i < MAC_BYTES; i++)
        snprintf(text + (size_t)3 * i, sizeof text - (size_t)3 * i, "%02x:", mac[i]);
    exchange_put_name(exchange, (const uint8_t *)text, 3 * MAC_BYTES - 1);
    memcpy(exchange->asker, mac, MAC_BYTES);
}

/* The address was in use before: its host says so to all, because the other one has none yet. */
static void take_defense(struct local_exchanges *local, const struct local_packet *place,
                         const uint8_t *target, const uint8_t *mac) {
    struct exchange_key key = detection_of(place, target);
    struct local_exchange *exchange = keyed_list_find(&local->exchanges, &key);
    if (!exchange || exchange->answered_frame || !is_mac(mac) ||
        !memcmp(mac, exchange->asker, MAC_BYTES) || place->time_ns == TIME_UNKNOWN ||
        exchange->last_ns == TIME_UNKNOWN || place->time_ns < exchange->last_ns ||
        place->time_ns - exchange->last_ns > DETECTION_NS)
        return;
    memcpy(exchange->mac, mac, MAC_BYTES);
    exchange_settle(local, exchange, place, WORD_REFUSED, NULL);
}

static void take_solicitation(struct local_exchanges *local, const struct local_packet *place,
                              const struct packet *packet, const struct headers *headers) {
    static const uint8_t unspecified[TARGET_BYTES];
    const uint8_t *target = headers->payload, *mac = mac_of(headers, OPTION_SOURCE);
    if (is_host(target) && !memcmp(headers->source, unspecified, sizeof unspecified))
        take_detection(local, place, target, sender_of(packet, headers));
    if (!is_host(headers->source) || !is_host(target))
        return;
    if (mac)
        neighbor_claim(local, place, 6, headers->source, mac, false);
    struct exchange_key key = key_of(place, headers->source, target);
    exchange_ask(local, &key, place);
}

static void take_advertisement(struct local_exchanges *local, const struct local_packet *place,
                               const struct headers *headers) {
    static const uint8_t none[MAC_BYTES];
    const uint8_t *target = headers->payload, *mac = mac_of(headers, OPTION_TARGET);
    bool answers = headers->payload[-4] & SOLICITED && is_host(headers->destination);
    if (!is_host(target))
        return;
    if (mac)
        neighbor_claim(local, place, 6, target, mac, answers);
    if (!memcmp(headers->source, target, TARGET_BYTES))
        router_flag_take(local, place, headers);
    if (!(headers->payload[-4] & SOLICITED) && mac)
        take_defense(local, place, target, mac);
    if (!answers)
        return;
    struct exchange_key key = key_of(place, headers->destination, target);
    const struct local_exchange *exchange = exchange_answer(local, &key, place, mac ? mac : none);
    if (exchange && exchange->settled && mac)
        neighbor_conflict(local, place, exchange, mac);
}

void nd_take(struct local_exchanges *local, const struct local_packet *place,
             const struct packet *packet, const struct headers *headers) {
    if (headers->payload_captured < TARGET_BYTES || headers->ttl != UINT8_MAX) /* RFC 4861 7.1 */
        return;
    if (headers->icmp.type == ICMPV6_SOLICITATION)
        take_solicitation(local, place, packet, headers);
    else
        take_advertisement(local, place, headers);
}
