/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/reader.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/huge_pages.h"
#include "decode/decode.h"

#define BATCHES         2u /* one is filled while the other is taken */
#define BATCHES_GROWING 4u
#define WAIT_NS         200000000
#define STACK_BYTES     ((size_t)1 << 20)
/* Times beyond (about 1896 to 2116) are taken as the bound, so that no difference overflows. */
#define TIME_LEAST_NS (-(INT64_C(1) << 61))
#define TIME_MOST_NS  (INT64_C(1) << 62)

#define BATCHES_BYTES ((BATCHES * sizeof(struct batch) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE)

struct reader {
    struct analysis *analysis;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct batch *batches; /* BATCHES of them */
    uint64_t read, taken;  /* batches ever */
    bool ended, joined;
    atomic_bool stopping;
    size_t
        most[BATCHES]; /* packets_decoded of each when it is filled next: told as it is given back,
                          so that its size is no matter of when which thread comes to run */
    part_taken *take;  /* of a batch that is shared, NULL while none is */
    struct batch *shared;
    atomic_uint next_part;
    bool helping;                /* the thread, with that batch */
    int64_t previous_ns, now_ns; /* time of the packet before; see struct batch */
    bool timed;
};

static NOINLINE int64_t unusual_time(const struct reader *ahead, const struct packet *packet) {
    if (packet->time_ns == TIME_UNKNOWN)
        return ahead->previous_ns;
    return packet->time_ns < TIME_LEAST_NS ? TIME_LEAST_NS : TIME_MOST_NS;
}

static inline bool is_usual(int64_t time_ns) {
    return LIKELY((uint64_t)time_ns - (uint64_t)TIME_LEAST_NS <=
                  (uint64_t)TIME_MOST_NS - (uint64_t)TIME_LEAST_NS);
}

/* The clock goes on when two packets in a row say so: one wrong stamp ends no flow. */
static void note_time(struct reader *ahead, int64_t time_ns) {
    int64_t agreed = time_ns < ahead->previous_ns ? time_ns : ahead->previous_ns;
    if (LIKELY(ahead->timed)) {
        ahead->now_ns = agreed > ahead->now_ns ? agreed : ahead->now_ns;
    } else {
        ahead->now_ns = time_ns;
        ahead->timed = true;
    }
    ahead->previous_ns = time_ns;
}

static NOINLINE void note_excluded(struct excluded_packets *excluded, int64_t time_ns) {
    excluded->count++;
    if (time_ns < excluded->first_ns)
        excluded->first_ns = time_ns;
    if (time_ns > excluded->last_ns)
        excluded->last_ns = time_ns;
}

static bool is_wanted(struct analysis *analysis, const struct packet *packet, bool timed,
                      int64_t time_ns) {
    const struct analysis_options *options = &analysis->options;
    if (timed && (time_ns < options->start_ns || time_ns >= options->end_ns)) {
        note_excluded(&analysis->excluded, time_ns);
        return false;
    }
    return !analysis->filter || bpf_filter_pass(analysis->filter, packet);
}

static struct capture_count *count_of(struct analysis *analysis, struct batch *batch,
                                      const struct packet *packet) {
    struct capture_count *count = capture_count_of(analysis, packet->interface);
    if (!LIKELY(count))
        batch->out_of_memory = true;
    return count;
}

static NOINLINE void count_filtered(struct analysis *analysis, struct batch *batch,
                                    const struct packet *packet) {
    struct capture_count *count = count_of(analysis, batch, packet);
    if (count)
        count->filtered++;
}

