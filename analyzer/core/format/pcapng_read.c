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
 * both byte orders, statistics, comments and processes. Blocks of other types are skipped; journal
 * and custom blocks count as frames, as in Wireshark. An error in the first section header rejects
 * the file; a later one ends it as damage. */
#include "format/packet_origin.h"
#include "format/pcapng_process.h"
#include "format/pcapng_section.h"

#include <stdlib.h>

#define BLOCK_HEADER    8
#define BLOCK_MIN       12
#define PACKET_FIXED    20
#define SIMPLE_FIXED    4
#define BYTE_ORDER_SIZE 12 /* a section header up to its byte-order magic */
#define FLAG_FCS_SHIFT  5  /* epb_flags, bits 5 to 8: length of the FCS in bytes */
#define FLAG_FCS_MASK   0xF

enum { OPTION_PACKET_FLAGS = 2 };

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
    return capture_file_set_damage(file,
                                   "expected the pcapng byte-order magic 1a2b3c4d, found %08x",
                                   load_be32(p + BLOCK_HEADER));
}

static NOINLINE bool damage_length(struct capture_file *file, uint32_t length) {
    const char *wrong = length % 4           ? "is not a multiple of 4"
                        : length < BLOCK_MIN ? "is less than 12"
                                             : "exceeds the maximum";
    return capture_file_set_damage(file, "pcapng block length %u %s", length, wrong);
}

/* Reads the length, body and trailer of the block at the cursor. The length is checked before it is
 * waited for, because a wrong one could make the window grow. Returns false with file->need or
 * damage set. */
static ALWAYS_INLINE bool load_body(struct capture_file *file, struct pcapng_block *block,
                                    bool big_endian) {
    const struct pcapng_reader *reader = file->reader;
    const uint8_t *p = file->stream.cursor;
    uint32_t length = load_u32(p + 4, big_endian);
    if (!LIKELY(length % 4 == 0 && length >= BLOCK_MIN && length <= reader->block_max))
        return damage_length(file, length);
    file->need = length;
    if (input_stream_available(&file->stream) < length)
        return false;
    block->length = length;
    block->body = p + BLOCK_HEADER;
    block->size = length - BLOCK_MIN;
    uint32_t trailer = load_u32(p + length - 4, big_endian);
    return LIKELY(trailer == length) ||
           capture_file_set_damage(
               file, "pcapng block length is %u at the start of the block but %u at its end",
               length, trailer);
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
    block->has_packet = false;
    block->type = load_u32(file->stream.cursor, big_endian);
    return block->type == BLOCK_SECTION ? load_section(file, block)
                                        : load_body(file, block, big_endian);
}

/* Interfaces are numbered from 0 in each section and must be described before their packets. */
static inline const struct pcapng_interface *find_interface(struct capture_file *file,
                                                            uint32_t number) {
    const struct pcapng_reader *reader = file->reader;
    if (LIKELY(number < reader->count))
        return &reader->interfaces[number];
    capture_file_set_damage(file,
                            "a packet refers to interface %u, but the section describes only %u",
                            number, reader->count);
    return NULL;
}

/* Counts comments. An FCS length in the packet's flags overrides that of the interface. The process
 * is the first one that is named. */
static NOINLINE void read_packet_options(struct capture_file *file, struct pcapng_options options,
                                         const struct pcapng_interface *interface,
                                         struct packet *packet, uint32_t *fcs) {
    bool commented = false;
    packet->with_options = 1;
    while (pcapng_options_next(&options)) {
        const struct pcapng_option *option = &options.current;
        commented |= option->code == OPTION_COMMENT;
        if (!packet->process)
            packet->process = pcapng_process_of(file, packet, option, options.big_endian);
        if (option->code != OPTION_PACKET_FLAGS || option->length != 4)
            continue;
        uint32_t flags = load_u32(option->value, options.big_endian);
        uint32_t own = flags >> FLAG_FCS_SHIFT & FLAG_FCS_MASK;
        if (own)
            *fcs = own;
    }
    if (commented)
        file->list->items[interface->number]->comments++;
}

