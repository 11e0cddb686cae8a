/* SPDX-License-Identifier: Apache-2.0 */
/* Writes blocks of pcapng (draft-ietf-opsawg-pcapng) in little-endian order through a buffer.
 *
 * The caller writes the section header first, then each interface before its packets. A function
 * that returns false has set `error`, an errno; nothing may be written after it. */
#ifndef WIRETALE_PCAPNG_WRITE_H
#define WIRETALE_PCAPNG_WRITE_H

#include "base/packet.h"
#include "input/interfaces.h"

#define WRITE_BUFFER_SIZE (1u << 20) /* bytes */
#define COMMENT_SIZE_MAX  4096       /* bytes of a comment of a packet */

struct pcapng_writer {
    int fd;
    int error; /* errno of the first failure, 0 before */
    uint8_t *buffer;
    size_t used, room;
    uint8_t *packed; /* compressed bytes; NULL if they are written as they are */
    struct ZSTD_CCtx_s *zstd;
};

/* Takes a descriptor, which stays the caller's. A `packed` file is compressed by zstd, with a
 * smaller buffer. Returns false without memory. */
bool pcapng_writer_open(struct pcapng_writer *writer, int fd, bool packed);
void pcapng_writer_close(struct pcapng_writer *writer);
/* Writes what the buffer holds, and ends a compressed file. */
bool pcapng_finish(struct pcapng_writer *writer);

/* Writes bytes as they are. */
bool pcapng_bytes(struct pcapng_writer *writer, const void *bytes, size_t size);
/* Writes the description of an interface: its link type, snap length and time resolution, and its
 * texts unless it is `bare`. A resolution that is no power of ten becomes 1 ns. */
bool pcapng_interface(struct pcapng_writer *writer, const struct interface *interface, bool bare);

#define PROCESS_OPTIONS_MAX 512u /* bytes; what does not fit is left out */

/* The options of a packet that concern its process. */
struct process_options {
    uint8_t bytes[PROCESS_OPTIONS_MAX]; /* padded, without an end of options */
    uint32_t size;
};

/* process_options.c: reads those of a packet that has a process, whose section still is in the
 * list. Numbers of blocks are those of the cut. */
void process_options_of(const struct packet *packet, struct process_options *options);

/* A packet as it is written: `data` has `captured` bytes, the rest is of `packet`. */
struct written_packet {
    const struct packet *packet;
    uint32_t number; /* of the interface in the output */
    int64_t resolution_ns;
    int64_t time_before_ns; /* of the packet before, for one without a time */
    const uint8_t *data;
    uint32_t captured;
    const struct process_options *options; /* NULL without any */
    const char *comment; /* NULL without one; at most COMMENT_SIZE_MAX bytes count */
    size_t comment_size;
};

/* Writes an enhanced packet block with the first `captured` bytes of a packet's data. Options are
 * padded and end with the end of options. */
bool pcapng_enhanced(struct pcapng_writer *writer, const struct packet *packet, uint32_t number,
                     uint64_t ticks, const uint8_t *data, uint32_t captured, const void *options,
                     uint32_t options_size);
/* Writes an enhanced packet block. A packet without a time has a simple packet block if it belongs
 * to the first interface and needs no comment, else the time of the packet before. */
bool pcapng_packet(struct pcapng_writer *writer, const struct written_packet *packet,
                   uint32_t snaplen);
/* Writes the drop counts of an interface, if the input has any. */
bool pcapng_statistics(struct pcapng_writer *writer, uint32_t number,
                       const struct interface *interface, int64_t time_ns);
/* Returns the unit of timestamps of an interface: a power of ten, in ns. */
int64_t pcapng_resolution(const struct interface *interface);

#endif
