/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's thread and its two batches: one is filled while the other is processed.
 *
 * `read` and `taken` count batches since the start; batch n is in place n % BATCHES. The lock
 * protects the counts, and with them the ownership of the batches: a batch belongs to the reader
 * until `read` passes it, then to the caller until `taken` does. `changed` is signalled at each
 * change.
 *
 * If both batches are full, or the input has ended, the reader's thread processes shards as the
 * second worker. Both threads draw the next shard from `next_part`, so that the faster one does
 * more. The capacity of a batch depends on the packets alone and never on the pace of the
 * threads: the same files must give the same batches. */
#include "pipeline/reader.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/arena.h"
#include "base/bytes.h"

#define BATCHES         2u /* one is filled while the other is processed */
#define BATCHES_GROWING 4u
#define WAIT_NS         200000000
#define STACK_BYTES     ((size_t)1 << 20)

#define BATCHES_BYTES ((BATCHES * sizeof(struct batch) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE)

struct reader {
    struct reader_input *input;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct batch *batches; /* BATCHES of them */
    uint64_t read, taken;  /* batches since the start */
    bool ended, joined;
    atomic_bool stopping;
    size_t most[BATCHES]; /* capacity of each batch when it is filled next: set when it is returned,
                             so that it does not depend on the pace of the threads */
    shard_processor *take; /* of the batch that is shared; NULL if none is */
    struct batch *shared;
    atomic_uint next_part;
    bool helping;                /* the reader's thread processes shards */
    int64_t previous_ns, now_ns; /* ns; time of the packet before, and the time that two successive
                                    packets reached */
    bool timed;
};

/* The clock advances only if two successive packets agree, so that one wrong time stamp ends no
 * flow. */
static void note_time(struct reader *reader, int64_t time_ns) {
    int64_t agreed = time_ns < reader->previous_ns ? time_ns : reader->previous_ns;
    if (LIKELY(reader->timed)) {
        reader->now_ns = agreed > reader->now_ns ? agreed : reader->now_ns;
    } else {
        reader->now_ns = time_ns;
        reader->timed = true;
    }
    reader->previous_ns = time_ns;
}

static NOINLINE void note_excluded(struct excluded_packets *excluded, int64_t time_ns) {
    excluded->count++;
    if (time_ns < excluded->first_ns)
        excluded->first_ns = time_ns;
    if (time_ns > excluded->last_ns)
        excluded->last_ns = time_ns;
}

static bool is_wanted(struct reader_input *input, const struct packet *packet, bool timed,
                      int64_t time_ns) {
    if (timed && (time_ns < input->start_ns || time_ns >= input->end_ns)) {
        note_excluded(&input->excluded, time_ns);
        return false;
    }
    return !input->filter || bpf_filter_pass(input->filter, packet);
}

static struct interface_count *count_of(struct reader_input *input, struct batch *batch,
                                        const struct packet *packet) {
    struct interface_count *count = interface_count_of(&input->counts, packet->interface);
    if (!LIKELY(count))
        batch->out_of_memory = true;
    return count;
}

static NOINLINE void count_filtered(struct reader_input *input, struct batch *batch,
                                    const struct packet *packet) {
    struct interface_count *count = count_of(input, batch, packet);
    if (count)
        count->filtered++;
}

/* has_room() has made sure that there is room for the packets up to the next mark. */
static void keep_selected(struct batch *batch, struct packet_extras *extras,
                          const struct headers *headers) {
    extras->selected_at = batch->selected_bytes;
    memcpy(batch->selected + batch->selected_bytes, headers->payload, extras->selected.length);
    batch->selected_bytes += extras->selected.length;
    batch->selected_count++;
}

/* Counts and decodes a packet. Returns false if it is not processed further: it is filtered, or is
 * not IP and has no extras. Packets outside the interval are not decoded and do not advance the
 * clock. The extras and headers are written to the next unused places of the batch, which are kept
 * only if the packet needs them. */
