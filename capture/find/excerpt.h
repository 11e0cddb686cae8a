/* SPDX-License-Identifier: Apache-2.0 */
/* The pcapng file of the packets that were found. Blocks are copied as they are, with comments,
 * flags and times. Interfaces with equal descriptions are one; its drop counts are the sum of those
 * of the files that packets come from. */
#ifndef WIRETALE_CAPTURE_EXCERPT_H
#define WIRETALE_CAPTURE_EXCERPT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "index/records.h"

#define EXCERPT_COUNTS 5u /* isb_ifrecv to isb_usrdeliv */

struct excerpt_interface {
    uint8_t *block; /* its description */
    uint32_t size;
    bool written;
    uint64_t counts[EXCERPT_COUNTS];
    bool known[EXCERPT_COUNTS];
    bool is_counted;
    uint64_t start, end; /* of the counts, in its units; start > end: unknown */
};

struct excerpt {
    FILE *out; /* NULL: nothing is written */
    const char *path;
    char *temporary;
    bool begun;
    struct excerpt_interface *interfaces;
    uint32_t count, room;
    uint64_t packets, bytes;
};

/* Opens the file, which appears when it is complete. Exits with one line if it cannot. */
void excerpt_open(struct excerpt *excerpt, const char *path, bool overwrite);
/* Writes the drop counts and publishes the file. Exits with one line if it cannot. */
void excerpt_close(struct excerpt *excerpt, bool overwrite);

/* Returns the number of an interface by its description, a block of pcapng. */
uint32_t excerpt_interface(struct excerpt *excerpt, const uint8_t *block, uint32_t size);
/* The same for a classic file. */
uint32_t excerpt_classic_interface(struct excerpt *excerpt, uint16_t link_type, bool in_ns);

/* Adds a block of drop counts. */
void excerpt_add_counts(struct excerpt *excerpt, uint32_t interface, const struct record *block);

/* Writes the section header; of the first file with packets, if it is pcapng, else NULL. */
void excerpt_begin(struct excerpt *excerpt, const struct record *section);
/* Writes a packet; `record` is a block of pcapng or a record of pcap. */
void excerpt_packet(struct excerpt *excerpt, uint32_t interface, const struct record *record,
                    bool classic);

#endif
