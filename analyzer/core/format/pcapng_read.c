/* SPDX-License-Identifier: Apache-2.0 */
/* The pcapng file format (draft-ietf-opsawg-pcapng): a sequence of blocks.
 *
 *   Block                       Packet body (enhanced; obsolete packet blocks differ in the first
 *   OFFSET SIZE                 word: 2 bytes interface, 2 bytes drops)
 *   0      4   type             OFFSET SIZE
 *   4      4   total length     0      4   interface, counted from the section's first
 *   8      ..  body             4      8   time in the interface's units, high word first
 *   -4     4   total length     12     4   captured length
 *                               16     4   length on wire
 *                               20     ..  data, padded to 4 bytes, then options
 *
 * All fields are in the byte order of their section.
 *
 * Reads the files that libpcap reads, and those with interfaces of mixed link types, sections of
 * both byte orders, statistics and comments. Blocks of other types are skipped; journal blocks
 * count as frames, as in Wireshark. An error in the first section header rejects the file; a later
 * one ends it as damage. */
#include "format/pcapng_section.h"

#include <stdlib.h>

#define BLOCK_HEADER    8
#define BLOCK_MIN       12
#define PACKET_FIXED    20
#define BYTE_ORDER_SIZE 12 /* a section header up to its byte-order magic */
#define FLAG_FCS_SHIFT  5  /* epb_flags, bits 5 to 8: length of the FCS in bytes */
#define FLAG_FCS_MASK   0xF

enum { OPTION_PACKET_FLAGS = 2 };

enum taken { TAKEN_NOTHING, TAKEN_PACKET, TAKEN_DAMAGE };

/* The type of a section header is a palindrome, so one byte order suffices. */
static bool match_pcapng(const uint8_t *first) {
    return load_le32(first) == BLOCK_SECTION;
}

/* A section header has its own byte order, which may differ from that of the section before. */
static bool find_byte_order(struct capture_file *file, struct pcapng_block *block,
                            const uint8_t *p) {
    block->big_endian = load_be32(p + BLOCK_HEADER) == BYTE_ORDER_MAGIC;
    if (block->big_endian || load_le32(p + BLOCK_HEADER) == BYTE_ORDER_MAGIC)
        return true;
    capture_file_set_damage(file, input_stream_offset(&file->stream),
                            "expected the pcapng byte-order magic 1a2b3c4d, found %08x",
                            load_be32(p + BLOCK_HEADER));
    return false;
}

static NOINLINE bool damage_length(struct capture_file *file, uint32_t length) {
    const char *wrong = length % 4           ? "is no multiple of 4"
                        : length < BLOCK_MIN ? "is less than 12"
                                             : "is more than this reader takes";
    capture_file_set_damage(file, input_stream_offset(&file->stream), "pcapng block length %u %s",
                            length, wrong);
    return false;
}

static NOINLINE bool damage_trailer(struct capture_file *file, uint32_t length, uint32_t trailer) {
    capture_file_set_damage(file, input_stream_offset(&file->stream),
                            "pcapng block length is %u at the block's start but %u at its end",
                            length, trailer);
    return false;
}

/* Reads the length, body and trailer of the block at the cursor. The length is checked before it is
 * waited for, because a wrong one could make the window grow. Returns false with file->need or
 * damage set. */
static ALWAYS_INLINE bool load_body(struct capture_file *file, struct pcapng_block *block,
                                    bool big_endian) {
    const struct pcapng_reader *reader = file->reader;
    const uint8_t *p = file->stream.cursor;
    uint32_t length = pcapng_load_u32(p + 4, big_endian);
    if (!LIKELY(length % 4 == 0 && length >= BLOCK_MIN && length <= reader->block_max))
        return damage_length(file, length);
    file->need = length;
    if (input_stream_available(&file->stream) < length)
        return false;
    block->length = length;
    block->body = p + BLOCK_HEADER;
    block->size = length - BLOCK_MIN;
    uint32_t trailer = pcapng_load_u32(p + length - 4, big_endian);
    return LIKELY(trailer == length) || damage_trailer(file, length, trailer);
}

static NOINLINE bool load_section(struct capture_file *file, struct pcapng_block *block) {
    return find_byte_order(file, block, file->stream.cursor) &&
           load_body(file, block, block->big_endian);
}

/* Loads the whole block at the cursor of a section of that byte order. Returns false if more
 * bytes are needed, or with damage set. */
static ALWAYS_INLINE bool load_block(struct capture_file *file, struct pcapng_block *block,
                                     bool big_endian) {
    file->need = BLOCK_MIN;
    if (input_stream_available(&file->stream) < BLOCK_MIN)
        return false;
    block->big_endian = big_endian;
    block->type = pcapng_load_u32(file->stream.cursor, big_endian);
    return block->type == BLOCK_SECTION ? load_section(file, block)
                                        : load_body(file, block, big_endian);
}