/* Counts the packet and readies its decoded; false when it goes no further. */
static bool prepare(struct reader *ahead, struct batch *batch, const struct packet *packet,
                    struct decoded_packet *decoded) {
    struct analysis *analysis = ahead->analysis;
    bool usual = is_usual(packet->time_ns), timed = usual || packet->time_ns != TIME_UNKNOWN;
    int64_t time_ns = usual ? packet->time_ns : unusual_time(ahead, packet);
    if (!is_wanted(analysis, packet, timed, time_ns)) {
        count_filtered(analysis, batch, packet);
        return false;
    }
    if (timed)
        note_time(ahead, time_ns);
    struct packet_extras *rest = batch->next_extras;
    struct headers *headers = batch->next_headers;
    packet_prepare(analysis, decoded, rest, headers, packet, time_ns);
    struct capture_count *count = count_of(analysis, batch, packet);
    if (!count)
        return false;
    int64_t step_back_ns = capture_count_packet(count, packet, time_ns);
    capture_count_headers(count, packet, headers);
    if (!LIKELY(!step_back_ns)) {
        rest->step_back_ns = step_back_ns;
        decoded->parts |= EXTRA_STEP_BACK;
    }
    if (!decoded->parts)
        return decoded->keyed;
    decoded->rest = (uint32_t)(rest - batch->extras);
    batch->next_extras++;
    batch->next_headers += (decoded->parts & EXTRA_HEADERS) != 0;
    return true;
}

/* Of the decoded behind the last one. */
static void add_turn(struct batch *batch) {
    const struct decoded_packet *decoded = &batch->packets_decoded[batch->count];
    batch->order[batch->count] =
        (struct turn){.hash = decoded->hash, .packet = (uint32_t)batch->count};
    batch->count++;
}

static void set_mark(const struct reader *ahead, struct batch *batch) {
    batch->marks[batch->mark_count++] = (struct mark){
        .count = (uint32_t)batch->count,
        .bytes_read = merged_input_bytes_read(ahead->analysis->captures),
        .now_ns = ahead->now_ns,
        .timed = ahead->timed,
    };
}

/* Reads on to the next mark; false at the end, or when there is nothing for now. */
static bool read_to_mark(struct reader *ahead, struct batch *batch) {
    struct packet packets[MARK_PACKETS];
    size_t count = merged_input_read(ahead->analysis->captures, packets, MARK_PACKETS);
    for (size_t i = 0; i < count; i++)
        if (LIKELY(prepare(ahead, batch, &packets[i], &batch->packets_decoded[batch->count])))
            add_turn(batch);
    batch->packets += count;
    set_mark(ahead, batch);
    return count;
}

static bool has_room(const struct batch *batch) {
    return batch->count + MARK_PACKETS <= batch->most &&
           batch->next_headers + MARK_PACKETS < batch->headers + BATCH_HEADERS &&
           batch->mark_count < sizeof batch->marks / sizeof *batch->marks;
}

/* Whether turns are asked for: not where packets are only counted, or wanted in their order. */
static bool is_grouped(const struct analysis_options *options) {
    return !options->interfaces_only && options->packets == PACKETS_NONE;
}

/* The first ones are small, so that nobody waits long for something to take. */
static size_t batch_size(const struct reader *ahead) {
    size_t most = ahead->most[ahead->read % BATCHES];
    size_t first = ahead->read < BATCHES_GROWING ? (size_t)BATCH_FIRST << ahead->read : most;
    return first < most ? first : most;
}

/* False when nothing was read. */
static bool fill_batch(struct reader *ahead, struct batch *batch) {
    batch_begin(batch, batch_size(ahead));
    if (ahead->analysis->small && ahead->read == BATCHES) /* more came out of it than expected */
        huge_pages_ask(ahead->batches, BATCHES_BYTES);
    while (has_room(batch) && read_to_mark(ahead, batch) && !ahead->stopping)
        continue;
    if (is_grouped(&ahead->analysis->options))
        batch_set_turns(batch);
    return batch->packets;
}

static void take_parts(struct reader *ahead, struct worker *worker) {
    for (unsigned part; (part = atomic_fetch_add(&ahead->next_part, 1)) < FLOW_PARTS;)
        ahead->take(worker, ahead->shared, part);
}

/* Called and left with the lock held. */
static void help(struct reader *ahead) {
    ahead->helping = true;
    pthread_mutex_unlock(&ahead->lock);
    take_parts(ahead, &ahead->analysis->workers[1]);
    pthread_mutex_lock(&ahead->lock);
    ahead->helping = false;
    pthread_cond_broadcast(&ahead->changed);
}

