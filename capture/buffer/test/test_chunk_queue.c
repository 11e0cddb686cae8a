/* SPDX-License-Identifier: Apache-2.0 */
/* The queue has its bound, keeps order, and holds nobody up. */
#include "buffer/chunk_queue.h"
#include "common/clock.h"
#include "common/test/check.h"

static struct chunk_queue queue; /* opened by each test */

static void test_an_empty_queue_refuses_and_does_not_wait(void) {
    struct chunk *taken[8];
    CHECK(chunk_queue_open(&queue, 6 * CHUNK_BYTES, 1));
    for (int i = 0; i < 6; i++)
        CHECK(taken[i] = chunk_queue_acquire(&queue));
    CHECK(!chunk_queue_acquire(&queue));
    chunk_queue_release(&queue, taken[3]);
    CHECK(chunk_queue_acquire(&queue)->memory == taken[3]->memory);
    CHECK(!chunk_queue_acquire(&queue));
}

static void test_chunks_come_in_order_for_each_device(void) {
    struct lane lanes[DEVICES_MAX] = {0};
    CHECK(chunk_queue_open(&queue, 0, 2));
    CHECK_INT(queue.chunks, 6);
    for (uint32_t i = 0; i < 6; i++) {
        struct chunk *chunk = chunk_queue_acquire(&queue);
        chunk->left.packets = i;
        chunk_queue_push(&queue, i % 2, chunk, 100 + i);
        if (i == 2)
            chunk_queue_pop_all(&queue, lanes, 0);
    }
    chunk_queue_end(&queue, 1);
    chunk_queue_pop_all(&queue, lanes, NS_PER_S);
    for (uint32_t device = 0; device < 2; device++) {
        uint32_t expected = device;
        for (struct chunk *chunk = lanes[device].first; chunk; chunk = chunk->next, expected += 2)
            CHECK_INT(chunk->left.packets, expected);
        CHECK_INT(expected, 6 + device);
    }
    CHECK_INT(lanes[0].complete_ns, 104);
    CHECK(!lanes[0].ended && lanes[1].ended);
}

static void test_waiting_ends(void) {
    struct lane lanes[DEVICES_MAX] = {0};
    CHECK(chunk_queue_open(&queue, 0, 1));
    int64_t before = monotonic_ns();
    chunk_queue_pop_all(&queue, lanes, 20 * NS_PER_MS);
    CHECK(monotonic_ns() - before >= 19 * NS_PER_MS);
    CHECK(!lanes[0].first);
}

static void test_a_writer_that_was_given_work_is_not_idle(void) {
    CHECK(chunk_queue_open(&queue, 0, 1));
    atomic_store(&queue.idle, true); /* it sleeps, and goes on sleeping on a busy machine */
    chunk_queue_push(&queue, 0, NULL, 1);
    CHECK(atomic_load(&queue.idle));
    chunk_queue_push(&queue, 0, chunk_queue_acquire(&queue), 2);
    CHECK(!atomic_load(&queue.idle));
}

int main(void) {
    test_an_empty_queue_refuses_and_does_not_wait();
    test_chunks_come_in_order_for_each_device();
    test_waiting_ends();
    test_a_writer_that_was_given_work_is_not_idle();
    return 0;
}