/* Reads the options of a packet in a shard, which are no others and in this order. The record stays
 * in the block, from which packet_origin_of() reads it. */
static NOINLINE bool read_origin(struct capture_file *file, struct pcapng_options options,
                                 struct packet *packet) {
    bool named = pcapng_options_next(&options) && options.current.code == OPTION_PACKET_ID &&
                 options.current.length == 8;
    if (!named)
        return capture_file_set_damage(file, "a packet of a shard without its frame");
    uint64_t id = load_le64(options.current.value);
    packet->frame = id & ((UINT64_C(1) << ID_FRAME_BITS) - 1);
    packet->shard = (uint16_t)(SHARD_PACKET | (id & ID_CUT ? SHARD_PAYLOAD_CUT : 0) |
                               (id >> ID_CHECKSUM_SHIFT & 3) << SHARD_CHECKSUM_SHIFT |
                               (id >> ID_IDS_SHIFT & UINT8_MAX) << SHARD_IDS_SHIFT);
    bool more = pcapng_options_next(&options);
    if (more && options.current.code == OPTION_ORIGIN && options.current.length == ORIGIN_SIZE) {
        packet->shard |= SHARD_ORIGIN;
        packet->time_ns = packet_origin_of(packet).time_ns;
        more = pcapng_options_next(&options);
    }
    if (more)
        packet->process = pcapng_process_of(file, packet, &options.current, false);
    if (more && options.current.code != OPTION_PROCESS)
        return capture_file_set_damage(file, "a packet of a shard with an unknown option");
    return true;
}

/* Stores what all packets have. The data, of packet->captured bytes, come after `fixed` bytes. */
static ALWAYS_INLINE bool store_packet(struct capture_file *file, struct pcapng_block *block,
                                       const struct pcapng_interface *interface, size_t fixed) {
    struct packet *packet = block->packet;
    if (!LIKELY(packet->captured <= block->size - fixed))
        return capture_file_set_damage(file, "captured length %u exceeds its block (%zu bytes)",
                                       packet->captured, block->size - fixed);
    packet->frame = ++file->frame;
    packet->data = block->body + fixed;
    packet->interface = interface->number;
    packet->link_type = interface->link_type;
    packet->shard = 0;
    packet->with_options = 0;
    packet->process = NULL;
    block->has_packet = true;
    return true;
}

/* Reads an enhanced or obsolete packet block, whose bodies agree from byte 4 on. Options exist only
 * if bytes are left after the padded data. */
static inline bool take_packet(struct capture_file *file, struct pcapng_block *block,
                               uint32_t number) {
    bool big_endian = block->big_endian;
    const struct pcapng_interface *interface = find_interface(file, number);
    if (!interface)
        return false;
    const uint8_t *body = block->body;
    struct packet *packet = block->packet;
    uint64_t high = load_u32(body + 4, big_endian);
    packet->captured = load_u32(body + 12, big_endian);
    packet->length = load_u32(body + 16, big_endian);
    packet->time_ns = pcapng_time_ns(&interface->time, high << 32 | load_u32(body + 8, big_endian));
    if (!store_packet(file, block, interface, PACKET_FIXED))
        return false;
    uint32_t fcs = interface->fcs;
    size_t options = PACKET_FIXED + (((size_t)packet->captured + 3) & ~(size_t)3);
    if (!LIKELY(!file->shard))
        return read_origin(
            file, pcapng_options_after(block, options < block->size ? options : block->size),
            packet);
    if (options < block->size)
        read_packet_options(file, pcapng_options_after(block, options), interface, packet, &fcs);
    if (fcs)
        packet_strip_fcs(packet, fcs);
    return true;
}

/* The block type 2 of early drafts, with an interface number of 16 bits; its drop count is ignored.
 */
