/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of an analysis and the two batches: one is filled while the other is processed.
 *
 * `read` and `taken` count batches since the start; batch n is in place n % BATCHES. The lock
 * protects the counts, and with them the ownership of the batches: a batch belongs to the reader
 * until `read` passes it, then to the caller until `taken` does. `changed` is signalled at each
 * change.
 *
 * A task is divided into parts, which all threads draw from `next_part`, so that the fastest one
 * does most. The first thread that was started reads, and draws parts while both batches are full
 * or the input has ended; the others only draw parts. The capacity of a batch depends on the
 * packets alone and never on the threads: the same files must give the same batches. */
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
#include "format/packet_origin.h"

#define BATCHES         2u /* one is filled while the other is processed */
#define BATCHES_GROWING 4u
#define WAIT_NS         200000000
#define STACK_BYTES     ((size_t)1 << 20)

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
        unsigned number; /* of the worker; 1 reads */
        pthread_t thread;
    } helpers[PARTS_MOST];
    unsigned started; /* threads */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    union batch_place *batches; /* BATCHES of them */
    uint64_t read, taken;       /* batches since the start */
    bool ended, closing;
    atomic_bool stopping;
    bool reading;         /* a thread reads */
    size_t most[BATCHES]; /* capacity of each batch when it is filled next: set when it is returned,
                             so that it does not depend on the pace of the threads */
    reader_task *task;    /* NULL if there is none */
    void *context;        /* its argument */
    uint32_t parts;
    atomic_uint next_part;
    unsigned busy;               /* threads, but for the caller's, that are in the task */
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

/* Two packets that are successive in a shard were not in the capture: the clock is that of the
 * file, or a little before it. */
static NOINLINE void note_shard_time(struct reader *reader, const struct packet *packet) {
    int64_t clock_ns = packet->time_ns - CLOCK_LAG_NS;
    if (!packet_is_timed(packet))
        return;
    if (packet->shard & SHARD_ORIGIN)
        clock_ns = packet_origin_of(packet).used_ns;
    clock_ns = clock_ns > TIME_LEAST_NS ? clock_ns : TIME_LEAST_NS;
    reader->now_ns = !reader->timed || clock_ns > reader->now_ns ? clock_ns : reader->now_ns;
    reader->timed = true;
    reader->previous_ns = packet->time_ns;
}

