/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the blocks of a pcapng file other than packets (draft-ietf-opsawg-pcapng), and the header
 * of a classic pcap file. A block is complete in memory before it is written, so that a file can
 * only end between blocks. */
#ifndef WIRETALE_CAPTURE_PCAPNG_H
#define WIRETALE_CAPTURE_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct description;

/* Zeros are an empty buffer, which grows as blocks are added. */
struct pcapng_buffer {
    uint8_t *data;
    size_t fill, capacity; /* bytes */
    size_t start;          /* of the block that is being built */
    bool failed;           /* memory was short: the content is incomplete */
};

/* Packets and drops of one interface in one file. Unknown numbers must not be written, since 0
 * would claim that nothing was dropped. */
struct pcapng_statistics {
    uint32_t interface;
    int64_t start_ns, end_ns;
    bool drops_known;
    bool unfiltered;   /* no filter: the interface received `accepted` packets */
    uint64_t accepted; /* passed the filter: delivered, or dropped by the kernel or later */
    uint64_t dropped_interface; /* before the kernel counted it */
    uint64_t dropped_kernel;
    uint64_t delivered; /* written to the file */
};

#define PCAPNG_BYTE_ORDER_MAGIC 0x1A2B3C4Du
#define PCAP_MAGIC_NS           0xA1B23C4Du

/* Types of blocks other than packets. */
enum block_type { BLOCK_SECTION = 0x0A0D0D0A, BLOCK_INTERFACE = 1, BLOCK_STATISTICS = 5 };

/* Codes of options, which depend on the type of the block they are in (shb, if and isb). */
enum block_option {
    OPTION_COMMENT = 1,
    SHB_HARDWARE = 2,
    SHB_OS = 3,
    SHB_APPLICATION = 4,
    IF_NAME = 2,
    IF_MAC = 6,
    IF_SPEED = 8,
    IF_TSRESOL = 9,
    IF_FILTER = 11,
    IF_OS = 12,
    IF_HARDWARE = 15,
    ISB_START = 2,
    ISB_END = 3,
    ISB_RECEIVED = 4,
    ISB_DROPPED = 5,
    ISB_ACCEPTED = 6,
    ISB_DROPPED_BY_OS = 7,
    ISB_DELIVERED = 8,
};

/* Begins shb_userappl: only files with it are recovered. */
#define PCAPNG_APPLICATION "wiretale-capture"

/* Frees the memory, after which the buffer is empty. */
void pcapng_free(struct pcapng_buffer *buffer);

/* Append one block each: section header, interface description and interface statistics. A comment
 * may be NULL or empty. */
void pcapng_section(struct pcapng_buffer *buffer, const char *comment);
void pcapng_interface(struct pcapng_buffer *buffer, const struct description *description);
void pcapng_statistics(struct pcapng_buffer *buffer, const struct pcapng_statistics *statistics,
                       const char *comment, const char *facts);

/* Appends the header of a classic pcap file with nanoseconds. */
void pcapng_classic_header(struct pcapng_buffer *buffer, uint32_t snaplen, uint32_t link_type);

#endif