/* Ends the file at this block. `what` formats two unsigned long long. */
static NOINLINE enum taken damage_block(struct capture_file *file, const char *what,
                                        uint64_t claimed, uint64_t limit) {
    capture_file_set_damage(file, input_stream_offset(&file->stream), what,
                            (unsigned long long)claimed, (unsigned long long)limit);
    return TAKEN_DAMAGE;
}

/* Interfaces are numbered from 0 in each section and must be described before their packets. */
static inline const struct pcapng_interface *find_interface(struct capture_file *file,
                                                            uint32_t number) {
    const struct pcapng_reader *reader = file->reader;
    if (LIKELY(number < reader->count))
        return &reader->interfaces[number];
    damage_block(file, "a packet of interface %llu, but the section has described only %llu",
                 number, reader->count);
    return NULL;
}

/* Counts comments. An FCS length in the packet's flags overrides that of the interface. */
static NOINLINE void read_packet_options(struct capture_file *file, struct pcapng_options options,
                                         const struct pcapng_interface *interface, uint32_t *fcs) {
    bool commented = false;
    while (pcapng_options_next(&options)) {
        const struct pcapng_option *option = &options.current;
        commented |= option->code == OPTION_COMMENT;
        if (option->code != OPTION_PACKET_FLAGS || option->length != 4)
            continue;
        uint32_t flags = pcapng_load_u32(option->value, options.big_endian);
        uint32_t own = flags >> FLAG_FCS_SHIFT & FLAG_FCS_MASK;
        if (own)
            *fcs = own;
    }
    if (commented)
        file->list->items[interface->number]->comments++;
}

/* Reads an enhanced or obsolete packet block, whose bodies agree from byte 4 on. Options exist only
 * if bytes are left after the padded data. */
static ALWAYS_INLINE enum taken take_packet(struct capture_file *file,
                                            const struct pcapng_block *block, struct packet *packet,
                                            uint32_t number, bool big_endian) {
    const struct pcapng_interface *interface = find_interface(file, number);
    if (!interface)
        return TAKEN_DAMAGE;
    const uint8_t *body = block->body;
    uint64_t high = pcapng_load_u32(body + 4, big_endian);
    uint32_t captured = pcapng_load_u32(body + 12, big_endian);
    size_t room = block->size - PACKET_FIXED;
    if (!LIKELY(captured <= room))
        return damage_block(file, "captured length %llu is more than its block has (%llu)",
                            captured, room);
    packet->captured = captured;
    packet->length = pcapng_load_u32(body + 16, big_endian);
    packet->time_ns =
        pcapng_time_ns(&interface->time, high << 32 | pcapng_load_u32(body + 8, big_endian));
    packet->frame = ++file->frame;
    packet->data = body + PACKET_FIXED;
    packet->interface = interface->number;
    packet->link_type = interface->link_type;
    uint32_t fcs = interface->fcs;
    size_t padded = ((size_t)captured + 3) & ~(size_t)3;
    if (padded < room)
        read_packet_options(file,
                            (struct pcapng_options){.cursor = packet->data + padded,
                                                    .left = room - padded,
                                                    .big_endian = big_endian},
                            interface, &fcs);
    if (fcs)
        packet_strip_fcs(packet, fcs);
    return TAKEN_PACKET;
}

static ALWAYS_INLINE enum taken take_enhanced(struct capture_file *file,
                                              const struct pcapng_block *block,
                                              struct packet *packet, bool big_endian) {
    if (!LIKELY(block->size >= PACKET_FIXED))
        return damage_block(file, "an enhanced packet block body has %llu bytes, expected %llu",
                            block->size, PACKET_FIXED);
    return take_packet(file, block, packet, pcapng_load_u32(block->body, big_endian), big_endian);
}

/* The block type 2 of early drafts, with an interface number of 16 bits; its drop count is ignored.
 */
static enum taken take_obsolete(struct capture_file *file, const struct pcapng_block *block,
                                struct packet *packet) {
    if (block->size < PACKET_FIXED)
        return damage_block(file, "a packet block body has %llu bytes, expected %llu", block->size,
                            PACKET_FIXED);
    uint16_t number = block->big_endian ? load_be16(block->body) : load_le16(block->body);
    return take_packet(file, block, packet, number, block->big_endian);
}

/* A simple packet block has neither time nor captured length: the data end at the snap length of
 * the section's first interface. */
