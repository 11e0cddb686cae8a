/* SPDX-License-Identifier: Apache-2.0 */
/* A thread for each stream: it gets its socket, moves its blocks, and leaves its report. */
#ifndef WIRETALE_STREAM_H
#define WIRETALE_STREAM_H

#include "common/clock.h"
#include "stream/pacer.h"
#include "transfer/transfer.h"

#define WAIT_PIECE_NS    (50 * NS_PER_MS) /* between two looks at what others decided */
#define STALL_LIMIT_NS   (10 * NS_PER_S)  /* a sender that gets nothing away for so long gives up */
#define STOP_GRACE_NS    (2 * NS_PER_S)   /* to finish the block at hand after a stop */
#define RUNNING_IDLE_NS  (10 * NS_PER_S)  /* silence that ends a test before its end is announced */
#define CONNECT_LIMIT_NS (10 * NS_PER_S)

/* What moves blocks: one for each protocol and side. They return when the stream is over. */
void stream_send_udp(struct stream *stream, uint64_t start_ns);
void stream_send_tcp(struct stream *stream, uint64_t start_ns);
void stream_receive_udp(struct stream *stream);
void stream_receive_tcp(struct stream *stream);

/* UDP sockets are made before the test begins; -1: said in `why`. */
int stream_bind_udp(struct stream *stream, char error[ERROR_SIZE]);
int stream_connect_udp(struct stream *stream, char error[ERROR_SIZE]);

/* Starts the threads of a way. False: none is left running. */
bool direction_start(struct direction *direction);
void direction_join(struct direction *direction);

/* Hands over a data connection that came in, with what was read of it. False: not wanted. */
bool stream_accept(struct stream *stream, int fd, const uint8_t *head, size_t count);

/* Whether a receiving stream has nothing to wait for: all that was announced is here, or nothing
 * came since `last_ns` for as long as the test lets it. */
bool stream_is_over(struct stream *stream, uint64_t last_ns, uint64_t distinct);

/* First and last block, in both clocks. */
struct stream_times {
    uint64_t first_ns, last_ns, first_realtime_ns;
};
void stream_times_note(struct stream_times *times, uint64_t now_ns);
void stream_times_report(const struct stream_times *times, struct stream_report *report);

/* Shows how far a stream is; a receiver's bound of bytes ends the test here. */
void stream_publish(struct stream *stream, uint64_t blocks, uint64_t bytes);

#endif
