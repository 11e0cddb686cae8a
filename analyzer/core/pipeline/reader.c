/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of an analysis and the two batches: one is filled while the other is processed.
 *
 * A thread that has nothing to do reads the next chunk, if no other one is reading and there is
 * room, and decodes it while others read on; else it draws the next part of the task, of which
 * there are many, so that the fastest thread does most. Chunks that were decoded are completed in
 * file order by the thread that has decoded the first of them.
 *
 * `read` and `taken` count batches since the start; batch n is in place n % BATCHES. A batch is
 * filled until `read` passes it, and belongs to the caller when all its chunks are complete, until
 * `taken` passes it. In the same way `chunks_read` and `chunks_complete` count chunks. The lock
 * protects the counts, and with them the ownership; `changed` is signaled at each change. The
 * capacity of a batch depends on the packets alone and never on the threads: the same files must
 * give the same batches. */
#include "pipeline/state.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/arena.h"

#define BATCHES         2u /* one is filled while the other is processed */
#define BATCHES_GROWING 4u
#define WAIT_NS         200000000
#define STACK_BYTES     ((size_t)1 << 20)
/* So few threads do not wait for each other if a chunk is decoded and completed at once, packet by
 * packet, which costs less. */
#define JOBS_FEW     3u
#define CHUNK_OF_ONE 256u /* packets, of one thread: they stay in the first-level cache */
/* More than so much for each packet of a batch, and it is filled less. */
#define SELECTED_MANY 32u /* bytes */
#define HEADERS_MANY  8u  /* packets for each that keeps its headers */

