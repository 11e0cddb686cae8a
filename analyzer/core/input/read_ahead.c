/* SPDX-License-Identifier: Apache-2.0 */
/* A stream has a ring of chunks: `filled` and `taken` count them since its start. The lock protects
 * the counts, and with them the ownership of the chunks; who sets `busy` owns the source until it
 * is cleared. A thread draws the stream that has the fewest chunks ready, the first of these that
 * was added, so that the reader finds some in each of several files that overlap in time. */
#include "input/read_ahead.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define THREADS     64u
#define STACK_BYTES ((size_t)256 << 10)

struct ahead_stream {
    struct read_ahead *ahead;
    struct ahead_stream *next;
    struct byte_source *source;
    size_t size; /* bytes of a chunk */
    struct chunk chunks[CHUNKS_READY];
    uint64_t filled, taken;
    bool busy, ended;
};

struct read_ahead {
    pthread_mutex_t lock;
    pthread_cond_t wanted; /* there may be a stream to read */
    pthread_cond_t filled; /* a stream is not busy any more */
    struct ahead_stream *streams;
    unsigned count, most;
    pthread_t threads[THREADS];
    unsigned started, threads_most, idle;
    bool closing;
};

static unsigned ready(const struct ahead_stream *stream) {
    return (unsigned)(stream->filled - stream->taken);
}

/* Reads a chunk without the lock, which must be held. */
static void fill(struct ahead_stream *stream) {
    struct read_ahead *ahead = stream->ahead;
    struct chunk *chunk = &stream->chunks[stream->filled % CHUNKS_READY];
    stream->busy = true;
    *chunk = (struct chunk){.state = INPUT_FAILED};
    pthread_mutex_unlock(&ahead->lock);
    chunk->buffer = malloc(CHUNK_BUFFER);
    if (chunk->buffer)
        chunk->state = byte_source_read_full(stream->source, chunk->buffer + CHUNK_BEFORE,
                                             stream->size, &chunk->size);
    else
        strcpy(stream->source->error, "out of memory");
    chunk->bytes_read = stream->source->bytes_read;
    pthread_mutex_lock(&ahead->lock);
    stream->ended |= chunk->state == INPUT_ENDED || chunk->state == INPUT_FAILED;
    stream->filled++;
    stream->busy = false;
}

static struct ahead_stream *next_to_fill(struct read_ahead *ahead) {
    struct ahead_stream *best = NULL;
    for (struct ahead_stream *stream = ahead->streams; stream; stream = stream->next)
        if (!stream->busy && !stream->ended && ready(stream) < CHUNKS_READY &&
            (!best || ready(stream) < ready(best)))
            best = stream;
    return best;
}

static void *work(void *context) {
    struct read_ahead *ahead = context;
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->closing) {
        struct ahead_stream *stream = next_to_fill(ahead);
        if (stream) {
            fill(stream);
            pthread_cond_signal(&ahead->filled);
        } else {
            ahead->idle++;
            pthread_cond_wait(&ahead->wanted, &ahead->lock);
            ahead->idle--;
        }
    }
    pthread_mutex_unlock(&ahead->lock);
    return NULL;
}

/* Blocks all signals in the new thread, because Python handles them in its main thread. If a thread
 * cannot be started, the others and the reader do its work. */
static void start_thread(struct read_ahead *ahead) {
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!pthread_create(&ahead->threads[ahead->started], &attributes, work, ahead))
        ahead->started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

struct read_ahead *read_ahead_open(unsigned threads, unsigned streams) {
    struct read_ahead *ahead = calloc(1, sizeof *ahead);
    if (!ahead)
        return NULL;
    ahead->threads_most = threads < THREADS ? threads : THREADS;
    ahead->most = streams;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->wanted, NULL);
    pthread_cond_init(&ahead->filled, NULL);
    return ahead;
}

void read_ahead_close(struct read_ahead *ahead) {
    if (!ahead)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->closing = true;
    pthread_cond_broadcast(&ahead->wanted);
    pthread_mutex_unlock(&ahead->lock);
    for (unsigned i = 0; i < ahead->started; i++)
        pthread_join(ahead->threads[i], NULL);
    pthread_mutex_destroy(&ahead->lock);
    pthread_cond_destroy(&ahead->wanted);
    pthread_cond_destroy(&ahead->filled);
    free(ahead);
}

bool read_ahead_has_room(const struct read_ahead *ahead) {
    return ahead->count < ahead->most;
}

struct ahead_stream *read_ahead_add(struct read_ahead *ahead, struct byte_source *source,
                                    size_t size) {
    struct ahead_stream *stream = read_ahead_has_room(ahead) ? malloc(sizeof *stream) : NULL;
    struct ahead_stream **last = &ahead->streams;
    if (!stream)
        return NULL;
    *stream = (struct ahead_stream){.ahead = ahead, .source = source, .size = size};
    pthread_mutex_lock(&ahead->lock);
    while (*last)
        last = &(*last)->next;
    *last = stream;
    ahead->count++;
    pthread_cond_signal(&ahead->wanted);
    pthread_mutex_unlock(&ahead->lock);
    if (ahead->started < ahead->threads_most && ahead->started < ahead->count)
        start_thread(ahead);
    return stream;
}

void read_ahead_remove(struct ahead_stream *stream) {
    struct read_ahead *ahead = stream->ahead;
    struct ahead_stream **place = &ahead->streams;
    pthread_mutex_lock(&ahead->lock);
    stream->ended = true;
    while (stream->busy)
        pthread_cond_wait(&ahead->filled, &ahead->lock);
    while (*place != stream)
        place = &(*place)->next;
    *place = stream->next;
    ahead->count--;
    pthread_mutex_unlock(&ahead->lock);
    for (; ready(stream); stream->taken++)
        free(stream->chunks[stream->taken % CHUNKS_READY].buffer);
    free(stream);
}

/* A thread that sleeps is woken when half of the chunks are gone, because it costs about as much as
 * a small chunk. */
struct chunk read_ahead_take(struct ahead_stream *stream) {
    struct read_ahead *ahead = stream->ahead;
    pthread_mutex_lock(&ahead->lock);
    while (!ready(stream))
        if (stream->busy)
            pthread_cond_wait(&ahead->filled, &ahead->lock);
        else
            fill(stream);
    struct chunk chunk = stream->chunks[stream->taken++ % CHUNKS_READY];
    if (ahead->idle && !stream->ended && ready(stream) <= CHUNKS_READY / 2)
        pthread_cond_signal(&ahead->wanted);
    pthread_mutex_unlock(&ahead->lock);
    return chunk;
}