static bool prepare(struct reader *reader, struct batch *batch, const struct packet *packet,
                    struct decoded_packet *decoded) {
    struct reader_input *input = reader->input;
    bool timed = LIKELY(packet_is_timed(packet));
    int64_t time_ns = timed ? packet->time_ns : reader->previous_ns;
    if (!is_wanted(input, packet, timed, time_ns)) {
        count_filtered(input, batch, packet);
        return false;
    }
    if (timed)
        note_time(reader, time_ns);
    struct packet_extras *extras = batch->next_extras;
    struct headers *headers = batch->next_headers;
    packet_prepare(input->updater, decoded, extras, headers, packet, time_ns);
    struct interface_count *count = count_of(input, batch, packet);
    if (!count)
        return false;
    int64_t step_back_ns = interface_count_packet(count, packet, time_ns);
    bursts_add(&count->bursts, count->last_ns, count->bytes - packet->length, count->bytes,
               packet->frame, &input->counts.rings_bytes);
    decoded->info.clock_step_us = count->clock_step_us;
    interface_count_headers(count, packet, headers);
    if (!LIKELY(!step_back_ns)) {
        extras->step_back_ns = step_back_ns;
        decoded->extra_kinds |= EXTRA_STEP_BACK;
    }
    if (!decoded->extra_kinds)
        return decoded->keyed;
    if (decoded->extra_kinds & EXTRA_APPLICATION)
        keep_selected(batch, extras, headers);
    decoded->extras = (uint32_t)(extras - batch->extras);
    batch->next_extras++;
    batch->next_headers += (decoded->extra_kinds & EXTRA_HEADERS) != 0;
    return true;
}

/* Adds the decoded packet behind the last one. */
static void add_entry(struct batch *batch) {
    const struct decoded_packet *decoded = &batch->decoded[batch->count];
    batch->in_order[batch->count] =
        (struct batch_entry){.hash = decoded->hash, .packet = (uint32_t)batch->count};
    batch->count++;
}

static void set_mark(const struct reader *reader, struct batch *batch) {
    batch->marks[batch->mark_count++] = (struct mark){
        .count = (uint32_t)batch->count,
        .bytes_read = merged_input_bytes_read(reader->input->files),
        .now_ns = reader->now_ns,
        .timed = reader->timed,
    };
}

/* Reads up to the next mark. Returns false at the end, or if nothing can be read now. */
static bool read_to_mark(struct reader *reader, struct batch *batch) {
    struct packet packets[MARK_PACKETS];
    size_t count = merged_input_read(reader->input->files, packets, MARK_PACKETS);
    for (size_t i = 0; i < count; i++)
        if (LIKELY(prepare(reader, batch, &packets[i], &batch->decoded[batch->count])))
            add_entry(batch);
    batch->packets += count;
    set_mark(reader, batch);
    return count;
}

static bool has_room(const struct batch *batch) {
    return batch->count + MARK_PACKETS <= batch->most &&
           batch->next_headers + MARK_PACKETS < batch->headers + BATCH_HEADERS &&
           batch->selected_bytes + MARK_SELECTED <= BATCH_SELECTED &&
           batch->mark_count < sizeof batch->marks / sizeof *batch->marks;
}

/* The first batches are small, so that processing begins early. */
static size_t batch_size(const struct reader *reader) {
    size_t most = reader->most[reader->read % BATCHES];
    size_t first = reader->read < BATCHES_GROWING ? (size_t)BATCH_FIRST << reader->read : most;
    return first < most ? first : most;
}

/* Returns false if nothing was read. If the input pauses, the batch is handed on before it is full,
 * so that a live capture is analyzed without delay. */
static bool fill_batch(struct reader *reader, struct batch *batch) {
    batch_begin(batch, batch_size(reader));
    if (reader->input->small &&
        reader->read == BATCHES) /* more came out of the files than expected */
        huge_pages_ask(reader->batches, BATCHES_BYTES);
    while (has_room(batch) && read_to_mark(reader, batch) && !reader->stopping)
        continue;
    if (reader->input->by_flow)
        batch_sort_by_flow(batch);
    return batch->packets;
}

/* Runs on both threads at once; each shard is drawn by one of them. */
static void process_shards(struct reader *reader, struct worker *worker) {
    for (unsigned part; (part = atomic_fetch_add(&reader->next_part, 1)) < FLOW_PARTS;)
        reader->take(worker, reader->shared, part);
}

/* The lock must be held; it is released meanwhile. */
static void process_shards_meanwhile(struct reader *reader) {
    reader->helping = true;
    pthread_mutex_unlock(&reader->lock);
    process_shards(reader, &reader->input->updater->workers[1]);
    pthread_mutex_lock(&reader->lock);
    reader->helping = false;
    pthread_cond_broadcast(&reader->changed);
}

/* The other thread may join at any time before the last shard is drawn. It must have finished its
 * shard before this returns, because the caller then emits the rows of the whole batch. */
