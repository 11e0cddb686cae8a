/* SPDX-License-Identifier: Apache-2.0 */
/* ARP for IPv4 over Ethernet (RFC 826).
 *
 *   OFFSET SIZE                          OFFSET SIZE
 *   0      2    hardware: 1, or 6        8      6    MAC address of the sender
 *   2      2    protocol: 0x0800         14     4    its IP address
 *   4      2    lengths: 6 and 4         18     6    MAC address of the target
 *   6      2    1 request, 2 reply       24     4    its IP address
 *
 * A probe asks from 0.0.0.0 whether an address is free, and an announcement asks for the sender's
 * own (RFC 5227 section 1.1): both expect no reply. A reply that is no answer announces likewise.
 */
#include "base/bytes.h"
#include "exchange/exchange.h"
#include "local/neighbor.h"

#define ARP_BYTES 28u

enum arp_operation { ARP_REQUEST = 1, ARP_REPLY = 2 };

static bool is_host(const uint8_t *address) {
    return address[0] && address[0] < 224;
}

static struct exchange_key key_of(const struct local_packet *place, const uint8_t *client,
                                  const uint8_t *server) {
    struct exchange_key key = {
        .path = place->path, .interface = place->interface, .kind = WORD_ARP, .version = 4};
    memcpy(key.client, client, 4);
    memcpy(key.server, server, 4);
    return key;
}

/* Returns whether the packet is ARP for IPv4 over Ethernet, or IEEE 802 (RFC 1042). */
static bool is_ethernet_arp(const uint8_t *arp) {
    uint16_t hardware = load_be16(arp);
    return (hardware == 1 || hardware == 6) && load_be32(arp + 2) == 0x08000604;
}

void arp_take(struct local_exchanges *local, const struct local_packet *place,
              const struct packet *packet, const struct headers *headers) {
    if (packet->captured < headers->arp_offset ||
        packet->captured - headers->arp_offset < ARP_BYTES)
        return;
    const uint8_t *arp = packet->data + headers->arp_offset, *mac = arp + 8, *sender = arp + 14,
                  *target = arp + 24;
    uint16_t operation = load_be16(arp + 6);
    if (!is_ethernet_arp(arp) || (operation != ARP_REQUEST && operation != ARP_REPLY) ||
        !is_host(sender))
        return;
    bool announces = !memcmp(sender, target, 4) || !is_host(target);
    neighbor_claim(local, place, 4, sender, mac, operation == ARP_REPLY && !announces);
    if (announces)
        return;
    if (operation == ARP_REQUEST) {
        struct exchange_key key = key_of(place, sender, target);
        exchange_ask(local, &key, place);
        return;
    }
    struct exchange_key key = key_of(place, target, sender);
    const struct local_exchange *exchange = exchange_answer(local, &key, place, mac);
    if (exchange && exchange->settled)
        neighbor_conflict(local, place, exchange, mac);
}
