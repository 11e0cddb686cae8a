/* SPDX-License-Identifier: Apache-2.0 */
/* pcapng blocks: type, length, body, length. Options are type, length and value, padded to 4 bytes,
 * and end with two zeros. A time that pcapng cannot express (before 1970, or one that the input
 * did not have either) is the greatest number, which readers do not take for a time. */
#include "cut/pcapng_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define PACKED_BUFFER_SIZE (64u << 10) /* bytes; many files may be written at once */
#define PACKED_WINDOW_LOG  17
#define PACKED_LEVEL       1

#define DESCRIPTION_MAX (6 * (INTERFACE_TEXT_MAX + 8) + 64) /* bytes of an interface's block */

enum block_type { BLOCK_INTERFACE = 1, BLOCK_SIMPLE = 3, BLOCK_STATISTICS = 5, BLOCK_ENHANCED };
enum option_code {
    OPTION_END = 0,
    OPTION_COMMENT = 1,
    IF_NAME = 2,
    IF_TSRESOL = 9,
    IF_FILTER = 11,
    IF_OS = 12,
    IF_HARDWARE = 15,
    ISB_RECEIVED = 4,
};

bool pcapng_writer_open(struct pcapng_writer *writer, int fd, bool packed) {
    *writer =
        (struct pcapng_writer){.fd = fd, .room = packed ? PACKED_BUFFER_SIZE : WRITE_BUFFER_SIZE};
    writer->buffer = malloc(writer->room);
    if (!packed)
        return writer->buffer != NULL;
    writer->packed = malloc(PACKED_BUFFER_SIZE);
    writer->zstd = ZSTD_createCCtx();
    return writer->buffer && writer->packed && writer->zstd &&
           !ZSTD_isError(
               ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_compressionLevel, PACKED_LEVEL)) &&
           !ZSTD_isError(
               ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_windowLog, PACKED_WINDOW_LOG)) &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_checksumFlag, 1));
}

void pcapng_writer_close(struct pcapng_writer *writer) {
    free(writer->buffer);
    free(writer->packed);
    ZSTD_freeCCtx(writer->zstd);
    writer->buffer = writer->packed = NULL;
    writer->zstd = NULL;
}

static bool write_all(struct pcapng_writer *writer, const uint8_t *bytes, size_t size) {
    while (size && !writer->error) {
        ssize_t done = write(writer->fd, bytes, size);
        if (done >= 0) {
            bytes += done;
            size -= (size_t)done;
        } else if (errno != EINTR) {
            writer->error = errno;
        }
    }
    return !writer->error;
}

/* Compresses bytes; `last` ends the frame. zstd fails only if it has no memory. */
static bool write_packed(struct pcapng_writer *writer, const uint8_t *bytes, size_t size,
                         bool last) {
    ZSTD_inBuffer in = {bytes, size, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {writer->packed, PACKED_BUFFER_SIZE, 0};
        left = ZSTD_compressStream2(writer->zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left))
            writer->error = ENOMEM;
        if (writer->error || !write_all(writer, writer->packed, out.pos))
            return false;
    } while (last ? left > 0 : in.pos < in.size);
    return true;
}

static bool write_bytes(struct pcapng_writer *writer, const uint8_t *bytes, size_t size) {
    return writer->zstd ? write_packed(writer, bytes, size, false) : write_all(writer, bytes, size);
}

static bool flush(struct pcapng_writer *writer) {
    size_t used = writer->used;
    writer->used = 0;
    return write_bytes(writer, writer->buffer, used);
}

bool pcapng_finish(struct pcapng_writer *writer) {
    return flush(writer) && (!writer->zstd || write_packed(writer, NULL, 0, true));
}

bool pcapng_bytes(struct pcapng_writer *writer, const void *bytes, size_t size) {
    if (size > writer->room - writer->used && !flush(writer))
        return false;
    if (size > writer->room)
        return write_bytes(writer, bytes, size);
    if (size)
        memcpy(writer->buffer + writer->used, bytes, size);
    writer->used += size;
    return !writer->error;
}

static uint32_t padding_of(size_t size) {
    return (uint32_t)(-size & 3);
}

/* A block in memory; it has room for what is appended. */
struct block {
    uint8_t bytes[DESCRIPTION_MAX];
    size_t size;
};

static void append(struct block *block, const void *bytes, size_t size) {
    if (size)
        memcpy(block->bytes + block->size, bytes, size);
    block->size += size;
}

static void append_option(struct block *block, uint16_t code, const void *value, size_t size) {
    static const uint8_t zeros[4];
    uint16_t head[] = {code, (uint16_t)size};
    append(block, head, sizeof head);
    append(block, value, size);
    append(block, zeros, padding_of(size));
}

static void append_text(struct block *block, uint16_t code, const char *text) {
    if (text)
        append_option(block, code, text, strnlen(text, INTERFACE_TEXT_MAX));
}

/* Adds both lengths to a block whose first 8 bytes are its type and room for the length. */
static bool end_block(struct pcapng_writer *writer, struct block *block) {
    uint32_t length = (uint32_t)block->size + 4;
    memcpy(block->bytes + 4, &length, 4);
    append(block, &length, 4);
    return pcapng_bytes(writer, block->bytes, block->size);
}

