/* SPDX-License-Identifier: Apache-2.0 */
/* Section headers, interface descriptions and interface statistics (draft-ietf-opsawg-pcapng,
 * sections 4.1, 4.2 and 4.6).
 *
 *   Section header body          Interface description body   Interface statistics body
 *   OFFSET SIZE                  OFFSET SIZE                  OFFSET SIZE
 *   0      4   byte-order magic  0      2   link type         0      4   interface
 *   4      2   major version     2      2   reserved          4      8   time
 *   6      2   minor version     4      4   snap length       12     ..  options
 *   8      8   section length    8      ..  options
 *   16     ..  options
 *
 * An option that claims more than its block ends the list of options. In an interface description
 * that is damage, as in libpcap, because the unit of times may be among the lost options. The
 * section length is ignored, because many writers leave it open. */
#include "format/pcapng_section.h"

#include <stdlib.h>

#include "base/arena.h"
#include "format/packet_origin.h"

#define VERSION_MAJOR 1
#define MICROSECONDS  6 /* the default of if_tsresol */
#define FCS_BITS_MIN  8
/* Bytes; libpcap's limit for the options of a greatest packet. */
#define OPTIONS_ROOM (128u << 10)

#define CLOCK_INTERFACES 256

enum section_option { SHB_HARDWARE = 2, SHB_OS = 3, SHB_APPLICATION = 4 };

enum interface_option {
    IF_NAME = 2,
    IF_SPEED = 8,
    IF_TSRESOL = 9,
    IF_FILTER = 11,
    IF_OS = 12,
    IF_FCSLEN = 13,
    IF_TSOFFSET = 14,
    IF_HARDWARE = 15,
};

enum statistics_option {
    ISB_RECEIVED = 4,
    ISB_DROPPED = 5,
    ISB_ACCEPTED = 6,
    ISB_DROPPED_BY_OS = 7,
    ISB_DELIVERED = 8
};

/* --- times: any resolution and offset in 128 bits; only the common case is quick ------------- */

#define SECOND_NS       1000000000u
#define BINARY          0x80
#define BINARY_MOST     63
#define DECIMAL_MOST    19
#define DECIMAL_OF_NANO 9

/* The exponent must be at most 19: 10^19 is the greatest power in 64 bits. */
static uint64_t power_of_ten(unsigned exponent) {
    uint64_t power = 1;
    while (exponent--)
        power *= 10;
    return power;
}

static void set_decimal(struct pcapng_time *time, unsigned exponent) {
    if (exponent > DECIMAL_OF_NANO)
        time->divide = power_of_ten(exponent - DECIMAL_OF_NANO);
    else
        time->multiply = power_of_ten(DECIMAL_OF_NANO - exponent);
}

bool pcapng_time_set(struct pcapng_time *time, uint8_t resolution, int64_t offset_s) {
    unsigned exponent = resolution & (BINARY - 1);
    bool binary = resolution & BINARY;
    if (exponent > (binary ? BINARY_MOST : DECIMAL_MOST))
        return false;
    *time = (struct pcapng_time){.multiply = 1, .divide = 1, .offset_s = offset_s};
    if (binary) {
        time->multiply = SECOND_NS;
        time->shift = exponent;
    } else {
        set_decimal(time, exponent);
    }
    time->resolution_ns = (int64_t)((time->multiply / time->divide) >> time->shift);
    if (!offset_s && !time->shift && time->divide == 1)
        time->plain_end = TIME_MOST_NS / time->multiply + 1;
    return true;
}

/* Ticks times at most 10^9 fit in 128 bits. */
int64_t pcapng_time_slow(const struct pcapng_time *time, uint64_t ticks) {
    unsigned __int128 since = (unsigned __int128)ticks * time->multiply / time->divide;
    __int128 ns = (__int128)(since >> time->shift) + (__int128)time->offset_s * SECOND_NS;
    return ns < TIME_LEAST_NS || ns > TIME_MOST_NS ? TIME_OUT_OF_RANGE : (int64_t)ns;
}

/* --- blocks --------------------------------------------------------------------------------- */

/* An interface description while it is read. */
struct description {
    const char *name, *filter, *hardware, *system, *comment;
    struct tracer_facts tracer;
    int64_t time_offset_s;
    uint8_t time_resolution;
    uint8_t fcs;
};