static bool take_obsolete(struct capture_file *file, struct pcapng_block *block) {
    return take_packet(file, block, load_u16(block->body, block->big_endian));
}

/* A simple packet block has neither time nor captured length: the data end at the snap length of
 * the section's first interface. */
static bool take_simple(struct capture_file *file, struct pcapng_block *block) {
    const struct pcapng_interface *interface = find_interface(file, 0);
    struct packet *packet = block->packet;
    if (!interface)
        return false;
    packet->length = packet->captured = load_u32(block->body, block->big_endian);
    if (interface->snaplen && packet->captured > interface->snaplen)
        packet->captured = interface->snaplen;
    packet->time_ns = TIME_UNKNOWN;
    if (!store_packet(file, block, interface, SIMPLE_FIXED))
        return false;
    if (interface->fcs)
        packet_strip_fcs(packet, interface->fcs);
    return true;
}

/* Wireshark numbers these blocks as frames although they are not packets. */
static bool take_counted(struct capture_file *file, struct pcapng_block *block) {
    block->has_packet = false;
    file->frame++;
    return true;
}

/* An enhanced packet block is here only for its size: parse_pcapng() reads those that have it. */
static const struct {
    uint32_t type, fixed; /* `fixed`: bytes that the body must have */
    const char *has;
    bool (*take)(struct capture_file *file, struct pcapng_block *block);
} takers[] = {
    {BLOCK_SECTION, SECTION_FIXED, "a section header body has", pcapng_take_section},
    {BLOCK_INTERFACE, INTERFACE_FIXED, "an interface description has", pcapng_take_interface},
    {BLOCK_STATISTICS, STATISTICS_FIXED, "interface statistics have", pcapng_take_statistics},
    {BLOCK_SIMPLE_PACKET, SIMPLE_FIXED, "a simple packet block body has", take_simple},
    {BLOCK_PACKET, PACKET_FIXED, "a packet block body has", take_obsolete},
    {BLOCK_ENHANCED_PACKET, PACKET_FIXED, "an enhanced packet block body has", NULL},
    {BLOCK_JOURNAL, 0, NULL, take_counted},
    {BLOCK_SECRETS, 0, NULL, pcapng_take_secrets},
    {BLOCK_CUSTOM, 0, NULL, pcapng_take_custom},
    {BLOCK_CUSTOM_UNCOPIED, 0, NULL, pcapng_take_custom},
    {BLOCK_PROCESS, 0, NULL, pcapng_take_process},
};

/* Ignores unknown block types: readers must skip them (section 3.1). */
static NOINLINE bool take_other_block(struct capture_file *file, struct pcapng_block *block) {
    for (size_t i = 0; i < sizeof takers / sizeof *takers; i++) {
        if (takers[i].type != block->type)
            continue;
        if (block->size < takers[i].fixed)
            return capture_file_set_damage(file, "%s %zu bytes, expected %u", takers[i].has,
                                           block->size, takers[i].fixed);
        return takers[i].take(file, block);
    }
    return true;
}

static size_t parse_pcapng(struct capture_file *file, struct packet *packets, size_t most) {
    const struct pcapng_reader *reader = file->reader;
    struct pcapng_block block;
    size_t count = 0;
    while (count < most && load_block(file, &block, reader->big_endian)) {
        block.packet = &packets[count];
        bool enhanced = block.type == BLOCK_ENHANCED_PACKET && block.size >= PACKET_FIXED;
        if (!(LIKELY(enhanced) ? take_packet(file, &block, load_u32(block.body, block.big_endian))
                               : take_other_block(file, &block)))
            break;
        count += block.has_packet;
        file->stream.cursor += block.length;
    }
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
    if (!take_other_block(file, &block))
        return damage_to_error(file, error);
    file->stream.cursor += block.length;
    return true;
}

const struct capture_format pcapng_format = {match_pcapng, begin_pcapng, parse_pcapng,
                                             pcapng_reader_close};
