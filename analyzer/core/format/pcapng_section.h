/* SPDX-License-Identifier: Apache-2.0 */
/* What a pcapng section says of itself and its interfaces: the blocks that are no packets. */
#ifndef WIRETALE_PCAPNG_SECTION_H
#define WIRETALE_PCAPNG_SECTION_H

#include "format/capture_file.h"
#include "format/pcapng_options.h"
#include "format/pcapng_time.h"

#define BYTE_ORDER_MAGIC 0x1A2B3C4Du

enum pcapng_block_type {
    BLOCK_SECTION = 0x0A0D0D0A, /* reads the same in both byte orders */
    BLOCK_INTERFACE = 1,
    BLOCK_PACKET = 2, /* obsolete */
    BLOCK_SIMPLE_PACKET = 3,
    BLOCK_STATISTICS = 5,
    BLOCK_ENHANCED_PACKET = 6,
    BLOCK_JOURNAL = 9, /* systemd journal export */
};

struct pcapng_block {
    uint32_t type;
    uint32_t length; /* of the whole block */
    bool big_endian;
    const uint8_t *body;
    size_t size; /* of the body with its options */
};

struct pcapng_interface {
    uint32_t number; /* in the set's list */
    uint32_t snaplen;
    uint32_t fcs; /* bytes at the end of each packet */
    uint16_t link_type;
    struct pcapng_time time;
};

struct pcapng_reader {
    bool big_endian;
    uint32_t block_max;
    struct pcapng_interface *interfaces; /* of the section */
    uint32_t count, room;
    uint32_t described; /* interfaces of the file so far, over its sections */
    const char *hardware, *system, *application, *comment; /* of the section */
};

/* Takes a section header, interface description or interface statistics; false with damage set. */
bool pcapng_section_take(struct capture_file *file, const struct pcapng_block *block);
void pcapng_reader_close(void *reader);

#endif