static const char *option_text(struct capture_file *file, const struct pcapng_option *option) {
    return interface_list_text(file->list, (const char *)option->value, option->length);
}

static void add_comment(struct capture_file *file, const char **comment,
                        const struct pcapng_option *option) {
    *comment = interface_list_join(file->list, *comment, option_text(file, option));
}

/* Returns the version of the layout of shards (shard/split.h), 0 if the file is none: other
 * programs may use the same number of an option. */
static uint32_t read_section_options(struct capture_file *file, struct pcapng_options options) {
    struct pcapng_reader *reader = file->reader;
    uint32_t version = 0;
    while (pcapng_options_next(&options)) {
        const struct pcapng_option *option = &options.current;
        switch (option->code) {
        case OPTION_COMMENT:
            add_comment(file, &reader->comment, option);
            tracer_facts_describe(&reader->tracer, (const char *)option->value, option->length);
            break;
        case SHB_HARDWARE: reader->hardware = option_text(file, option); break;
        case SHB_OS: reader->system = option_text(file, option); break;
        case SHB_APPLICATION: reader->application = option_text(file, option); break;
        case OPTION_SHARD: version = option->length == 4 ? load_le32(option->value) : 0; break;
        }
    }
    bool own = reader->application && !strncmp(reader->application, "wiretale ", 9);
    return own ? version : 0;
}

/* Begins a section: interface numbers and texts of the section before no longer apply. */
bool pcapng_take_section(struct capture_file *file, struct pcapng_block *block) {
    struct pcapng_reader *reader = file->reader;
    const uint8_t *body = block->body;
    unsigned major = load_u16(body + 4, block->big_endian);
    unsigned minor = load_u16(body + 6, block->big_endian);
    if (major != VERSION_MAJOR || (minor != 0 && minor != 2)) /* 1.2 is read as 1.0 */
        return capture_file_set_damage(file, "expected pcapng version 1.0, found %u.%u", major,
                                       minor);
    reader->big_endian = block->big_endian;
    reader->count = 0;
    reader->hardware = reader->system = reader->application = reader->comment = NULL;
    reader->tracer = (struct tracer_facts){0};
    reader->section_offset = input_stream_offset(&file->stream);
    reader->processes = NULL;
    if (reader->has_ids)
        memset(reader->by_id, 0, PROCESS_BUCKETS * sizeof *reader->by_id);
    reader->has_ids = false;
    uint32_t version = read_section_options(file, pcapng_options_after(block, SECTION_FIXED));
    file->shard = version == ORIGIN_VERSION;
    if (version > ORIGIN_VERSION)
        return capture_file_set_damage(
            file, "expected version %u of the packets of a split, found %u, of %s", ORIGIN_VERSION,
            version, reader->application);
    capture_file_note_header(file, block->length, true);
    return true;
}

/* The first byte is 0 for a libpcap expression, 1 for BPF code. */
static const char *filter_text(struct capture_file *file, const struct pcapng_option *option) {
    if (option->length < 2 || option->value[0] != 0)
        return NULL;
    return interface_list_text(file->list, (const char *)option->value + 1, option->length - 1u);
}

static void read_description_text(struct capture_file *file, struct description *description,
                                  const struct pcapng_option *option, bool big_endian) {
    switch (option->code) {
    case OPTION_COMMENT:
        add_comment(file, &description->comment, option);
        tracer_facts_describe(&description->tracer, (const char *)option->value, option->length);
        break;
    case IF_NAME: description->name = option_text(file, option); break;
    case IF_FILTER: description->filter = filter_text(file, option); break;
    case IF_OS: description->system = option_text(file, option); break;
    case IF_HARDWARE: description->hardware = option_text(file, option); break;
    case IF_SPEED:
        if (option->length == 8)
            description->tracer.speed_bps = load_u64(option->value, big_endian);
        break;
    }
}

