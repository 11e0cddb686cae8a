/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded queue of chunks of packets from the reading threads to the writing thread, with a lane
 * for each device. Invariant: no call waits for another thread, except for the lock and if
 * chunk_queue_pop_all() is asked to wait. If no chunk is empty, a reading thread leaves packets to
 * the kernel's ring. */
#ifndef WIRETALE_CAPTURE_CHUNK_QUEUE_H
#define WIRETALE_CAPTURE_CHUNK_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Holds any record, and fits the L2 cache from reading to writing. */
#define CHUNK_BYTES (512u << 10)
#define DEVICES_MAX 32

/* Whole records of one interface, as they go to the file, in order of time. */
struct span {
    const uint8_t *data;
    size_t size;
    uint32_t description; /* index of the interface description of all its packets */
    uint32_t packets;
    int64_t first_ns, last_ns; /* times of its first and last packet */
};

struct chunk {
    struct chunk *next;
    uint8_t *memory;   /* CHUNK_BYTES */
    struct span left;  /* records in it that are not yet written to a file */
    int64_t handed_ns; /* CLOCK_MONOTONIC when it was queued */
};

struct lane {
    struct chunk *first, *last; /* filled chunks in order */
    int64_t complete_ns;        /* no older packet follows */
    bool ended;                 /* no packet follows at all */
};

struct chunk_queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct chunk *empty; /* stack */
    _Atomic size_t empty_count;
    atomic_bool idle;    /* the writing thread waits for chunks */
    atomic_bool is_held; /* packets cannot be written at the moment */
    struct lane lanes[DEVICES_MAX];
    uint32_t devices;
    size_t chunks;
};

/* Maps `bytes` of memory, rounded up to the minimum that all devices need, for the rest of the run.
 * Returns false if memory is short. */
bool chunk_queue_open(struct chunk_queue *queue, size_t bytes, uint32_t devices);

struct chunk *chunk_queue_acquire(struct chunk_queue *queue); /* NULL if there is none */
void chunk_queue_release(struct chunk_queue *queue, struct chunk *chunk);
/* Queues a filled chunk (or NULL), and the time up to which the device has been read. */
void chunk_queue_push(struct chunk_queue *queue, uint32_t device, struct chunk *chunk,
                      int64_t complete_ns);
void chunk_queue_end(struct chunk_queue *queue, uint32_t device);
void chunk_queue_wake(struct chunk_queue *queue);

/* Appends all filled chunks to the lanes of `taken`. If there are none, waits for one up to
 * `wait_ns`. */
void chunk_queue_pop_all(struct chunk_queue *queue, struct lane *taken, int64_t wait_ns);

#endif