/* Returns the digits of if_tsresol; a resolution that is no power of ten has 9. */
static uint8_t resolution_digits(const struct interface *interface) {
    int64_t unit = 1;
    for (uint8_t digits = 9; digits > 0; digits--, unit *= 10)
        if (unit == interface->time_resolution_ns)
            return digits;
    return unit == interface->time_resolution_ns ? 0 : 9;
}

int64_t pcapng_resolution(const struct interface *interface) {
    int64_t unit = 1;
    for (uint8_t digits = resolution_digits(interface); digits < 9; digits++)
        unit *= 10;
    return unit;
}

bool pcapng_interface(struct pcapng_writer *writer, const struct interface *interface, bool bare) {
    struct block block = {.size = 0};
    uint32_t head[] = {BLOCK_INTERFACE, 0, interface->link_type, interface->snaplen};
    uint8_t digits = resolution_digits(interface);
    append(&block, head, sizeof head);
    if (!bare) {
        append_text(&block, OPTION_COMMENT, interface->comment);
        append_text(&block, IF_NAME, interface->name);
        append_text(&block, IF_OS, interface->system);
        append_text(&block, IF_HARDWARE, interface->hardware);
    }
    append_option(&block, IF_TSRESOL, &digits, 1);
    if (!bare && interface->filter) { /* 0: a string of libpcap */
        char filter[INTERFACE_TEXT_MAX + 1] = {0};
        size_t size = strnlen(interface->filter, INTERFACE_TEXT_MAX - 1);
        memcpy(filter + 1, interface->filter, size);
        append_option(&block, IF_FILTER, filter, size + 1);
    }
    append_option(&block, OPTION_END, NULL, 0);
    return end_block(writer, &block);
}

/* Returns timestamp in units of the interface. */
static uint64_t ticks_of(const struct written_packet *written) {
    int64_t time = written->packet->time_ns;
    if (time == TIME_UNKNOWN)
        time = written->time_before_ns;
    return time < 0 ? UINT64_MAX : (uint64_t)(time / written->resolution_ns);
}

/* Reserved bits of a simple packet block: its captured bytes are those that the snap length of the
 * first interface allows. */
static bool can_be_simple(const struct written_packet *written, uint32_t snaplen) {
    uint32_t length = written->packet->length;
    uint32_t most = snaplen && snaplen < length ? snaplen : length;
    return written->packet->time_ns == TIME_UNKNOWN && written->number == 0 && !written->comment &&
           !written->options && written->captured == most;
}

static bool write_simple(struct pcapng_writer *writer, const struct written_packet *written) {
    uint32_t padding = padding_of(written->captured), zero = 0;
    uint32_t length = 16 + written->captured + padding;
    uint32_t head[] = {BLOCK_SIMPLE, length, written->packet->length};
    return pcapng_bytes(writer, head, sizeof head) &&
           pcapng_bytes(writer, written->data, written->captured) &&
           pcapng_bytes(writer, &zero, padding) && pcapng_bytes(writer, &length, 4);
}

bool pcapng_enhanced(struct pcapng_writer *writer, const struct packet *packet, uint32_t number,
                     uint64_t ticks, const uint8_t *data, uint32_t captured, const void *options,
                     uint32_t options_size) {
    uint32_t padding = padding_of(captured), zero = 0;
    uint32_t length = 32 + captured + padding + options_size;
    uint32_t head[] = {BLOCK_ENHANCED,  length,   number,        (uint32_t)(ticks >> 32),
                       (uint32_t)ticks, captured, packet->length};
    return pcapng_bytes(writer, head, sizeof head) && pcapng_bytes(writer, data, captured) &&
           pcapng_bytes(writer, &zero, padding) && pcapng_bytes(writer, options, options_size) &&
           pcapng_bytes(writer, &length, 4);
}

bool pcapng_packet(struct pcapng_writer *writer, const struct written_packet *written,
                   uint32_t snaplen) {
    struct block options;
    size_t said =
        written->comment_size < COMMENT_SIZE_MAX ? written->comment_size : COMMENT_SIZE_MAX;
    if (can_be_simple(written, snaplen))
        return write_simple(writer, written);
    options.size = 0;
    if (written->comment)
        append_option(&options, OPTION_COMMENT, written->comment, said);
    if (written->options)
        append(&options, written->options->bytes, written->options->size);
    if (options.size)
        append_option(&options, OPTION_END, NULL, 0);
    return pcapng_enhanced(writer, written->packet, written->number, ticks_of(written),
                           written->data, written->captured, options.bytes, (uint32_t)options.size);
}

bool pcapng_statistics(struct pcapng_writer *writer, uint32_t number,
                       const struct interface *interface, int64_t time_ns) {
    const uint64_t counts[] = {interface->received, interface->dropped_interface,
                               interface->accepted, interface->dropped_kernel,
                               interface->delivered}; /* from ISB_RECEIVED on */
    uint64_t ticks = time_ns < 0 ? 0 : (uint64_t)(time_ns / pcapng_resolution(interface));
    uint32_t head[] = {BLOCK_STATISTICS, 0, number, (uint32_t)(ticks >> 32), (uint32_t)ticks};
    struct block block = {.size = 0};
    append(&block, head, sizeof head);
    for (uint16_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i] != DROPS_UNKNOWN)
            append_option(&block, (uint16_t)(ISB_RECEIVED + i), &counts[i], sizeof counts[i]);
    if (block.size == sizeof head)
        return true;
    append_option(&block, OPTION_END, NULL, 0);
    return end_block(writer, &block);
}
