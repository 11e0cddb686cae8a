/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of packets on their way from the reading threads to the writing one: a bounded number, and
 * a lane for each device. Giving and taking wait for nothing but a lock that is held for some
 * instructions; a reader that finds no empty chunk counts a drop and goes on. */
#ifndef WIRETALE_CAPTURE_CHUNK_QUEUE_H
#define WIRETALE_CAPTURE_CHUNK_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHUNK_BYTES                                                                                \
    (512u << 10) /* holds any packet, and stays in the cache from reading to writing */
#define DEVICES_MAX 32

struct chunk {
    struct chunk *next;
    uint8_t *data; /* whole records, as they go to the file */
    size_t fill;
    uint32_t packets;
    uint32_t device;
    uint32_t description;      /* of all its packets */
    int64_t first_ns, last_ns; /* times of its first and last packet */
    int64_t handed_ns;         /* CLOCK_MONOTONIC */
};

struct lane {
    struct chunk *first, *last; /* filled, in order */
    int64_t complete_ns;        /* no packet older than this is still to come */
    bool ended;                 /* nothing at all is still to come */
};

struct chunk_queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct chunk *empty; /* the last one back is the next one out: it is still in the cache */
    _Atomic size_t empty_count;
    atomic_bool idle; /* the writing thread waits, and there is no work */
    struct lane lanes[DEVICES_MAX];
    uint32_t devices;
    size_t chunks;
    uint8_t *memory;
    struct chunk *all;
};

/* `bytes` of memory, taken from the system only when used. */
bool chunk_queue_open(struct chunk_queue *queue, size_t bytes, uint32_t devices);
void chunk_queue_close(struct chunk_queue *queue);

struct chunk *chunk_queue_acquire(struct chunk_queue *queue); /* NULL when there is none */
void chunk_queue_release(struct chunk_queue *queue, struct chunk *chunk);
/* Hands over what a reader filled (or NULL), and how far its device has been read. */
void chunk_queue_push(struct chunk_queue *queue, uint32_t device, struct chunk *chunk,
                      int64_t complete_ns);
void chunk_queue_end(struct chunk_queue *queue, uint32_t device);
void chunk_queue_wake(struct chunk_queue *queue);

/* Moves all filled chunks to the ends of `taken`'s lanes; waits up to `wait_ns` when there are none
 * and `wait_ns` is not 0. */
void chunk_queue_pop_all(struct chunk_queue *queue, struct lane *taken, int64_t wait_ns);

static inline bool chunk_queue_is_idle(struct chunk_queue *queue) {
    return atomic_load_explicit(&queue->idle, memory_order_relaxed);
}

static inline size_t chunk_queue_empty_count(struct chunk_queue *queue) {
    return atomic_load_explicit(&queue->empty_count, memory_order_relaxed);
}

#endif
