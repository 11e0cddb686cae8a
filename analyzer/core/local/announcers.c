/* SPDX-License-Identifier: Apache-2.0 */
/* Announcements (RFC 5798, RFC 3768, RFC 4861 section 4.2, IEEE 802.3 annex 31B, IEEE 802.1D).
 *
 *   VRRP                              router: ICMPv6             pause, behind the EtherType
 *   OFFSET SIZE                       OFFSET SIZE                OFFSET SIZE
 *   0      1    version, type 1       4      1    hop limit      0      2    1: pause
 *   1      1    virtual router        5      1    flags          2      2    quanta
 *   2      1    priority              6      2    lifetime, s    BPDU, behind LLC or SNAP
 *   3      1    number of addresses   16     ..   options        0      2    0
 *   8      ..   addresses                                        2      1    version
 *                                                                3      1    type: 0x80 a change
 *                                                                4      1    flags: 1 a change
 *
 * CARP has the protocol number of VRRP and another length. Priority 0, lifetime 0, a pause of 0 and
 * a missing router flag withdraw. A bridge tells a change in many BPDUs, which count once; the
 * first CHANGES_MOST have entries of their own, by number. Once ANNOUNCERS_MOST are listed, further
 * ones are left out. */
#include "local/announcers.h"

#include "base/bytes.h"

#define VRRP_BYTES     8u
#define VRRP_PASSWORD  8u /* behind the addresses, in version 2 */
#define ROUTER_BYTES   8u /* behind the 8 bytes that all messages of ICMPv6 have */
#define OPTION_UNIT    8u
#define OPTION_PREFIX  3u
#define PREFIX_BYTES   32u
#define PREFIX_AT      16u
#define PREFIX_SIZE    16u
#define CONTROL_BYTES  4u
#define CONTROL_PAUSE  1u
#define ETHERNET_BYTES 14u
#define ROUTER_FLAG    0x80
#define BPDU_BYTES     5u
#define BPDU_CHANGE    0x80 /* type */
#define FLAG_CHANGE    1
#define CHANGE_NS      INT64_C(10000000000) /* a bridge tells a change again after 2 s */
#define CHANGES_MOST   256u                 /* of a bridge, that are listed */

_Static_assert(sizeof(struct announcer_key) == 40, "words without padding");

/* Returns the entry of an announcer; NULL if it is one too many, or without memory. */
static struct announcer *announcer_of(struct local_exchanges *local,
                                      const struct local_packet *place,
                                      const struct announcer_key *key) {
    struct announcer *announcer = keyed_list_find(&local->announcers, key);
    if (announcer || keyed_list_replaced(&local->announcers))
        return announcer;
    announcer = keyed_list_add(&local->announcers, key);
    local->out_of_memory |= !announcer;
    if (!announcer)
        return NULL;
    announcer->first_ns = announcer->last_ns = place->time_ns;
    announcer->first_frame = place->frame;
    announcer->vlan = place->vlan;
    return announcer;
}

static void announce(struct local_exchanges *local, const struct local_packet *place,
                     const struct announcer_key *key, uint32_t value,
                     const struct announcer *like) {
    struct announcer *announcer = announcer_of(local, place, key);
    if (!announcer)
        return;
    if (!announcer->addressed && like->addressed) {
        announcer->addressed = true;
        announcer->prefix_length = like->prefix_length;
        memcpy(announcer->address, like->address, sizeof announcer->address);
    }
    announcer->packets++;
    announcer->withdrawals += !value;
    announcer->last_ns = place->time_ns;
    announcer->last_frame = place->frame;
    if (value > announcer->value)
        announcer->value = value;
}

void vrrp_take(struct local_exchanges *local, const struct local_packet *place,
               const struct headers *headers) {
    const uint8_t *bytes = headers->payload;
    uint32_t length = headers->payload_length, size = headers->ip_version == 4 ? 4 : 16;
    struct announcer like = {.addressed = true};
    if (headers->payload_captured < VRRP_BYTES + size || headers->ttl != UINT8_MAX || !bytes[3])
        return;
    uint32_t all = VRRP_BYTES + bytes[3] * size + (bytes[0] >> 4 == 2 ? VRRP_PASSWORD : 0);
    if ((bytes[0] != 0x21 && bytes[0] != 0x31) || length != all)
        return;
    memcpy(like.address, bytes + VRRP_BYTES, size);
    struct announcer_key key = {.path = place->path,
                                .interface = place->interface,
                                .kind = WORD_VRRP,
                                .version = headers->ip_version,
                                .number = bytes[1]};
    memcpy(key.source, headers->source, sizeof key.source);
    announce(local, place, &key, bytes[2], &like);
}

/* Keeps the least prefix, so that two routers with the same ones agree in whatever order. */
static void take_prefix(struct announcer *like, const uint8_t *option) {
    const uint8_t *prefix = option + PREFIX_AT;
    bool link_local = prefix[0] == 0xFE && (prefix[1] & 0xC0) == 0x80;
    if (link_local || (like->addressed && memcmp(prefix, like->address, PREFIX_SIZE) >= 0))
        return;
    like->addressed = true;
    like->prefix_length = option[2];
    memcpy(like->address, prefix, PREFIX_SIZE);
}