NOINLINE void wanted_packets_exclude(struct excluded_packets *excluded, int64_t time_ns) {
    excluded->count++;
    if (time_ns < excluded->first_ns)
        excluded->first_ns = time_ns;
    if (time_ns > excluded->last_ns)
        excluded->last_ns = time_ns;
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

/* Returns the time that counts for a packet without one. */
static NOINLINE int64_t other_time(const struct reader *reader, const struct packet *packet) {
    return packet->shard & SHARD_ORIGIN ? packet_origin_of(packet).used_ns : reader->previous_ns;
}

/* Sets the state that packets of other shards would have left. Returns the step back. */
static NOINLINE int64_t set_origin(const struct packet *packet, struct decoded_packet *decoded,
                                   struct packet_extras *extras, bool several) {
    struct packet_origin origin = {0};
    if (packet->shard & SHARD_ORIGIN)
        origin = packet_origin_of(packet);
    decoded->info.clock_step_us = origin.clock_step_us;
    if (origin.flags & ORIGIN_QUOTE_ONLY)
        decoded->extra_kinds |= decoded->extra_kinds & EXTRA_HEADERS ? EXTRA_QUOTE_ONLY : 0;
    if (origin.flags & ORIGIN_NOT_QUOTED)
        decoded->extra_kinds |= EXTRA_NOT_QUOTED;
    /* In one of several files, a later time of another one may have advanced the clock. */
    int64_t latest_ns = several ? origin.merge_ns : origin.used_ns;
    if (packet->shard & SHARD_ORIGIN && latest_ns > decoded->info.time_ns) {
        extras->late_ns = latest_ns - decoded->info.time_ns;
        decoded->extra_kinds |= EXTRA_LATE;
    }
    return origin.step_back_ns;
}

/* Returns whether a packet is in a file behind those that may begin flows. */
static NOINLINE bool is_behind(const struct reader_input *input, const struct packet *packet) {
    return merged_input_interfaces(input->files)->items[packet->interface]->file_index >=
           input->flow_files;
}

/* Returns whether a second reading must process the packet. An ICMP error may be wanted for one of
 * its two flows alone. */
static NOINLINE bool is_chosen(const struct pair_choice *pairs, struct decoded_packet *decoded,
                               const struct headers *headers) {
    bool own = pair_choice_has(pairs, shard_of(&pairs->key, headers, PAIRS));
    if (LIKELY(!quotes_packet(decoded)))
        return own;
    bool quoted = pair_choice_has(pairs, shard_of_quoted(&pairs->key, headers, PAIRS));
    decoded->extra_kinds |= own ? 0 : EXTRA_QUOTE_ONLY;
    decoded->extra_kinds |= quoted ? 0 : EXTRA_NOT_QUOTED;
    return own || quoted;
}

/* Counts and decodes a packet. Returns false if it is not processed further: it is filtered, or is
 * not IP and has no extras. Packets outside the interval are not decoded and do not advance the
 * clock. The extras and headers are written to the next unused places of the batch, which are kept
 * only if the packet needs them. */
static bool prepare(struct reader *reader, struct batch *batch, const struct packet *packet,
                    struct decoded_packet *decoded) {
    struct reader_input *input = reader->input;
    bool timed = LIKELY(packet_is_timed(packet));
    int64_t time_ns = timed ? packet->time_ns : other_time(reader, packet);
    if (!is_wanted(&input->wanted, packet, time_ns)) {
        count_filtered(input, batch, packet);
        return false;
    }
    if (!LIKELY(!packet->shard))
        note_shard_time(reader, packet);
    else if (timed)
        note_time(reader, time_ns);
    struct packet_extras *extras = batch->next_extras;
    struct headers *headers = batch->next_headers;
    packet_prepare(input->updater, decoded, extras, headers, packet, time_ns);
    decoded->info.continues = input->flow_files && is_behind(input, packet);
    struct interface_count *count = count_of(input, batch, packet);
    if (!count)
        return false;
    int64_t step_back_ns = interface_count_packet(count, packet, time_ns);
    bursts_add(&count->bursts, count->last_ns, count->bytes - packet->length, count->bytes,
               packet->frame, &input->counts.rings_bytes);
    decoded->info.clock_step_us = count->clock_step_us;
    interface_count_headers(count, packet, headers);
    if (!LIKELY(!packet->shard))
        step_back_ns = set_origin(packet, decoded, extras, merged_input_files(input->files) > 1);
    if (!LIKELY(!step_back_ns)) {
        extras->step_back_ns = step_back_ns;
        decoded->extra_kinds |= EXTRA_STEP_BACK;
    }
    if (!LIKELY(!input->updater->choice) && !is_chosen(input->updater->choice, decoded, headers))
        return false;
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
    batch->in_order[batch->entries++] =
        (struct batch_entry){.hash = decoded->hash, .packet = (uint32_t)batch->count};
    if (!LIKELY(!(decoded->extra_kinds & EXTRA_HEADERS)) && quotes_packet(decoded))
        batch->in_order[batch->entries++] =
            (struct batch_entry){.hash = batch->extras[decoded->extras].quoted_hash,
                                 .packet = (uint32_t)batch->count | ENTRY_QUOTED};
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
    return batch->packets;
}

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

/* Returns a batch by its number. One thread needs one place. */
static struct batch *batch_at(struct reader *reader, uint64_t number) {
    return &reader->batches[reader->input->jobs > 1 ? number % BATCHES : 0].batch;
}

/* Reads a batch without the lock, which must be held. */
static void read_batch(struct reader *reader) {
    struct batch *batch = batch_at(reader, reader->read);
    reader->reading = true;
    pthread_mutex_unlock(&reader->lock);
    bool filled = fill_batch(reader, batch);
    bool ended = !filled && merged_input_ended(reader->input->files);
    pthread_mutex_lock(&reader->lock);
    reader->reading = false;
    reader->read += filled;
    reader->ended = ended;
    pthread_cond_broadcast(&reader->changed);
}

/* The first thread reads whenever a batch is free. */
static void *work(void *context) {
    struct helper *helper = context;
    struct reader *reader = helper->reader;
    pthread_mutex_lock(&reader->lock);
    while (!reader->closing) {
        bool reads = helper->number == 1 && !reader->ended && !reader->stopping;
        if (reads && reader->read - reader->taken < BATCHES)
            read_batch(reader);
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
    if (start_threads(reader))
        return reader;
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
    bool wanted = reader->read == reader->taken && !reader->ended && !reader->stopping;
    if (wanted && reader->input->jobs == 1)
        read_batch(reader);
    else if (wanted)
        wait_a_while(reader);
    bool there = reader->read != reader->taken;
    *ended = !there && (reader->ended || reader->stopping);
    struct batch *batch = there ? batch_at(reader, reader->taken) : NULL;
    pthread_mutex_unlock(&reader->lock);
    return batch;
}

void reader_done(struct reader *reader) {
    bool many = live_flows(reader->input->updater) > FLOWS_MANY;
    pthread_mutex_lock(&reader->lock);
    reader->most[reader->taken % BATCHES] = many ? BATCH_SMALL : BATCH;
    reader->taken++;
    pthread_cond_broadcast(&reader->changed);
    pthread_mutex_unlock(&reader->lock);
}

void reader_stop(struct reader *reader) {
    pthread_mutex_lock(&reader->lock);
    reader->stopping = true;
    pthread_cond_broadcast(&reader->changed);
    while (reader->reading)
        pthread_cond_wait(&reader->changed, &reader->lock);
    pthread_mutex_unlock(&reader->lock);
}

void reader_release(struct reader *reader) {
    reader_stop(reader);
    if (reader->batches)
        munmap(reader->batches, BATCHES_BYTES);
    reader->batches = NULL;
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
