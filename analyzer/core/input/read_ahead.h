/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that decompress files ahead of their reader, each file in order and one thread at a time
 * in each. The reader itself decompresses what no thread has begun, so it never waits for one that
 * is busy with another file, and needs none. One thread may call these functions.
 *
 * Memory is bounded: a source has at most CHUNKS_READY chunks ready, and one that is being filled
 * counts as one of them. Signals are blocked in the threads. */
#ifndef WIRETALE_READ_AHEAD_H
#define WIRETALE_READ_AHEAD_H

#include "input/byte_source.h"

#define CHUNKS_READY 4u
#define CHUNK_LEAST  (64u << 10) /* bytes; a smaller one is not worth another thread */
#define CHUNK_MOST   (256u << 10)
#define CHUNK_BEFORE (64u << 10) /* free bytes before those of a chunk */
#define CHUNK_BUFFER (CHUNK_BEFORE + CHUNK_MOST)

struct read_ahead;
struct ahead_stream; /* a source that is read ahead */

/* The next bytes of a source. */
struct chunk {
    uint8_t *buffer; /* CHUNK_BUFFER bytes from malloc(), of which the data begin at CHUNK_BEFORE */
    size_t size;
    enum input_state state; /* after these bytes */
    uint64_t bytes_read;    /* of the source (compressed) */
};

/* Returns NULL without memory. `threads` are started when they are first needed, `streams` is the
 * number of sources at once at most. */
struct read_ahead *read_ahead_open(unsigned threads, unsigned streams);
/* All sources must have been removed. */
void read_ahead_close(struct read_ahead *ahead);

/* Returns whether a source can be added. */
bool read_ahead_has_room(const struct read_ahead *ahead);

/* Reads a source in chunks of `size` bytes from now on; until read_ahead_remove() nobody else may
 * use it. Returns NULL if there are enough sources, or no memory. */
struct ahead_stream *read_ahead_add(struct read_ahead *ahead, struct byte_source *source,
                                    size_t size);
/* Waits until no thread reads the source. */
void read_ahead_remove(struct ahead_stream *stream);

/* Returns the next chunk; none may follow an end or a failure. The caller owns its buffer, which is
 * NULL if there was no memory. */
struct chunk read_ahead_take(struct ahead_stream *stream);

#endif
