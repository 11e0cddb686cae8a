/* SPDX-License-Identifier: Apache-2.0 */
/* Empty chunks are a stack, so that the chunk that was written last, which is still in the cache,
 * is filled next. The memory is mapped without reservation: pages that are never used cost nothing.
 * All lists are under one lock, which is held for a few instructions; a reading thread reads the
 * number of empty chunks without it, so that it does not contend for the lock while no chunk is
 * empty. */
#include "buffer/chunk_queue.h"

#include <sys/mman.h>

#include "common/clock.h"
#include "common/wait.h"

static void add_empty(struct chunk_queue *queue, struct chunk *chunk) {
    chunk->next = queue->empty;
    queue->empty = chunk;
    queue->empty_count++;
}

bool chunk_queue_open(struct chunk_queue *queue, size_t bytes, uint32_t devices) {
    size_t least =
        2 * (size_t)devices + 2; /* each reader fills one while the writer writes another */
    *queue = (struct chunk_queue){.devices = devices, .chunks = bytes / CHUNK_BYTES};
    if (queue->chunks < least)
        queue->chunks = least;
    size_t each = CHUNK_BYTES + sizeof(struct chunk);
    uint8_t *memory = mmap(NULL, queue->chunks * each, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    struct chunk *all = (struct chunk *)(memory + queue->chunks * CHUNK_BYTES);
    pthread_mutex_init(&queue->lock, NULL);
    wait_init(&queue->filled);
    for (size_t i = queue->chunks; i--;) {
        all[i].memory = memory + i * CHUNK_BYTES;
        add_empty(queue, &all[i]);
    }
    return true;
}

struct chunk *chunk_queue_acquire(struct chunk_queue *queue) {
    if (!queue->empty_count)
        return NULL;
    pthread_mutex_lock(&queue->lock);
    struct chunk *chunk = queue->empty;
    if (chunk) {
        queue->empty = chunk->next;
        queue->empty_count--;
        *chunk = (struct chunk){.memory = chunk->memory, .left.data = chunk->memory};
    }
    pthread_mutex_unlock(&queue->lock);
    return chunk;
}

void chunk_queue_release(struct chunk_queue *queue, struct chunk *chunk) {
    pthread_mutex_lock(&queue->lock);
    add_empty(queue, chunk);
    pthread_mutex_unlock(&queue->lock);
}

/* Appends a list of chunks to a lane. */
static void append(struct lane *lane, struct chunk *first, struct chunk *last) {
    if (lane->last)
        lane->last->next = first;
    else
        lane->first = first;
    lane->last = last;
}

/* The lock orders the chunk before its completion time: a writer that sees the time also sees all
 * packets before it. */
void chunk_queue_push(struct chunk_queue *queue, uint32_t device, struct chunk *chunk,
                      int64_t complete_ns) {
    struct lane *lane = &queue->lanes[device];
    if (chunk) {
        chunk->next = NULL;
        chunk->handed_ns = monotonic_ns();
    }
    pthread_mutex_lock(&queue->lock);
    lane->complete_ns = complete_ns;
    if (chunk) {
        append(lane, chunk, chunk);
        /* The queue stops being idle here, not when the writing thread wakes up. On a busy machine
         * it may sleep on, and readers would hand over one nearly empty chunk after another. */
        queue->idle = false;
    }
    pthread_mutex_unlock(&queue->lock);
    if (chunk)
        pthread_cond_signal(&queue->filled);
}

/* States that the device has no more packets, so that the merge does not wait for it. */
void chunk_queue_end(struct chunk_queue *queue, uint32_t device) {
    pthread_mutex_lock(&queue->lock);
    queue->lanes[device].ended = true;
    pthread_mutex_unlock(&queue->lock);
    pthread_cond_signal(&queue->filled);
}

/* Interrupts a wait of the writing thread, so that it sees a request at once. */
void chunk_queue_wake(struct chunk_queue *queue) {
    pthread_cond_signal(&queue->filled);
}

static bool anything_filled(const struct chunk_queue *queue) {
    for (uint32_t i = 0; i < queue->devices; i++)
        if (queue->lanes[i].first)
            return true;
    return false;
}

/* `idle` is set only while the writing thread waits. Readers then hand over chunks that are not
 * full, because a small write costs nothing while there is no other work. */
static void wait_filled(struct chunk_queue *queue, int64_t wait_ns) {
    queue->idle = true;
    wait_for(&queue->filled, &queue->lock, wait_ns);
    queue->idle = false;
}

/* Takes all chunks at once, so that the lock is taken once per batch and not once per chunk. */
void chunk_queue_pop_all(struct chunk_queue *queue, struct lane *taken, int64_t wait_ns) {
    pthread_mutex_lock(&queue->lock);
    if (wait_ns && !anything_filled(queue))
        wait_filled(queue, wait_ns);
    for (uint32_t i = 0; i < queue->devices; i++) {
        struct lane *lane = &queue->lanes[i];
        if (lane->first)
            append(&taken[i], lane->first, lane->last);
        lane->first = lane->last = NULL;
        taken[i].complete_ns = lane->complete_ns;
        taken[i].ended = lane->ended;
    }
    pthread_mutex_unlock(&queue->lock);
}
