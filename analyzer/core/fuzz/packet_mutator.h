/* SPDX-License-Identifier: Apache-2.0 */
/* A mutator of libFuzzer that changes packets instead of bytes: it divides one into IP fragments,
 * in order or reversed, stores one a second time a few packets later, or swaps two. Bytes alone
 * would have to agree in two headers and two lengths before anything is a fragment.
 *
 * It takes little-endian pcap files of Ethernet without tags. All others, and every second of
 * these, are left to libFuzzer. */
#ifndef WIRETALE_FUZZ_PACKET_MUTATOR_H
#define WIRETALE_FUZZ_PACKET_MUTATOR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

#define FILE_HEADER       24u
#define RECORD_HEADER     16u /* time, captured length, length */
#define ETHERNET_HEADER   14u
#define IPV6_HEADER       40u
#define IPV6_FRAGMENT     8u
#define FRAGMENT_PROTOCOL 44u
#define RECORDS_MOST      4096u
#define PIECES_MOST       4u
#define DISTANCE_MOST     4u /* records between a packet and its copy, at most */
#define PACKET_ROOM       (RECORD_HEADER + ETHERNET_HEADER + IPV6_HEADER + IPV6_FRAGMENT + 65536u)

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* The file that is mutated. Record `i` ends where `i + 1` begins. */
struct mutated_file {
    uint8_t *data;
    size_t size, most;
    uint32_t records[RECORDS_MOST + 1];
    uint32_t count;
    uint32_t random;
};

static inline uint32_t draw(struct mutated_file *file, uint32_t below) {
    file->random = file->random * 1664525u + 1013904223u;
    return (file->random >> 8) % below;
}

