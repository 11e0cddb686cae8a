/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the four movers of blocks (send_tcp.c, send_udp.c, receive_tcp.c, receive_udp.c):
 * sockets of a stream, times, failed sends, silence and progress. A mover runs in the stream's
 * thread and returns when the stream is over; its figures are then in stream->own. */
#ifndef WIRETALE_STREAM_H
#define WIRETALE_STREAM_H

#include "common/clock.h"
#include "stream/pacer.h"
#include "transfer/transfer.h"

#define WAIT_PIECE_NS    (50 * NS_PER_MS) /* longest wait before `stop` is read again */
#define STALL_LIMIT_NS   (10 * NS_PER_S)  /* without a successful send: the transfer fails */
#define STOP_GRACE_NS    (2 * NS_PER_S)   /* to finish the current block after a stop */
#define RUNNING_IDLE_NS  (10 * NS_PER_S)  /* silence before "end" that stops the transfer */
#define CONNECT_LIMIT_NS (10 * NS_PER_S)

/* Threads (stream_thread.c). */

/* Starts a thread for each stream of a direction. Returns false, after transfer_fail(), if one
 * could not be started; those that run must still be joined. */
bool direction_start(struct direction *direction);
/* Waits for all threads of a direction. */
void direction_join(struct direction *direction);

/* The movers; senders begin at `start_ns` of the monotonic clock. */
void stream_send_udp(struct stream *stream, uint64_t start_ns);
void stream_send_tcp(struct stream *stream, uint64_t start_ns);
void stream_receive_udp(struct stream *stream);
void stream_receive_tcp(struct stream *stream);
void stream_send_turns(struct stream *stream, uint64_t start_ns);
void stream_receive_turns(struct stream *stream);

/* Gives the stream a data connection, of which the bytes in `control` were read. Returns false if
 * it is not expected: the caller then keeps the connection. */
bool stream_accept(struct stream *stream, const struct control *control);

/* Returns the key of the stream's authenticated blocks. */
static inline const uint8_t *stream_key(const struct stream *stream) {
    return stream->direction->transfer->keys.bytes[stream->direction->name];
}

/* Returns the monotonic time at which the stream's first block is due. */
uint64_t stream_start_ns(const struct stream *stream);

/* Returns whether a receiving stream has nothing to wait for: all announced blocks arrived, or none
 * since `last_ns` for as long as the plan allows. `distinct` blocks arrived so far. */
bool stream_is_over(struct stream *stream, uint64_t last_ns, uint64_t distinct);

/* Counts bytes that were sent or received, also of blocks that are not complete and of duplicates.
 * If the transfer exceeds its limit of bytes, stops it. */
void stream_note_moved(struct stream *stream, uint64_t bytes);
/* Returns whether the transfer has moved more bytes than it may. */
bool stream_exceeds_limit(const struct stream *stream);

/* Publishes the counts of stream->own for interval lines. */
void stream_publish(struct stream *stream);

void stream_times_note(struct stream_times *times, uint64_t now_ns);
void stream_times_report(const struct stream_times *times, struct stream_report *report);

/* Gives the calling thread real-time priority if its gaps are long enough to sleep in, unless the
 * plan or the system forbids it. */
void stream_raise_priority(struct stream *stream);
void stream_end_priority(struct stream *stream);
/* Ends the real-time priority of a stream that was late by so much that it must be a burden. */
void stream_limit_priority(struct stream *stream, uint64_t late_ns);

/* After a successful send: notes the time and publishes the counts. */
void stream_note_sent(struct stream *stream);
/* Counts the errno of a failed send, and waits if a later attempt may succeed. Returns false, after
 * transfer_fail(), if the stream cannot go on. */
bool stream_handle_error(struct stream *stream, int number);

#endif