static enum taken take_simple(struct capture_file *file, const struct pcapng_block *block,
                              struct packet *packet) {
    enum { SIMPLE_FIXED = 4 };
    if (block->size < SIMPLE_FIXED)
        return damage_block(file, "a simple packet block body has %llu bytes, expected %llu",
                            block->size, SIMPLE_FIXED);
    const struct pcapng_interface *interface = find_interface(file, 0);
    if (!interface)
        return TAKEN_DAMAGE;
    packet->length = packet->captured = pcapng_load_u32(block->body, block->big_endian);
    if (interface->snaplen && packet->captured > interface->snaplen)
        packet->captured = interface->snaplen;
    if (packet->captured > block->size - SIMPLE_FIXED)
        return damage_block(file, "captured length %llu is more than its block has (%llu)",
                            packet->captured, block->size - SIMPLE_FIXED);
    packet->time_ns = TIME_UNKNOWN;
    packet->frame = ++file->frame;
    packet->data = block->body + SIMPLE_FIXED;
    packet->interface = interface->number;
    packet->link_type = interface->link_type;
    if (interface->fcs)
        packet_strip_fcs(packet, interface->fcs);
    return TAKEN_PACKET;
}

/* Wireshark numbers these blocks as frames although they are not packets. */
static enum taken take_counted(struct capture_file *file, const struct pcapng_block *block,
                               struct packet *packet) {
    (void)block;
    (void)packet;
    file->frame++;
    return TAKEN_NOTHING;
}

static enum taken take_described(struct capture_file *file, const struct pcapng_block *block,
                                 struct packet *packet) {
    (void)packet;
    return pcapng_section_take(file, block) ? TAKEN_NOTHING : TAKEN_DAMAGE;
}

static const struct {
    uint32_t type;
    enum taken (*take)(struct capture_file *file, const struct pcapng_block *block,
                       struct packet *packet);
} takers[] = {
    {BLOCK_SECTION, take_described},    {BLOCK_INTERFACE, take_described},
    {BLOCK_STATISTICS, take_described}, {BLOCK_SIMPLE_PACKET, take_simple},
    {BLOCK_PACKET, take_obsolete},      {BLOCK_JOURNAL, take_counted},
};

/* Returns TAKEN_NOTHING for unknown block types: readers must skip them (section 3.1). */
static NOINLINE enum taken take_other_block(struct capture_file *file,
                                            const struct pcapng_block *block,
                                            struct packet *packet) {
    for (size_t i = 0; i < sizeof takers / sizeof *takers; i++)
        if (takers[i].type == block->type)
            return takers[i].take(file, block, packet);
    return TAKEN_NOTHING;
}

/* Reads blocks while the byte order of the file stays the same. */
static ALWAYS_INLINE size_t take_blocks(struct capture_file *file, struct packet *packets,
                                        size_t most, bool big_endian) {
    const struct pcapng_reader *reader = file->reader;
    struct pcapng_block block;
    size_t count = 0;
    while (count < most && reader->big_endian == big_endian &&
           load_block(file, &block, big_endian)) {
        enum taken taken = LIKELY(block.type == BLOCK_ENHANCED_PACKET)
                               ? take_enhanced(file, &block, &packets[count], big_endian)
                               : take_other_block(file, &block, &packets[count]);
        if (taken == TAKEN_DAMAGE)
            break;
        count += taken == TAKEN_PACKET;
        file->stream.cursor += block.length;
    }
    return count;
}

/* The loop is compiled once for each byte order; a section with the other one leaves it and enters
 * the other. */
static size_t parse_pcapng(struct capture_file *file, struct packet *packets, size_t most) {
    const struct pcapng_reader *reader = file->reader;
    size_t count = 0;
    bool big_endian;
    do {
        big_endian = reader->big_endian;
        count += big_endian ? take_blocks(file, packets + count, most - count, true)
                            : take_blocks(file, packets + count, most - count, false);
    } while (reader->big_endian != big_endian && count < most && !file->ended);
    return count;
}

/* An error in the first section header makes the file unreadable instead of damaged. */
static bool damage_to_error(struct capture_file *file, struct error *error) {
    error_set(error, ERROR_UNREADABLE, "%s", file->damage.text);
    file->damage = (struct damage){0};
    file->ended = false;
    return false;
}

static bool begin_pcapng(struct capture_file *file, struct error *error) {
    struct pcapng_reader *reader = file->reader = calloc(1, sizeof *reader);
    struct pcapng_block block;
    if (!reader)
        return error_set(error, ERROR_MEMORY, "%s: out of memory", file->name);
    reader->block_max = RECORD_SIZE_MAX;
    if (!capture_file_need_header(file, BYTE_ORDER_SIZE, "a pcapng section header", error))
        return false;
    while (!load_block(file, &block, reader->big_endian)) {
        if (file->ended)
            return damage_to_error(file, error);
        if (!capture_file_need_header(file, file->need, "a pcapng section header", error))
            return false;
    }
    if (!pcapng_section_take(file, &block))
        return damage_to_error(file, error);
    file->stream.cursor += block.length;
    return true;
}

const struct capture_format pcapng_format = {match_pcapng, begin_pcapng, parse_pcapng,
                                             pcapng_reader_close};