/* Returns false if the length of the value does not fit its type. */
static bool read_description_number(struct description *description,
                                    const struct pcapng_option *option, bool big_endian) {
    static const uint8_t lengths[] = {[IF_TSRESOL] = 1, [IF_FCSLEN] = 1, [IF_TSOFFSET] = 8};
    if (option->code >= sizeof lengths || !lengths[option->code])
        return true;
    if (option->length != lengths[option->code])
        return option->code == IF_FCSLEN;
    switch (option->code) {
    case IF_TSRESOL: description->time_resolution = *option->value; break;
    case IF_FCSLEN: description->fcs = *option->value; break;
    case IF_TSOFFSET:
        description->time_offset_s = (int64_t)load_u64(option->value, big_endian);
        break;
    }
    return true;
}

static bool read_description(struct capture_file *file, const struct pcapng_block *block,
                             struct description *description, bool fresh) {
    struct pcapng_options options = pcapng_options_after(block, INTERFACE_FIXED);
    *description = (struct description){.time_resolution = MICROSECONDS};
    while (pcapng_options_next(&options)) {
        const struct pcapng_option *option = &options.current;
        if (!read_description_number(description, option, block->big_endian))
            return capture_file_set_damage(file,
                                           "option %u of an interface description is %u bytes long",
                                           option->code, option->length);
        if (fresh)
            read_description_text(file, description, option, block->big_endian);
    }
    if (options.overlong)
        return capture_file_set_damage(
            file,
            "option %u of an interface description claims %u bytes, more "
            "than its block",
            options.current.code, options.current.length);
    return true;
}

/* Texts of the section take precedence over those of the interface for hardware and system. */
static void describe_interface(struct capture_file *file, struct interface *added,
                               const struct description *description) {
    const struct pcapng_reader *reader = file->reader;
    added->format = "pcapng";
    added->name = description->name;
    added->filter = description->filter;
    added->hardware = reader->hardware ? reader->hardware : description->hardware;
    added->system = reader->system ? reader->system : description->system;
    added->application = reader->application;
    added->tracer = description->tracer;
    added->tracer.synchronized = reader->tracer.synchronized;
    added->tracer.error_unknown = reader->tracer.error_unknown;
    added->tracer.error_ns = reader->tracer.error_ns;
    added->comment = interface_list_join(file->list, reader->comment, description->comment);
}

/* The specification counts if_fcslen in bits, its example and most writers in bytes. */
static uint32_t fcs_bytes(uint8_t fcs) {
    return fcs < FCS_BITS_MIN ? fcs : fcs / 8u;
}

static void allow_large_blocks(struct pcapng_reader *reader, uint16_t link_type) {
    uint32_t most = link_type_packet_max(link_type) + OPTIONS_ROOM;
    if (most > reader->block_max)
        reader->block_max = most;
}

/* Adds the interface to the section, and to the list unless an earlier opening of the file did
 * so. */
static bool add_interface(struct capture_file *file, const struct pcapng_block *block,
                          const struct pcapng_time *time, const struct description *description,
                          struct interface *added, uint32_t number) {
    struct pcapng_reader *reader = file->reader;
    if (!list_grow(&reader->interfaces, &reader->room, reader->count + 1,
                   sizeof *reader->interfaces))
        return capture_file_set_damage(file, "out of memory for interface %u (%u in the section)",
                                       reader->described, reader->count);
    const uint8_t *body = block->body;
    uint16_t link_type = load_u16(body, block->big_endian);
    struct pcapng_interface *interface = &reader->interfaces[reader->count++];
    *interface = (struct pcapng_interface){
        .number = number,
        .snaplen = load_u32(body + 4, block->big_endian),
        .fcs = fcs_bytes(description->fcs),
        .link_type = link_type_normalize(link_type),
        .time = *time,
    };
    reader->described++;
    allow_large_blocks(reader, interface->link_type);
    added->link_type = interface->link_type;
    added->snaplen = interface->snaplen;
    added->time_resolution_ns = time->resolution_ns;
    return true;
}

bool pcapng_take_interface(struct capture_file *file, struct pcapng_block *block) {
    struct pcapng_reader *reader = file->reader;
    bool fresh = reader->described == file->interface_count;
    struct description description;
    struct pcapng_time time;
    if (!read_description(file, block, &description, fresh))
        return false;
    if (!pcapng_time_set(&time, description.time_resolution, description.time_offset_s))
        return capture_file_set_damage(file, "a time resolution of %u^-%u seconds is too fine",
                                       description.time_resolution & 0x80 ? 2 : 10,
                                       description.time_resolution & 0x7F);
    uint32_t number;
    struct interface *added = capture_file_interface(file, reader->described, &number);
    if (!added)
        return capture_file_set_damage(file,
                                       "interface %u exceeds the limit of %u, or memory ran out",
                                       reader->described, INTERFACES_PER_FILE_MAX);
    if (fresh)
        describe_interface(file, added, &description);
    capture_file_note_header(file, block->length, false);
    return add_interface(file, block, &time, &description, added, number);
}

