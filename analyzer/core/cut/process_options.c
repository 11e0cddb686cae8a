/* SPDX-License-Identifier: Apache-2.0 */
/* A process that has a block in the cut is named by its number, else by its id, as in the input.
 * Darwin's other options, from 8002 on, are numbers of 4 or 2 bytes, or texts. */
#include <string.h>

#include "cut/pcapng_write.h"
#include "format/pcapng_process.h"

static void add(struct process_options *options, uint16_t code, const void *bytes, size_t size) {
    uint16_t head[] = {code, (uint16_t)size};
    size_t padded = (size + 3) & ~(size_t)3;
    if (sizeof head + padded > sizeof options->bytes - options->size)
        return;
    uint8_t *place = options->bytes + options->size;
    memset(place, 0, sizeof head + padded);
    memcpy(place, head, sizeof head);
    memcpy(place + sizeof head, bytes, size);
    options->size += (uint32_t)(sizeof head + padded);
}

/* Returns the number that a process block of the section has in the cut. */
static uint32_t block_in_cut(const struct process *process, uint32_t block) {
    const struct process_section *section = process->section;
    return block < section->count ? section->blocks[block]->block : NO_BLOCK;
}

static void add_darwin(struct process_options *options, const struct pcapng_option *option,
                       bool big_endian) {
    if (option->length == 4) {
        uint32_t number = load_u32(option->value, big_endian);
        add(options, option->code, &number, sizeof number);
    } else if (option->length == 2) {
        uint16_t number = load_u16(option->value, big_endian);
        add(options, option->code, &number, sizeof number);
    } else {
        add(options, option->code, option->value, option->length);
    }
}

static void add_option(struct process_options *options, const struct process *process,
                       const struct pcapng_option *option, bool big_endian) {
    bool by_block = process->block != NO_BLOCK, is_number = option->length == 4;
    if (option->code == OPTION_PROCESS_ID && option->length == 8 && !by_block) {
        uint32_t ids[] = {load_u32(option->value, big_endian),
                          load_u32(option->value + 4, big_endian)};
        add(options, OPTION_PROCESS_ID, ids, sizeof ids);
    } else if (option->code == OPTION_EFFECTIVE_PROCESS && is_number) {
        uint32_t block = block_in_cut(process, load_u32(option->value, big_endian));
        if (block != NO_BLOCK)
            add(options, OPTION_EFFECTIVE_PROCESS, &block, sizeof block);
    } else if (option->code >= OPTION_SERVICE_CLASS && option->code <= OPTION_DARWIN_LAST) {
        add_darwin(options, option, big_endian);
    }
}

void process_options_of(const struct packet *packet, struct process_options *options) {
    const struct process *process = packet->process;
    options->size = 0;
    if (process->block != NO_BLOCK)
        add(options, OPTION_PROCESS, &process->block, sizeof process->block);
    if (!packet->with_options)
        return;
    struct pcapng_options given = pcapng_packet_options(packet);
    while (pcapng_options_next(&given))
        add_option(options, process, &given.current, given.big_endian);
}