void router_take(struct local_exchanges *local, const struct local_packet *place,
                 const struct headers *headers) {
    const uint8_t *bytes = headers->payload;
    uint32_t length = headers->payload_captured;
    struct announcer like = {0};
    if (length < ROUTER_BYTES || headers->ttl != UINT8_MAX) /* RFC 4861 section 6.1.2 */
        return;
    for (uint32_t at = ROUTER_BYTES; at + OPTION_UNIT <= length && bytes[at + 1];
         at += bytes[at + 1] * OPTION_UNIT)
        if (bytes[at] == OPTION_PREFIX && length - at >= PREFIX_BYTES)
            take_prefix(&like, bytes + at);
    struct announcer_key key = {
        .path = place->path, .interface = place->interface, .kind = WORD_ROUTER, .version = 6};
    memcpy(key.source, headers->source, sizeof key.source);
    announce(local, place, &key, load_be16(bytes - 2), &like);
}

/* Only whole frames of Ethernet have the sender where it is looked for. */
void pause_take(struct local_exchanges *local, const struct local_packet *place,
                const struct packet *packet, const struct headers *headers) {
    uint32_t at = headers->control_offset;
    if (at != ETHERNET_BYTES || packet->captured < at + CONTROL_BYTES ||
        load_be16(packet->data + at) != CONTROL_PAUSE)
        return;
    struct announcer_key key = {
        .path = place->path, .interface = place->interface, .kind = WORD_PAUSE};
    const struct announcer like = {0};
    memcpy(key.mac, packet->data + MAC_BYTES, MAC_BYTES);
    announce(local, place, &key, load_be16(packet->data + at + 2), &like);
}

void router_flag_take(struct local_exchanges *local, const struct local_packet *place,
                      const struct headers *headers) {
    const struct announcer like = {0};
    struct announcer_key key = {
        .path = place->path, .interface = place->interface, .kind = WORD_ROUTER, .version = 6};
    memcpy(key.source, headers->source, sizeof key.source);
    if (!keyed_list_find(&local->announcers, &key))
        return;
    key.kind = WORD_ROUTER_NA;
    announce(local, place, &key, headers->payload[-4] & ROUTER_FLAG ? 1 : 0, &like);
}

/* Returns whether the frame begins with Ethernet's header, and at most one VLAN tag, before LLC or
 * SNAP. */
static bool is_ethernet_bpdu(uint32_t at) {
    return at == ETHERNET_BYTES + 3 || at == ETHERNET_BYTES + 7 || at == ETHERNET_BYTES + 8 ||
           at == ETHERNET_BYTES + 12;
}

void bridge_take(struct local_exchanges *local, const struct local_packet *place,
                 const struct packet *packet, const struct headers *headers) {
    const uint8_t *bytes = packet->data + headers->control_offset;
    if (!is_ethernet_bpdu(headers->control_offset) ||
        packet->captured < headers->control_offset + BPDU_BYTES || load_be16(bytes))
        return;
    struct announcer_key key = {
        .path = place->path, .interface = place->interface, .kind = WORD_BRIDGE};
    memcpy(key.mac, packet->data + MAC_BYTES, MAC_BYTES);
    struct announcer *bridge = announcer_of(local, place, &key);
    if (!bridge)
        return;
    bool change = bytes[3] == BPDU_CHANGE || bytes[4] & FLAG_CHANGE;
    bool timed = place->time_ns != TIME_UNKNOWN && bridge->last_ns != TIME_UNKNOWN;
    bool later = timed && place->time_ns - bridge->last_ns > CHANGE_NS;
    bridge->value += change && (!bridge->changing || later);
    bridge->changing = change;
    bridge->packets++;
    bridge->withdrawals += !change;
    bridge->last_ns = place->time_ns;
    bridge->last_frame = place->frame;
    if (!change || bridge->value > CHANGES_MOST)
        return;
    key.kind = WORD_BRIDGE_CHANGE;
    key.number = (uint16_t)bridge->value;
    announce(local, place, &key, 1, &(struct announcer){0});
}

void announcer_row_add(const struct local_exchanges *local, const void *entry,
                       struct row_sink *sink) {
    (void)local;
    const struct announcer *announcer = entry;
    const struct announcer_key *key = &announcer->key;
    struct row row;
    row_clear(&row);
    row_set(&row, announcers_capture, key->interface);
    row_set(&row, announcers_kind, key->kind);
    row_set_if(&row, announcers_vlan, announcer->vlan, announcer->vlan);
    if (key->kind == WORD_PAUSE || key->kind == WORD_BRIDGE || key->kind == WORD_BRIDGE_CHANGE)
        row_set_mac(sink, &row, announcers_mac, key->mac);
    else
        row_set(&row, announcers_source, add_address(sink, key->version, key->source));
    row_set_if(&row, announcers_number, key->kind == WORD_VRRP, key->number);
    row_set(&row, announcers_value, announcer->value);
    if (announcer->addressed)
        row_set(&row, announcers_address, add_address(sink, key->version, announcer->address));
    row_set_if(&row, announcers_prefix_length, announcer->addressed && key->kind == WORD_ROUTER,
               announcer->prefix_length);
    row_set(&row, announcers_packets, (int64_t)announcer->packets);
    row_set(&row, announcers_withdrawals, (int64_t)announcer->withdrawals);
    row_set_if(&row, announcers_first_ns, announcer->first_ns != TIME_UNKNOWN, announcer->first_ns);
    row_set_if(&row, announcers_last_ns, announcer->last_ns != TIME_UNKNOWN, announcer->last_ns);
    row_set(&row, announcers_first_frame, (int64_t)announcer->first_frame);
    row_set(&row, announcers_last_frame, (int64_t)announcer->last_frame);
    add_row(sink, TABLE_announcers, &row);
}