static void read_statistics(struct interface *interface, struct pcapng_options options) {
    while (pcapng_options_next(&options)) {
        const struct pcapng_option *option = &options.current;
        if (option->length != 8)
            continue;
        uint64_t value = load_u64(option->value, options.big_endian);
        switch (option->code) {
        case ISB_RECEIVED: interface->received = value; break;
        case ISB_DROPPED: interface->dropped_interface = value; break;
        case ISB_ACCEPTED: interface->accepted = value; break;
        case ISB_DROPPED_BY_OS: interface->dropped_kernel = value; break;
        case ISB_DELIVERED: interface->delivered = value; break;
        }
    }
}

/* Takes a comment of statistics. The clock is that of all interfaces of the section; its first
 * CLOCK_INTERFACES are as many as a tracer describes. */
static void take_told(struct capture_file *file, uint32_t number,
                      const struct pcapng_option *option, int64_t time_ns) {
    const struct pcapng_reader *reader = file->reader;
    const char *comment = (const char *)option->value;
    bool is_clock = tracer_facts_are_of_clock(comment, option->length);
    uint32_t most = reader->count < CLOCK_INTERFACES ? reader->count : CLOCK_INTERFACES;
    for (uint32_t i = is_clock ? 0 : number; i < (is_clock ? most : number + 1); i++)
        tracer_facts_happen(&file->list->items[reader->interfaces[i].number]->tracer, comment,
                            option->length, time_ns);
}

/* A file may be opened again, so each place of it counts once. */
static void read_told(struct capture_file *file, uint32_t number,
                      const struct pcapng_block *block) {
    const struct pcapng_reader *reader = file->reader;
    struct interface *first = file->list->items[reader->interfaces[0].number];
    struct pcapng_options options = pcapng_options_after(block, STATISTICS_FIXED);
    uint64_t offset = input_stream_offset(&file->stream);
    uint64_t ticks = (uint64_t)load_u32(block->body + 4, block->big_endian) << 32 |
                     load_u32(block->body + 8, block->big_endian);
    int64_t time_ns = pcapng_time_ns(&reader->interfaces[number].time, ticks);
    if (offset < first->tracer_offset || time_ns == TIME_OUT_OF_RANGE)
        return;
    first->tracer_offset = offset + 1;
    while (pcapng_options_next(&options))
        if (options.current.code == OPTION_COMMENT)
            take_told(file, number, &options.current, time_ns);
}

/* The last statistics of an interface count. Those of an undescribed interface are ignored. */
bool pcapng_take_statistics(struct capture_file *file, struct pcapng_block *block) {
    const struct pcapng_reader *reader = file->reader;
    uint32_t number = load_u32(block->body, block->big_endian);
    if (number >= reader->count)
        return true;
    read_statistics(file->list->items[reader->interfaces[number].number],
                    pcapng_options_after(block, STATISTICS_FIXED));
    read_told(file, number, block);
    return true;
}

struct pcapng_options pcapng_packet_options(const struct packet *packet) {
    enum { HEADER = 28, CAPTURED = 20, TRAILER = 4 };
    const uint8_t *block = packet->data - HEADER;
    uint32_t type = load_le32(block);
    bool big_endian = type != BLOCK_ENHANCED_PACKET && type != BLOCK_PACKET;
    size_t captured = load_u32(block + CAPTURED, big_endian);
    size_t at = HEADER + ((captured + 3) & ~(size_t)3), end = load_u32(block + 4, big_endian);
    return (struct pcapng_options){
        .cursor = block + at, .left = end - TRAILER - at, .big_endian = big_endian};
}

void pcapng_reader_close(void *state) {
    struct pcapng_reader *reader = state;
    free(reader->interfaces);
    free(reader->by_id);
    free(reader);
}
