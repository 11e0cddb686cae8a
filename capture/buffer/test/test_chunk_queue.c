/* SPDX-License-Identifier: Apache-2.0 */
/* The queue has its bound, keeps order, and holds nobody up. */
#include "buffer/chunk_queue.h"
#include "common/clock.h"
#include "common/test/check.h"

static void test_an_empty_queue_refuses_and_does_not_wait(void) {
    struct chunk_queue queue;
    struct chunk *taken[8];
    CHECK(chunk_queue_open(&queue, 6 * CHUNK_BYTES, 1));
    for (int i = 0; i < 6; i++)
        CHECK(taken[i] = chunk_queue_acquire(&queue));
    CHECK(!chunk_queue_acquire(&queue));
    chunk_queue_release(&queue, taken[3]);
    CHECK(chunk_queue_acquire(&queue)->data == taken[3]->data);
    CHECK(!chunk_queue_acquire(&queue));
    chunk_queue_close(&queue);
}

static void test_chunks_come_in_order_for_each_device(void) {
    struct chunk_queue queue;
    struct lane lanes[DEVICES_MAX] = {0};
    CHECK(chunk_queue_open(&queue, 0, 2));
    CHECK_INT(queue.chunks, 6);
    for (uint32_t i = 0; i < 6; i++) {
        struct chunk *chunk = chunk_queue_acquire(&queue);
        chunk->packets = i;
        chunk_queue_push(&queue, i % 2, chunk, 100 + i);
        if (i == 2)
            chunk_queue_pop_all(&queue, lanes, 0);
    }
    chunk_queue_end(&queue, 1);
    chunk_queue_pop_all(&queue, lanes, NS_PER_S);
    for (uint32_t device = 0; device < 2; device++) {
        uint32_t expected = device;
        for (struct chunk *chunk = lanes[device].first; chunk; chunk = chunk->next, expected += 2)
            CHECK_INT(chunk->packets, expected);
        CHECK_INT(expected, 6 + device);
    }
    CHECK_INT(lanes[0].complete_ns, 104);
    CHECK(!lanes[0].ended && lanes[1].ended);
    chunk_queue_close(&queue);
}

static void test_waiting_ends(void) {
    struct chunk_queue queue;
    struct lane lanes[DEVICES_MAX] = {0};
    CHECK(chunk_queue_open(&queue, 0, 1));
    int64_t before = monotonic_ns();
    chunk_queue_pop_all(&queue, lanes, 20 * NS_PER_MS);
    CHECK(monotonic_ns() - before >= 19 * NS_PER_MS);
    CHECK(!lanes[0].first);
    chunk_queue_close(&queue);
}

static void test_a_writer_that_was_given_work_is_not_idle(void) {
    struct chunk_queue queue;
    CHECK(chunk_queue_open(&queue, 0, 1));
    atomic_store(&queue.idle, true); /* it sleeps, and goes on sleeping on a busy machine */
    chunk_queue_push(&queue, 0, NULL, 1);
    CHECK(chunk_queue_is_idle(&queue));
    chunk_queue_push(&queue, 0, chunk_queue_acquire(&queue), 2);
    CHECK(!chunk_queue_is_idle(&queue));
    chunk_queue_close(&queue);
}

int main(void) {
    test_an_empty_queue_refuses_and_does_not_wait();
    test_chunks_come_in_order_for_each_device();
    test_waiting_ends();
    test_a_writer_that_was_given_work_is_not_idle();
    return 0;
}