/* A batch begins with a huge page, so that its lists have few pages that are partly used. */
union batch_place {
    struct batch batch;
    char pages[(sizeof(struct batch) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE];
};
#define BATCHES_BYTES (BATCHES * sizeof(union batch_place))

struct reader {
    struct reader_input *input;
    struct helper {
        struct reader *reader;
        unsigned number; /* of the worker */
        pthread_t thread;
    } helpers[PARTS_MOST];
    unsigned started; /* threads */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    union batch_place *batches;  /* BATCHES of them */
    struct packet_chunk *chunks; /* `chunk_places` of them */
    struct packet_chunk *unused, *first,
        *last; /* lists: of those without packets, and of the others */
    unsigned batch_places, chunk_places;
    uint64_t read, taken; /* batches since the start */
    uint64_t chunks_read, chunks_complete;
    bool ended, closing, stopping;
    bool filling;             /* a batch was begun and is not read yet */
    bool reading, completing; /* a thread does so */
    bool few;                 /* few threads */
    bool copies;              /* packets of several files are copied before they are decoded */
    size_t most[BATCHES]; /* capacity of each batch when it is filled next: set when it is returned,
                             so that it does not depend on the pace of the threads */
    reader_task *task;    /* NULL if there is none */
    void *context;        /* its argument */
    uint32_t parts;
    atomic_uint next_part;
    unsigned busy; /* threads, but for the caller's, that are in the task */
};

/* --- chunks: the lock is held, and released while a thread works ------------------------------ */

static struct batch *batch_at(struct reader *reader, uint64_t number) {
    return &reader->batches[number % reader->batch_places].batch;
}

/* The first batches are small, so that processing begins early. */
static size_t batch_size(const struct reader *reader) {
    size_t most = reader->most[reader->read % BATCHES];
    size_t first = reader->read < BATCHES_GROWING ? (size_t)BATCH_FIRST << reader->read : most;
    return first < most ? first : most;
}

static void begin_batch(struct reader *reader) {
    batch_begin(batch_at(reader, reader->read), batch_size(reader));
    if (reader->input->small && reader->read == BATCHES) /* more came out than expected */
        huge_pages_ask(reader->batches, BATCHES_BYTES);
    reader->filling = true;
}

static void end_batch(struct reader *reader) {
    batch_at(reader, reader->read++)->chunks_end = reader->chunks_read;
    reader->filling = false;
}

static bool may_read(const struct reader *reader) {
    return !reader->reading && !reader->ended && !reader->stopping &&
           reader->read - reader->taken < reader->batch_places && reader->unused;
}

static void note_complete(struct reader *reader) {
    struct packet_chunk *chunk = reader->first;
    reader->first = chunk->next;
    chunk->next = reader->unused;
    reader->unused = chunk;
    reader->chunks_complete++;
}

static void complete_chunks(struct reader *reader) {
    while (!reader->completing && reader->first && reader->first->decoded) {
        struct packet_chunk *chunk = reader->first;
        reader->completing = true;
        pthread_mutex_unlock(&reader->lock);
        chunk_complete(chunk, reader->input);
        pthread_mutex_lock(&reader->lock);
        reader->completing = false;
        note_complete(reader);
    }
    pthread_cond_broadcast(&reader->changed);
}

static void decode_chunk(struct reader *reader, struct packet_chunk *chunk) {
    bool alone = reader->few && reader->first == chunk;
    reader->completing |= alone;
    pthread_mutex_unlock(&reader->lock);
    if (alone)
        chunk_decode_alone(chunk, reader->input);
    else
        chunk_decode(chunk, reader->input);
    pthread_mutex_lock(&reader->lock);
    chunk->decoded = true;
    if (alone) {
        reader->completing = false;
        note_complete(reader);
    }
    complete_chunks(reader);
}

/* Makes sure that the next read leaves the bytes of the chunk before. */
static void keep_last(struct reader *reader) {
    struct packet_chunk *last = reader->last;
    if (reader->first && !last->kept && !reader->copies)
        last->kept = chunk_keep(last, reader->input);
    while (reader->first && !last->kept)
        pthread_cond_wait(&reader->changed, &reader->lock);
}

/* Adds a chunk behind those that are not complete. A batch ends if it is full, or if the input
 * pauses, so that a live capture is analyzed without delay. */
static void add_chunk(struct reader *reader, struct packet_chunk *chunk, struct batch *batch) {
    if (chunk->count) {
        *(reader->first ? &reader->last->next : &reader->first) = chunk;
        reader->last = chunk;
        reader->chunks_read++;
    } else {
        chunk->next = reader->unused;
        reader->unused = chunk;
    }
    if (chunk->count ? !chunk_has_room(batch) : batch->count != 0)
        end_batch(reader);
}

/* Reads and decodes a chunk. Returns false if there was none. */
static bool read_chunk(struct reader *reader) {
    struct reader_input *input = reader->input;
    struct batch *batch = batch_at(reader, reader->read);
    struct packet_chunk *chunk = reader->unused;
    reader->unused = chunk->next;
    reader->reading = true;
    if (!reader->filling)
        begin_batch(reader);
    keep_last(reader);
    pthread_mutex_unlock(&reader->lock);
    chunk_read(chunk, input, batch, input->jobs == 1 ? CHUNK_OF_ONE : CHUNK_PACKETS);
    bool some = chunk->count, ended = !some && merged_input_ended(input->files);
    chunk->kept = reader->copies && chunk_keep(chunk, input);
    pthread_mutex_lock(&reader->lock);
    add_chunk(reader, chunk, batch);
    reader->ended = ended;
    reader->reading = false;
    pthread_cond_broadcast(&reader->changed);
    if (some)
        decode_chunk(reader, chunk);
    return some;
}

/* --- tasks ------------------------------------------------------------------------------------ */

/* Runs on all threads at once; each part is drawn by one of them. */
static void run_parts(struct reader *reader, unsigned worker) {
    for (uint32_t part; (part = atomic_fetch_add(&reader->next_part, 1)) < reader->parts;)
        reader->task(reader->context, worker, part);
}

/* The lock must be held; it is released meanwhile. Returns whether there was a task. */
static bool join_task(struct reader *reader, unsigned worker) {
    if (!reader->task || reader->next_part >= reader->parts)
        return false;
    reader->busy++;
    pthread_mutex_unlock(&reader->lock);
    run_parts(reader, worker);
    pthread_mutex_lock(&reader->lock);
    if (!--reader->busy)
        pthread_cond_broadcast(&reader->changed);
    return true;
}

/* Another thread may join at any time before the last part is drawn. All must have finished their
 * parts before this returns, because the caller then changes what they used. */
void reader_run(struct reader *reader, reader_task *task, void *context, uint32_t parts) {
    pthread_mutex_lock(&reader->lock);
    reader->task = task;
    reader->context = context;
    reader->parts = parts;
    reader->next_part = 0;
    pthread_cond_broadcast(&reader->changed);
    pthread_mutex_unlock(&reader->lock);
    run_parts(reader, 0);
    pthread_mutex_lock(&reader->lock);
    while (reader->busy)
        pthread_cond_wait(&reader->changed, &reader->lock);
    reader->task = NULL;
    pthread_mutex_unlock(&reader->lock);
}

/* --- threads ---------------------------------------------------------------------------------- */

static void *work(void *context) {
    struct helper *helper = context;
    struct reader *reader = helper->reader;
    pthread_mutex_lock(&reader->lock);
    while (!reader->closing) {
        if (may_read(reader))
            read_chunk(reader);
        else if (!join_task(reader, helper->number))
            pthread_cond_wait(&reader->changed, &reader->lock);
    }
    pthread_mutex_unlock(&reader->lock);
    return NULL;
}

/* Blocks all signals in the new threads, so that the thread that starts them receives them: Python
 * handles signals in its main thread only. Returns false if no thread can be created. */
static bool start_threads(struct reader *reader) {
    sigset_t all, before;
    pthread_attr_t attributes;
    bool started = true;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 1; started && i < reader->input->jobs; i++) {
        struct helper *helper = &reader->helpers[reader->started];
        *helper = (struct helper){.reader = reader, .number = i};
        started = !pthread_create(&helper->thread, &attributes, work, helper);
        reader->started += started;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

struct reader *reader_start(struct reader_input *input) {
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->input = input;
    reader->few = input->jobs <= JOBS_FEW;
    reader->copies = input->jobs > 1 && merged_input_files(input->files) > 1;
    reader->batch_places = input->jobs > 1 ? BATCHES : 1;
    reader->chunk_places = input->jobs > 1 ? input->jobs + 1 : 1;
    for (unsigned i = 0; i < BATCHES; i++)
        reader->most[i] = input->again ? BATCH_SMALL : BATCH;
    pthread_mutex_init(&reader->lock, NULL);
    pthread_cond_init(&reader->changed, NULL);
    reader->batches = huge_pages_map(BATCHES_BYTES, !input->small);
    reader->chunks = huge_pages_map(reader->chunk_places * sizeof *reader->chunks, false);
    for (unsigned i = 0; reader->chunks && i < reader->chunk_places; i++) {
        reader->chunks[i].next = reader->unused;
        reader->unused = &reader->chunks[i];
    }
    if (reader->batches && reader->chunks && start_threads(reader))
        return reader;
    reader_close(reader);
    return NULL;
}

/* Waits up to WAIT_NS, with the lock. The bound lets the caller handle signals while a pipe has no
 * data. Returns false if nothing changed. */
static bool wait_a_while(struct reader *reader) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return !pthread_cond_timedwait(&reader->changed, &reader->lock, &until);
}

struct batch *reader_next(struct reader *reader, bool *ended) {
    struct batch *batch = NULL;
    bool waits = true;
    *ended = false;
    pthread_mutex_lock(&reader->lock);
    while (waits && !batch && !*ended) {
        if (reader->read == reader->taken)
            *ended = reader->ended || reader->stopping;
        else if (batch_at(reader, reader->taken)->chunks_end <= reader->chunks_complete)
            batch = batch_at(reader, reader->taken);
        if (!batch && !*ended)
            waits = may_read(reader) ? read_chunk(reader) : wait_a_while(reader);
    }
    pthread_mutex_unlock(&reader->lock);
    return batch;
}

void reader_done(struct reader *reader) {
    const struct batch *batch = batch_at(reader, reader->taken);
    bool many = reader->input->again || live_flows(reader->input->updater) > FLOWS_MANY ||
                batch->selected_bytes / SELECTED_MANY > batch->count ||
                batch->header_count > batch->count / HEADERS_MANY;
    pthread_mutex_lock(&reader->lock);
    reader->most[reader->taken % BATCHES] = many ? BATCH_SMALL : BATCH;
    reader->taken++;
    pthread_cond_broadcast(&reader->changed);
    pthread_mutex_unlock(&reader->lock);
}

/* A batch that is not full is handed on. */
void reader_stop(struct reader *reader) {
    pthread_mutex_lock(&reader->lock);
    reader->stopping = true;
    while (reader->reading || reader->first)
        pthread_cond_wait(&reader->changed, &reader->lock);
    if (reader->filling && batch_at(reader, reader->read)->count)
        end_batch(reader);
    reader->filling = false;
    pthread_mutex_unlock(&reader->lock);
}

void reader_release(struct reader *reader) {
    reader_stop(reader);
    if (reader->batches)
        munmap(reader->batches, BATCHES_BYTES);
    for (unsigned i = 0; reader->chunks && i < reader->chunk_places; i++)
        free(reader->chunks[i].bytes.bytes);
    if (reader->chunks)
        munmap(reader->chunks, reader->chunk_places * sizeof *reader->chunks);
    reader->batches = NULL;
    reader->chunks = NULL;
}

void reader_close(struct reader *reader) {
    if (!reader)
        return;
    reader_release(reader);
    pthread_mutex_lock(&reader->lock);
    reader->closing = true;
    pthread_cond_broadcast(&reader->changed);
    pthread_mutex_unlock(&reader->lock);
    for (unsigned i = 0; i < reader->started; i++)
        pthread_join(reader->helpers[i].thread, NULL);
    pthread_mutex_destroy(&reader->lock);
    pthread_cond_destroy(&reader->changed);
    free(reader);
}