void reader_process_shards(struct reader *ahead, struct batch *batch, part_taken *take) {
    pthread_mutex_lock(&ahead->lock);
    ahead->take = take;
    ahead->shared = batch;
    ahead->next_part = 0;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
    take_parts(ahead, &ahead->analysis->workers[0]);
    pthread_mutex_lock(&ahead->lock);
    while (ahead->helping)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    ahead->take = NULL;
    pthread_mutex_unlock(&ahead->lock);
}

/* Whether nothing can be read but there are batches to be taken. */
static bool is_free(const struct reader *ahead) {
    uint64_t waiting = ahead->read - ahead->taken;
    return waiting == BATCHES || (ahead->ended && waiting);
}

/* A free batch, or NULL when the reading is over. */
static struct batch *wait_for_room(struct reader *ahead) {
    pthread_mutex_lock(&ahead->lock);
    while (is_free(ahead) && !ahead->stopping) {
        if (ahead->take && ahead->next_part < FLOW_PARTS)
            help(ahead);
        else
            pthread_cond_wait(&ahead->changed, &ahead->lock);
    }
    bool over = ahead->stopping || ahead->ended;
    struct batch *batch = over ? NULL : &ahead->batches[ahead->read % BATCHES];
    pthread_mutex_unlock(&ahead->lock);
    return batch;
}

static void *read_all(void *context) {
    struct reader *ahead = context;
    for (struct batch *batch; (batch = wait_for_room(ahead));) {
        bool filled = fill_batch(ahead, batch);
        bool ended = !filled && merged_input_ended(ahead->analysis->captures);
        pthread_mutex_lock(&ahead->lock);
        ahead->read += filled;
        ahead->ended = ended;
        pthread_cond_broadcast(&ahead->changed);
        pthread_mutex_unlock(&ahead->lock);
    }
    return NULL;
}

/* Signals are for the thread that started it. */
static bool start_thread(struct reader *ahead) {
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = !pthread_create(&ahead->thread, &attributes, read_all, ahead);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

struct reader *reader_start(struct analysis *analysis) {
    struct reader *ahead = calloc(1, sizeof *ahead);
    if (!ahead)
        return NULL;
    ahead->batches = huge_pages_map(BATCHES_BYTES, !analysis->small);
    if (!ahead->batches) {
        free(ahead);
        return NULL;
    }
    ahead->analysis = analysis;
    for (unsigned i = 0; i < BATCHES; i++)
        ahead->most[i] = BATCH;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    if (start_thread(ahead))
        return ahead;
    ahead->joined = true;
    reader_close(ahead);
    return NULL;
}

static void wait_a_while(struct reader *ahead) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&ahead->changed, &ahead->lock, &until);
}

struct batch *reader_next(struct reader *ahead, bool *ended) {
    pthread_mutex_lock(&ahead->lock);
    if (ahead->read == ahead->taken && !ahead->ended && !ahead->joined)
        wait_a_while(ahead);
    bool there = ahead->read != ahead->taken;
    *ended = !there && (ahead->ended || ahead->joined);
    struct batch *batch = there ? &ahead->batches[ahead->taken % BATCHES] : NULL;
    pthread_mutex_unlock(&ahead->lock);
    return batch;
}

void reader_done(struct reader *ahead) {
    bool many = flow_table_count(ahead->analysis->flows) > FLOWS_MANY;
    pthread_mutex_lock(&ahead->lock);
    ahead->most[ahead->taken % BATCHES] = many ? BATCH_SMALL : BATCH;
    ahead->taken++;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

void reader_stop(struct reader *ahead) {
    if (ahead->joined)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->stopping = true;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
    pthread_join(ahead->thread, NULL);
    ahead->joined = true;
}

void reader_close(struct reader *ahead) {
    if (!ahead)
        return;
    reader_stop(ahead);
    pthread_mutex_destroy(&ahead->lock);
    pthread_cond_destroy(&ahead->changed);
    munmap(ahead->batches, BATCHES_BYTES);
    free(ahead);
}