static inline void store_le32(uint8_t *at, uint32_t value) {
    for (unsigned i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static inline void store_be16(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

/* Finds the whole records. Returns false if there are fewer than two, or it is another format. */
static inline bool find_records(struct mutated_file *file) {
    uint32_t at = FILE_HEADER;
    file->count = 0;
    if (file->size < FILE_HEADER || load_le32(file->data + 20) != 1 ||
        (load_le32(file->data) != 0xA1B2C3D4u && load_le32(file->data) != 0xA1B23C4Du))
        return false;
    file->records[0] = at;
    while (file->count < RECORDS_MOST && file->size - at >= RECORD_HEADER) {
        uint32_t captured = load_le32(file->data + at + 8);
        if (captured > file->size - at - RECORD_HEADER)
            break;
        at += RECORD_HEADER + captured;
        file->records[++file->count] = at;
    }
    return file->count >= 2;
}

/* Puts `length` bytes in the place of [from, to). Returns false if they have no room. */
static inline bool replace_bytes(struct mutated_file *file, uint32_t from, uint32_t to,
                                 const uint8_t *bytes, size_t length) {
    if (file->size - (to - from) + length > file->most)
        return false;
    memmove(file->data + from + length, file->data + to, file->size - to);
    memcpy(file->data + from, bytes, length);
    file->size = file->size - (to - from) + length;
    return true;
}

/* --- copies and order ------------------------------------------------------------------------ */

static inline uint32_t record_length(const struct mutated_file *file, uint32_t record) {
    return file->records[record + 1] - file->records[record];
}

/* Stores a packet a second time, at the time of the packet behind which it then is. */
static inline bool copy_packet(struct mutated_file *file) {
    static uint8_t copy[PACKET_ROOM];
    uint32_t record = draw(file, file->count), length = record_length(file, record);
    uint32_t behind = record + draw(file, DISTANCE_MOST);
    if (length > sizeof copy)
        return false;
    if (behind >= file->count)
        behind = file->count - 1;
    memcpy(copy, file->data + file->records[record], length);
    memcpy(copy, file->data + file->records[behind], 8);
    return replace_bytes(file, file->records[behind + 1], file->records[behind + 1], copy, length);
}

/* Swaps a packet with the next one; each gets the time of the other. */
static inline bool swap_packets(struct mutated_file *file) {
    static uint8_t both[2 * PACKET_ROOM];
    uint32_t record = draw(file, file->count - 1);
    uint32_t first = record_length(file, record), second = record_length(file, record + 1);
    const uint8_t *from = file->data + file->records[record];
    if (first + second > sizeof both)
        return false;
    memcpy(both, from + first, second);
    memcpy(both + second, from, first);
    memcpy(both, from, 8);
    memcpy(both + second, from + first, 8);
    return replace_bytes(file, file->records[record], file->records[record + 2], both,
                         first + second);
}

/* --- fragments ------------------------------------------------------------------------------- */

/* The IP packet of a record, and where it is divided. */
struct divided_packet {
    const uint8_t *record, *body;
    uint32_t ip_header, length, captured; /* bytes; the last two are those of the body */
    uint32_t cuts[PIECES_MOST + 1];
    unsigned pieces;
    bool ipv6;
};

static inline bool find_packet(struct mutated_file *file, uint32_t record,
                               struct divided_packet *packet) {
    const uint8_t *frame = file->data + file->records[record] + RECORD_HEADER;
    const uint8_t *ip = frame + ETHERNET_HEADER;
    uint32_t captured = record_length(file, record) - RECORD_HEADER;
    if (captured < ETHERNET_HEADER + IPV6_HEADER)
        return false;
    packet->record = frame - RECORD_HEADER;
    packet->ipv6 = load_be16(frame + 12) == 0x86DD;
    packet->ip_header = packet->ipv6 ? IPV6_HEADER : (uint32_t)(ip[0] & 15) * 4;
    uint32_t total = packet->ipv6 ? IPV6_HEADER + load_be16(ip + 4) : load_be16(ip + 2);
    bool divisible = packet->ipv6
                         ? ip[6] != FRAGMENT_PROTOCOL
                         : load_be16(frame + 12) == 0x0800 && !(load_be16(ip + 6) & 0x3FFF);
    if (!divisible || packet->ip_header < 20 || total < packet->ip_header + 16 ||
        captured < ETHERNET_HEADER + packet->ip_header)
        return false;
    packet->body = ip + packet->ip_header;
    packet->length = total - packet->ip_header;
    packet->captured = captured - ETHERNET_HEADER - packet->ip_header;
    if (packet->captured > packet->length) /* padding of Ethernet */
        packet->captured = packet->length;
    return true;
}

/* All pieces but the last are multiples of 8 bytes (RFC 791 section 3.2). The first one usually has
 * the header of its transport. */
static inline void choose_cuts(struct mutated_file *file, struct divided_packet *packet) {
    uint32_t units = (packet->length - 1) / 8, least = units > 4 && draw(file, 8) ? 4 : 1;
    packet->pieces = 1;
    for (unsigned i = 0, pieces = 1 + draw(file, PIECES_MOST - 1); i < pieces; i++) {
        uint32_t cut = 8 * (least + draw(file, units - least + 1));
        if (packet->pieces == 1 || cut > packet->cuts[packet->pieces - 1])
            packet->cuts[packet->pieces++] = cut;
    }
    packet->cuts[0] = 0;
    packet->cuts[packet->pieces] = packet->length;
}

/* Writes the record of a piece. Returns its end. */
static inline uint8_t *write_piece(const struct divided_packet *packet, unsigned piece,
                                   uint32_t number, uint8_t *out) {
    uint32_t start = packet->cuts[piece], length = packet->cuts[piece + 1] - start;
    uint32_t more = piece + 1 < packet->pieces;
    uint32_t present = packet->captured > start ? packet->captured - start : 0;
    uint8_t *ip = out + RECORD_HEADER + ETHERNET_HEADER, *body = ip + packet->ip_header;
    present = present < length ? present : length;
    memcpy(out, packet->record, RECORD_HEADER + ETHERNET_HEADER + packet->ip_header);
    if (packet->ipv6) {
        store_be16(ip + 4, IPV6_FRAGMENT + length);
        memset(body, 0, IPV6_FRAGMENT);
        body[0] = ip[6];
        ip[6] = FRAGMENT_PROTOCOL;
        store_be16(body + 2, start | more);
        store_be16(body + 6, number);
        body += IPV6_FRAGMENT;
    } else {
        store_be16(ip + 2, packet->ip_header + length);
        store_be16(ip + 6, start / 8 | more << 13);
    }
    memcpy(body, packet->body + start, present);
    const uint8_t *frame = out + RECORD_HEADER;
    store_le32(out + 8, (uint32_t)(body + present - frame));
    store_le32(out + 12, (uint32_t)(body + length - frame));
    return body + present;
}

/* Puts two to four fragments in the place of a packet. */
static inline bool divide_packet(struct mutated_file *file) {
    static uint8_t pieces[PIECES_MOST * PACKET_ROOM];
    uint32_t record = draw(file, file->count), number = draw(file, 65536);
    bool reversed = !draw(file, 3);
    struct divided_packet packet;
    uint8_t *end = pieces;
    if (!find_packet(file, record, &packet))
        return false;
    choose_cuts(file, &packet);
    for (unsigned i = 0; i < packet.pieces; i++)
        end = write_piece(&packet, reversed ? packet.pieces - 1 - i : i, number, end);
    return replace_bytes(file, file->records[record], file->records[record + 1], pieces,
                         (size_t)(end - pieces));
}

/* --- the mutator ----------------------------------------------------------------------------- */

static inline bool mutate_packet(struct mutated_file *file) {
    switch (draw(file, 4)) {
    case 0: return copy_packet(file);
    case 1: return swap_packets(file);
    default: return divide_packet(file);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    static struct mutated_file file;
    bool changed = false;
    file.data = data;
    file.size = size;
    file.most = most;
    file.random = seed;
    if (draw(&file, 2))
        return LLVMFuzzerMutate(data, size, most);
    for (unsigned i = 0, changes = 1 + draw(&file, 4); i < changes && find_records(&file); i++)
        changed |= mutate_packet(&file);
    return changed ? file.size : LLVMFuzzerMutate(data, size, most);
}

#endif