void reader_process_shards(struct reader *reader, struct batch *batch, shard_processor *take) {
    pthread_mutex_lock(&reader->lock);
    reader->take = take;
    reader->shared = batch;
    reader->next_part = 0;
    pthread_cond_broadcast(&reader->changed);
    pthread_mutex_unlock(&reader->lock);
    process_shards(reader, &reader->input->updater->workers[0]);
    pthread_mutex_lock(&reader->lock);
    while (reader->helping)
        pthread_cond_wait(&reader->changed, &reader->lock);
    reader->take = NULL;
    pthread_mutex_unlock(&reader->lock);
}

/* Returns whether nothing can be read while batches wait to be processed. */
static bool has_idle_time(const struct reader *reader) {
    uint64_t waiting = reader->read - reader->taken;
    return waiting == BATCHES || (reader->ended && waiting);
}

/* Returns a free batch, or NULL if reading is over. */
static struct batch *wait_for_room(struct reader *reader) {
    pthread_mutex_lock(&reader->lock);
    while (has_idle_time(reader) && !reader->stopping) {
        if (reader->take && reader->next_part < FLOW_PARTS)
            process_shards_meanwhile(reader);
        else
            pthread_cond_wait(&reader->changed, &reader->lock);
    }
    bool over = reader->stopping || reader->ended;
    struct batch *batch = over ? NULL : &reader->batches[reader->read % BATCHES];
    pthread_mutex_unlock(&reader->lock);
    return batch;
}

static void *read_all(void *context) {
    struct reader *reader = context;
    for (struct batch *batch; (batch = wait_for_room(reader));) {
        bool filled = fill_batch(reader, batch);
        bool ended = !filled && merged_input_ended(reader->input->files);
        pthread_mutex_lock(&reader->lock);
        reader->read += filled;
        reader->ended = ended;
        pthread_cond_broadcast(&reader->changed);
        pthread_mutex_unlock(&reader->lock);
    }
    return NULL;
}

/* Blocks all signals in the new thread, so that the thread that starts the reader receives them:
 * Python handles signals in its main thread only. Returns false if no thread can be created. */
static bool start_thread(struct reader *reader) {
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = !pthread_create(&reader->thread, &attributes, read_all, reader);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

struct reader *reader_start(struct reader_input *input) {
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->batches = huge_pages_map(BATCHES_BYTES, !input->small);
    if (!reader->batches) {
        free(reader);
        return NULL;
    }
    reader->input = input;
    for (unsigned i = 0; i < BATCHES; i++)
        reader->most[i] = BATCH;
    pthread_mutex_init(&reader->lock, NULL);
    pthread_cond_init(&reader->changed, NULL);
    if (start_thread(reader))
        return reader;
    reader->joined = true;
    reader_close(reader);
    return NULL;
}

/* Waits up to WAIT_NS. The bound lets the caller handle signals while a pipe has no data. The lock
 * must be held. */
static void wait_a_while(struct reader *reader) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&reader->changed, &reader->lock, &until);
}

struct batch *reader_next(struct reader *reader, bool *ended) {
    pthread_mutex_lock(&reader->lock);
    if (reader->read == reader->taken && !reader->ended && !reader->joined)
        wait_a_while(reader);
    bool there = reader->read != reader->taken;
    *ended = !there && (reader->ended || reader->joined);
    struct batch *batch = there ? &reader->batches[reader->taken % BATCHES] : NULL;
    pthread_mutex_unlock(&reader->lock);
    return batch;
}

void reader_done(struct reader *reader) {
    bool many = flow_table_count(reader->input->updater->flows) > FLOWS_MANY;
    pthread_mutex_lock(&reader->lock);
    reader->most[reader->taken % BATCHES] = many ? BATCH_SMALL : BATCH;
    reader->taken++;
    pthread_cond_broadcast(&reader->changed);
    pthread_mutex_unlock(&reader->lock);
}

void reader_stop(struct reader *reader) {
    if (reader->joined)
        return;
    pthread_mutex_lock(&reader->lock);
    reader->stopping = true;
    pthread_cond_broadcast(&reader->changed);
    pthread_mutex_unlock(&reader->lock);
    pthread_join(reader->thread, NULL);
    reader->joined = true;
}

void reader_close(struct reader *reader) {
    if (!reader)
        return;
    reader_stop(reader);
    pthread_mutex_destroy(&reader->lock);
    pthread_cond_destroy(&reader->changed);
    munmap(reader->batches, BATCHES_BYTES);
    free(reader);
}
