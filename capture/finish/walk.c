/* SPDX-License-Identifier: Apache-2.0 */
/* Finds where the last whole block of a file ends. The bytes are not trusted: each length is
 * checked against what is left before it is used. Only block types that this program writes are
 * accepted, so that the walk stops at the first byte of garbage.
 *
 * The file is read in pieces, never mapped: a bad sector would be SIGBUS there, while pread()
 * returns EIO, which ends the walk. */
#include "finish/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "buffer/pcapng.h"
#include "buffer/record.h"

#define PCAP_HEADER      24u
#define MIN_SECTION      28u
#define BLOCK_LEAST      12u
#define STATISTICS_FIXED 20u /* with type and length */
#define BLOCK_MOST       RECORD_MAX
#define PIECE_BYTES      (512u << 10) /* holds any block */

/* The part of the file that is in memory. */
struct piece {
    int fd;
    uint64_t size; /* of the file */
    uint8_t *data;
    size_t capacity, fill;
    uint64_t start; /* offset of `data` in the file */
    struct recovered *found;
};

/* Fills the piece from `at` with at least `size` bytes. Returns false after a read error. */
static bool read_piece(struct piece *piece, uint64_t at, size_t size) {
    piece->start = at;
    piece->fill = 0;
    while (piece->fill < size) {
        ssize_t more = pread(piece->fd, piece->data + piece->fill, piece->capacity - piece->fill,
                             (off_t)(at + piece->fill));
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0) {
            piece->found->error = more ? errno : ENODATA; /* the file shrank */
            piece->found->readable = at + piece->fill;
            return false;
        }
        piece->fill += (size_t)more;
    }
    return true;
}

/* Returns `size` bytes of the file, valid until the next call; NULL if it ends before, or after a
 * read error. */
static const uint8_t *bytes_at(struct piece *piece, uint64_t at, size_t size) {
    if (size > piece->capacity || at > piece->size || size > piece->size - at)
        return NULL;
    if ((at < piece->start || at + size > piece->start + piece->fill) &&
        !read_piece(piece, at, size))
        return NULL;
    return piece->data + (at - piece->start);
}

/* Returns the value of an option between `at` and `end`, or NULL. */
static const uint8_t *find_option(const uint8_t *at, const uint8_t *end, unsigned code,
                                  size_t *length) {
    while (end - at >= 4) {
        uint32_t head = get_u32(at);
        *length = head >> 16;
        at += 4;
        if (!head || *length > (size_t)(end - at))
            return NULL;
        if ((head & 0xFFFF) == code)
            return at;
        size_t step = (*length + 3) & ~(size_t)3;
        if (step > (size_t)(end - at))
            return NULL;
        at += step;
    }
    return NULL;
}

/* Returns the block at `at` and its length, or NULL if it is not whole. */
static const uint8_t *block_at(struct piece *piece, uint64_t at, uint32_t *length) {
    const uint8_t *block = bytes_at(piece, at, BLOCK_LEAST);
    if (!block)
        return NULL;
    *length = get_u32(block + 4);
    if (*length < BLOCK_LEAST || *length % 4 || *length > BLOCK_MOST)
        return NULL;
    block = bytes_at(piece, at, *length);
    return block && get_u32(block + *length - 4) == *length ? block : NULL;
}

/* Only sections in the byte order of this host with this program's name are recovered, because no
 * other writer guarantees that a file grows block by block. */
static bool is_our_section(const uint8_t *block, uint32_t length) {
    if (length < MIN_SECTION || get_u32(block) != BLOCK_SECTION ||
        get_u32(block + 8) != PCAPNG_BYTE_ORDER_MAGIC)
        return false;
    size_t text;
    const uint8_t *name =
        find_option(block + MIN_SECTION - 4, block + length - 4, SHB_APPLICATION, &text);
    return name && text >= sizeof PCAPNG_APPLICATION - 1 &&
           !memcmp(name, PCAPNG_APPLICATION, sizeof PCAPNG_APPLICATION - 1);
}

/* A packet must belong to a described interface and fit into its block. */
static bool take_packet(struct recovered *found, const uint8_t *at, uint32_t length) {
    if (length < RECORD_EPB_FIXED)
        return false;
    struct record_view record = record_view(RECORD_PCAPNG, at);
    if (record.interface >= found->interfaces || get_u32(at + 20) > length - RECORD_EPB_FIXED)
        return false;
    struct recovered_interface *interface = &found->of[record.interface];
    if (!interface->packets++)
        interface->first_ns = record.time_ns;
    interface->last_ns = record.time_ns;
    found->packets++;
    found->closed = false;
    return true;
}

/* Each description is one interface, in the order of the file. */
static bool take_interface(struct recovered *found) {
    if (found->interfaces == DESCRIPTIONS_MAX)
        return false;
    found->of[found->interfaces++] = (struct recovered_interface){0};
    return true;
}

/* Statistics with counts of accepted packets mark an orderly end; packets after them clear the
 * mark. */
static bool take_block(struct recovered *found, const uint8_t *at, uint32_t length) {
    size_t size;
    switch (get_u32(at)) {
    case RECORD_PACKET_TYPE: return take_packet(found, at, length);
    case BLOCK_INTERFACE: return length >= 20 && take_interface(found);
    case BLOCK_STATISTICS:
        if (length < STATISTICS_FIXED + 4)
            return false;
        found->closed |=
            find_option(at + STATISTICS_FIXED, at + length - 4, ISB_ACCEPTED, &size) != NULL;
        return true;
    default: return false; /* no other type is written */
    }
}

/* Walks block by block until one is incomplete or unknown. */
static void walk_pcapng(struct recovered *found, struct piece *piece) {
    uint32_t length;
    const uint8_t *block = block_at(piece, 0, &length);
    found->ours = block && is_our_section(block, length);
    if (!found->ours)
        return;
    found->whole = length;
    while ((block = block_at(piece, found->whole, &length)) && take_block(found, block, length))
        found->whole += length;
}

/* A classic file is recognized by its magic number alone: only its name indicates that this program
 * wrote it. */
static void walk_pcap(struct recovered *found, struct piece *piece) {
    found->classic = found->ours = bytes_at(piece, 0, PCAP_HEADER) != NULL;
    if (!found->ours)
        return;
    found->whole = PCAP_HEADER;
    for (const uint8_t *head; (head = bytes_at(piece, found->whole, RECORD_PCAP_HEADER));) {
        uint32_t captured = get_u32(head + 8);
        if (get_u32(head + 4) >= RECORD_SECOND_NS || captured > RECORD_SNAPLEN_MAX ||
            !bytes_at(piece, found->whole, RECORD_PCAP_HEADER + captured))
            return;
        found->whole += RECORD_PCAP_HEADER + captured;
        found->packets++;
    }
}

void recover_walk(struct recovered *found, int fd, uint64_t size) {
    *found = (struct recovered){0};
    if (!size)
        return;
    struct piece piece = {
        .fd = fd, .size = size, .capacity = MIN(size, PIECE_BYTES), .found = found};
    piece.data = malloc(piece.capacity);
    if (!piece.data) {
        found->error = ENOMEM;
        return;
    }
    const uint8_t *magic = bytes_at(&piece, 0, sizeof(uint32_t));
    if (magic && get_u32(magic) == PCAP_MAGIC_NS)
        walk_pcap(found, &piece);
    else if (!found->error)
        walk_pcapng(found, &piece);
    free(piece.data);
}
