/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a pcapng file beside packets and interfaces that a cut takes over: decryption secrets,
 * processes, custom blocks that may be copied. The reader appends them, the cut writes and empties
 * them before the packets that follow. All are little-endian, whatever the section is. */
#ifndef WIRETALE_KEPT_BLOCKS_H
#define WIRETALE_KEPT_BLOCKS_H

#include "format/pcapng_section.h"

#define KEPT_BLOCKS_MAX (64u << 20) /* bytes between two reads of packets */

struct kept_blocks {
    bool with_secrets, with_others; /* those that are kept; the rest is only counted */
    uint8_t *bytes;                 /* whole blocks */
    size_t size, room;
    size_t begun;                /* where the block at hand begins */
    uint32_t process_blocks;     /* Darwin's so far: packets name them by number */
    bool has_ids;                /* a section has processes that packets name by id */
    uint32_t ids_file;           /* the first such section, whose ids the cut has */
    uint64_t ids_section;        /* its offset */
    uint64_t secrets, processes; /* blocks of the input */
};

/* Adds a block: its beginning, parts, and its end. kept_end() returns false with damage of the file
 * set if one part had no room; then nothing of the block stays. */
void kept_begin(struct kept_blocks *kept, uint32_t type);
void kept_u32(struct kept_blocks *kept, uint32_t number);
/* Pads to 4 bytes. */
void kept_bytes(struct kept_blocks *kept, const void *bytes, size_t size);
/* Copies options that may be copied, whose values are bytes, texts or custom. */
void kept_options(struct kept_blocks *kept, struct pcapng_options options);
bool kept_end(struct kept_blocks *kept, struct capture_file *file);

void kept_blocks_free(struct kept_blocks *kept);

#endif
