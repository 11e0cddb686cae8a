/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of a pcapng file that are no packets (draft-ietf-opsawg-pcapng), and the header of a
 * classic pcap file. All are made whole in memory and written at once. */
#ifndef WIRETALE_CAPTURE_PCAPNG_H
#define WIRETALE_CAPTURE_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct description;

struct pcapng_buffer {
    uint8_t *data;
    size_t fill, room;
    size_t start; /* of the block being made */
    bool failed;  /* out of memory */
};

/* Packets and drops of one interface in one file. What is not known is left out of the block. */
struct pcapng_statistics {
    uint32_t interface;
    int64_t start_ns, end_ns;
    bool drops_known;
    bool unfiltered;   /* accepted is all that the interface received */
    uint64_t accepted; /* by the filter: dropped by the kernel, delivered or lost between */
    uint64_t dropped_interface; /* before the kernel */
    uint64_t dropped_kernel;
    uint64_t delivered; /* into the file: what is left of the accepted, the program dropped */
};

#define PCAPNG_APPLICATION                                                                         \
    "wiretale-capture" /* begins shb_userappl: files with it are ours to mend */

void pcapng_free(struct pcapng_buffer *buffer);
void pcapng_section(struct pcapng_buffer *buffer);
void pcapng_interface(struct pcapng_buffer *buffer, const struct description *description);
void pcapng_statistics(struct pcapng_buffer *buffer, const struct pcapng_statistics *statistics,
                       const char *comment);
void pcapng_classic_header(struct pcapng_buffer *buffer, uint32_t snaplen, uint32_t link_type);

#endif
