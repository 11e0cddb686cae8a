/* SPDX-License-Identifier: Apache-2.0 */
/* pcapng blocks other than packets: section headers, interface descriptions and statistics, with
 * their options and times. */
#ifndef WIRETALE_PCAPNG_SECTION_H
#define WIRETALE_PCAPNG_SECTION_H

#include "base/bytes.h"
#include "format/capture_file.h"

#define BYTE_ORDER_MAGIC 0x1A2B3C4Du

enum pcapng_block_type {
    BLOCK_SECTION = 0x0A0D0D0A, /* reads the same in both byte orders */
    BLOCK_INTERFACE = 1,
    BLOCK_PACKET = 2, /* obsolete */
    BLOCK_SIMPLE_PACKET = 3,
    BLOCK_STATISTICS = 5,
    BLOCK_ENHANCED_PACKET = 6,
    BLOCK_JOURNAL = 9, /* systemd journal export */
    BLOCK_SECRETS = 10,
    BLOCK_CUSTOM = 0xBAD,
    BLOCK_CUSTOM_UNCOPIED = 0x40000BAD,
};
#define BLOCK_PROCESS 0x80000001u /* of Darwin; no int */

struct pcapng_block {
    uint32_t type;
    uint32_t length; /* of the whole block */
    bool big_endian;
    const uint8_t *body;
    size_t size;           /* of the body with its options */
    struct packet *packet; /* where a packet of this block is to be stored */
    bool has_packet;       /* it was stored */
};

/* Ticks of if_tsresol since the epoch, shifted by if_tsoffset seconds. Most files count µs or ns
 * without an offset: their times need one comparison and one multiplication. */
struct pcapng_time {
    uint64_t multiply; /* ns = ticks * multiply / divide >> shift, + offset_s seconds */
    uint64_t divide;
    unsigned shift;
    int64_t offset_s;
    uint64_t plain_end;    /* ticks below it need only the multiplication */
    int64_t resolution_ns; /* of a tick, 0 if it is finer */
};

/* Sets the unit from an if_tsresol: bit 7 set means 2^-n, else 10^-n. Returns false for a
 * resolution that libpcap refuses too, because its ticks do not fit in 64 bits. */
bool pcapng_time_set(struct pcapng_time *time, uint8_t resolution, int64_t offset_s);

/* Returns ns since the epoch, or TIME_OUT_OF_RANGE. */
int64_t pcapng_time_slow(const struct pcapng_time *time, uint64_t ticks);

static inline int64_t pcapng_time_ns(const struct pcapng_time *time, uint64_t ticks) {
    if (ticks < time->plain_end)
        return (int64_t)(ticks * time->multiply);
    return pcapng_time_slow(time, ticks);
}

struct pcapng_interface {
    uint32_t number; /* in the list of interfaces */
    uint32_t snaplen;
    uint32_t fcs; /* bytes at the end of each packet */
    uint16_t link_type;
    struct pcapng_time time;
};

/* The options at the end of a pcapng block.
 *
 *   OFFSET SIZE DESCRIPTION
 *   0      2    code, 0 ends the list
 *   2      2    length of the value
 *   4      ..   value, padded to 4 bytes
 */
enum {
    OPTION_END = 0,
    OPTION_COMMENT = 1,
    OPTION_CUSTOM_TEXT = 2988,
    OPTION_CUSTOM_BYTES = 2989,
    OPTION_TEXT_UNCOPIED = 19372,
    OPTION_BYTES_UNCOPIED = 19373,
};

struct pcapng_option {
    uint16_t code, length;
    const uint8_t *value;
};

struct pcapng_options {
    const uint8_t *cursor;
    size_t left;
    bool big_endian;
    bool overlong; /* an option claimed more than the block holds; `left` bytes remained there */
    struct pcapng_option current;
};

/* Returns the options that begin at byte `at` of the body. */
static inline struct pcapng_options pcapng_options_after(const struct pcapng_block *block,
                                                         size_t at) {
    return (struct pcapng_options){
        .cursor = block->body + at, .left = block->size - at, .big_endian = block->big_endian};
}

/* Returns the options of a packet with packet->with_options: its data are in an enhanced or
 * obsolete packet block, of whose header the last field but one is the captured length. */
struct pcapng_options pcapng_packet_options(const struct packet *packet);

/* Moves to the next option. Returns false at the end of the list, or if the rest is not valid. */
static inline bool pcapng_options_next(struct pcapng_options *options) {
    enum { OPTION_HEADER = 4 };
    if (options->left < OPTION_HEADER)
        return false;
    const uint8_t *p = options->cursor;
    struct pcapng_option *option = &options->current;
    option->code = load_u16(p, options->big_endian);
    option->length = load_u16(p + 2, options->big_endian);
    option->value = p + OPTION_HEADER;
    if (option->code == OPTION_END)
        return false;
    options->overlong = option->length > options->left - OPTION_HEADER;
    if (options->overlong)
        return false;
    size_t padded = OPTION_HEADER + (((size_t)option->length + 3) & ~(size_t)3);
    size_t step = padded < options->left ? padded : options->left;
    options->cursor += step;
    options->left -= step;
    return true;
}

#define PROCESS_BUCKETS 1024u

struct pcapng_reader {
    bool big_endian;
    uint32_t block_max;
    struct pcapng_interface *interfaces; /* of the section */
    uint32_t count;
    size_t room;
    uint32_t described; /* interfaces of the file so far, over its sections */
    const char *hardware, *system, *application, *comment; /* of the section */
    struct tracer_facts tracer;
    uint64_t section_offset; /* in the file */
    /* Its processes, NULL before the first; those with ids by some bits of it, the latest first. */
    struct process_section *processes;
    struct process **by_id;
    bool has_ids;
};

/* Each reads a block of one type, whose body has at least its fixed part. They return false with
 * damage set. */
#define SECTION_FIXED    16
#define INTERFACE_FIXED  8
#define STATISTICS_FIXED 12
bool pcapng_take_section(struct capture_file *file, struct pcapng_block *block);
bool pcapng_take_interface(struct capture_file *file, struct pcapng_block *block);
bool pcapng_take_statistics(struct capture_file *file, struct pcapng_block *block);
void pcapng_reader_close(void *reader);

#endif
