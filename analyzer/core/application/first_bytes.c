/* SPDX-License-Identifier: Apache-2.0 */
/* The window of a stream that its parser reads.
 *
 * Bytes come in the order of packets and are placed by their stream position; a byte that was
 * placed is kept if it comes again. The buffer is a window of FIRST_BYTES at most. It moves on when
 * the parser has read or skipped its beginning, so that a message that is skipped by its length is
 * not stored, and it is freed when the parser needs no more. Up to FIRST_PIECES pieces may wait
 * behind a missing byte; later ones are dropped, and the parser then gets no more than was
 * complete. */
#include "application/state.h"
#include "base/bytes.h"

#define ROOM_LEAST 512u

static void free_buffer(struct first_bytes *stream, struct pool *pool) {
    pool_release(pool, stream->bytes, stream->room, 1);
    stream->bytes = NULL;
    stream->room = 0;
}

void first_bytes_drop(struct first_bytes *stream, struct pool *pool) {
    free_buffer(stream, pool);
    stream->over = true;
}

/* Returns false without memory. */
static bool make_room(struct first_bytes *stream, struct pool *pool, uint32_t end) {
    uint32_t room = stream->room, wanted = room ? room : ROOM_LEAST;
    while (wanted < end)
        wanted *= 2;
    bool done = end <= room || pool_grow_to(pool, (void **)&stream->bytes, &room, 1, wanted);
    stream->room = (uint16_t)room;
    return done;
}

/* Adds the pieces that continue the complete bytes. */
static void join_pieces(struct first_bytes *stream) {
    for (unsigned i = 0; i < stream->piece_count;) {
        if (stream->pieces[i].start > stream->ready) {
            i++;
            continue;
        }
        if (stream->pieces[i].end > stream->ready)
            stream->ready = stream->pieces[i].end;
        stream->pieces[i] = stream->pieces[--stream->piece_count];
        i = 0;
    }
}

static uint16_t less(uint16_t number, size_t by) {
    return number > by ? (uint16_t)(number - by) : 0;
}

/* All positions behind the removed bytes change, and so does the base, from which they count. Bytes
 * that were skipped before they came are removed, too. */
void first_bytes_remove(struct first_bytes *stream, size_t at, size_t count) {
    size_t end = stream->ready;
    for (unsigned i = 0; i < stream->piece_count; i++) {
        end = stream->pieces[i].end > end ? stream->pieces[i].end : end;
        stream->pieces[i].start = less(stream->pieces[i].start, count);
        stream->pieces[i].end = less(stream->pieces[i].end, count);
    }
    if (end > at + count)
        memmove(stream->bytes + at, stream->bytes + at + count, end - at - count);
    stream->ready = less(stream->ready, count);
    stream->base = (uint16_t)(stream->base + count);
    join_pieces(stream);
}

void first_bytes_move_on(struct first_bytes *stream, struct pool *pool) {
    if (!stream->parsed)
        return;
    first_bytes_remove(stream, 0, stream->parsed);
    stream->parsed = 0;
    if (!stream->ready && !stream->piece_count)
        free_buffer(stream, pool);
}

uint32_t first_bytes_place(struct first_bytes *stream, struct pool *pool, uint32_t position,
                           const uint8_t *bytes, uint32_t length) {
    uint32_t passed = position < stream->base ? stream->base - position : 0;
    if (passed >= length)
        return length;
    position += passed - stream->base;
    if (position >= FIRST_BYTES)
        return 0;
    uint32_t end = position + length - passed;
    end = end < FIRST_BYTES ? end : FIRST_BYTES;
    uint32_t used = end - position + passed;
    if (end <= stream->ready)
        return used;
    bool apart = position > stream->ready;
    if ((apart && stream->piece_count == FIRST_PIECES) || !make_room(stream, pool, end))
        return 0;
    if (apart) {
        memcpy(stream->bytes + position, bytes + passed, end - position);
        stream->pieces[stream->piece_count].start = (uint16_t)position;
        stream->pieces[stream->piece_count++].end = (uint16_t)end;
        return used;
    }
    uint32_t known = stream->ready - position;
    memcpy(stream->bytes + stream->ready, bytes + passed + known, end - stream->ready);
    stream->ready = (uint16_t)end;
    join_pieces(stream);
    return used;
}
