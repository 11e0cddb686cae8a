/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of track_segment(), which is in tracker.c. */
#ifndef WIRETALE_STEPS_H
#define WIRETALE_STEPS_H

#include "tcp/segment.h"

#define SLACK_NS               1000000            /* a sender's response to an ACK */
#define NEAR_PART              4                  /* of the RTT, or SLACK_NS: near the sender */
#define HIDDEN_QUEUE_NS        INT64_C(100000000) /* a usual queue of a link */
#define ACCOUNTING_MIN_PACKETS 8u /* a shorter direction has no shares, and costs no memory */

/* acknowledgment.c: rules V9 and V11 of docs/verdicts.md. */

/* Processes the acknowledgment number and SACK blocks of a segment with the ACK flag. Returns false
 * if a later ACK overtook it: then its window is outdated, too. `sender` and `receiver` must be
 * those of the context. */
bool process_ack(struct segment_context *seg, struct tcp_stream *sender,
                 struct tcp_stream *receiver, const struct tcp_header *tcp);

/* time_accounting.c */

/* Must be called for each segment once its verdicts are known. Accounts the time since the last
 * segment, in both directions, after the segment was processed and left `flight` bytes of its
 * direction in flight (-1 if unknown: it is not accounted). */
void account_segment(const struct segment_context *seg, int64_t flight);

/* time_account.c: columns time_*_ns of `flows` and `directions`. */

/* Returns how long the sender of the stream waited for something, ns. */
static inline int64_t sender_time(const struct tcp_connection *connection,
                                  const struct tcp_stream *stream, enum sender_time time) {
    unsigned direction = stream != connection->streams;
    return time < SENDER_USUAL ? connection->time.sending[direction].ns[time]
                               : unusual_of(&connection->time, direction)->ns[time - SENDER_USUAL];
}

/* Accounts `ns` more to it, which may be negative. */
void add_sender_time(struct tcp_connection *connection, struct pool *pool, unsigned direction,
                     enum sender_time time, int64_t ns);

/* Must be called for each segment with a time, for data of a direction with accounting after the
 * view has moved to it and before its state changes. */
void account_time(const struct segment_context *seg);

/* Must be called for each such segment at the end. */
void account_after(const struct segment_context *seg);

/* Moves up to `ns` of the flow's time from one part to another; of spans, those of this direction.
 * Returns how much it moved. */
int64_t time_move(struct tcp_connection *connection, struct pool *pool, enum time_part from,
                  enum time_part to, unsigned direction, int64_t ns);

/* hidden_limit.c: whether the network's time in a flow of `life_ns` may be another limit's, which a
 * queue hides. The stream must have an accounting. */
bool hides_limit(const struct tcp_connection *connection, const struct tcp_stream *stream,
                 int64_t life_ns);

/* sender_view.c: flight and window as the sender of the data saw them. */

/* Begins with the connection as the capture point sees it after the segment. */
void begin_view(const struct segment_context *seg, struct sender_view *view);

/* Keeps an ACK that passes the capture point on its way to the sender of the data; the segment is
 * the ACK. */
void pass_ack(const struct segment_context *seg, struct sender_view *view);

/* Moves the view to the time at which the sender created the segment, which brings data. */
void view_data(const struct segment_context *seg, struct sender_view *view);

/* Returns the RTT between the capture point and the sender of `stream` in ns, RTT_UNKNOWN if
 * unknown. */
int64_t view_rtt(const struct tcp_connection *connection, const struct tcp_stream *stream,
                 const struct sender_view *view);

/* steady_flight.c: time without room in the send buffer. */

/* Returns whether data behind a gap was created long after the ACK that had made room for it. */
bool is_late_release(const struct segment_context *seg, const struct time_accounting *accounting,
                     int64_t created, int64_t gap_ns);

/* Begins to compare round trips, unless the direction is too short. */
void begin_steady_flight(const struct segment_context *seg, struct time_accounting *accounting);

/* Ends a round trip before a segment that was created at this time. */
void end_round(const struct segment_context *seg, struct time_accounting *accounting,
               int64_t created);

/* longest_waits.c: the places of the longest waits, which findings cite. */

/* Returns the state that has them, which is allocated if it is missing; NULL without memory. */
struct steady_flight *steady_flight(const struct segment_context *seg,
                                    struct time_accounting *accounting);

static inline void keep_longest(struct packet_wait *longest, const struct packet_wait *wait) {
    if (wait->ns > longest->ns && wait->first_frame && wait->last_frame)
        *longest = *wait;
}

/* Returns a wait of `ns` between the sender's data before and the segment. */
static inline struct packet_wait wait_before(const struct segment_context *seg, int64_t ns) {
    uint32_t capture = capture_of(seg->connection, segment_direction(seg), seg->data_ns_before,
                                  seg->data_frame_before, seg->packet);
    return (struct packet_wait){.ns = ns,
                                .first_ns = seg->data_ns_before,
                                .last_ns = seg->packet->time_ns,
                                .first_frame = seg->data_frame_before,
                                .last_frame = seg->frame,
                                .first_capture = capture,
                                .last_capture = seg->packet->capture};
}

/* Returns the kind of wait that a run is. */
static inline enum wait_kind kind_of_run(const struct steady_flight *steady) {
    return steady->run_cause == SENDER_WINDOW ? WAIT_WINDOW : WAIT_NETWORK;
}

/* Ends the run of intervals with the same limit; nothing if it is NULL. */
static inline void end_run(struct steady_flight *steady) {
    if (!steady)
        return;
    keep_longest(&steady->longest[kind_of_run(steady)], &steady->run);
    steady->run.first_frame = 0;
}

/* Notes the interval that the segment ends: how long the application was idle, how long a delayed
 * ACK held the data back, and the rest, which `rest` limited. */
void note_waits(const struct segment_context *seg, struct time_accounting *accounting, int64_t idle,
                int64_t held, enum sender_time rest, int64_t ns);

/* Notes that the segment, an ACK, gave an RTT sample of data in frame `frame`. */
void note_rtt(const struct segment_context *seg, struct steady_flight *steady, int64_t rtt_ns,
              uint32_t frame);

/* Sets the longest wait of each kind that took a tenth of the accounted time or more; NULL of the
 * other kinds. */
void find_waits(const struct tcp_connection *connection, const struct tcp_stream *stream,
                const struct packet_wait *waits[static WAIT_KINDS]);

/* receive_window.c: receive windows that are full or zero, the probes of a zero window, and
 * keep-alives, which look alike: rules V10. */

/* Takes the window that the segment announces. */
void update_window(struct segment_context *seg, struct tcp_stream *sender,
                   const struct tcp_header *tcp);

/* Sets both directions' window scale. It must be called after each SYN. */
void negotiate_window_scale(struct tcp_connection *connection);

/* Rule V10.2: new data fills the receiver's window. */
void emit_window_full(struct segment_context *seg);

/* Rules V10.3 and V10.4: returns true if the segment, 0 or 1 byte at `start`, is a window probe or
 * keep-alive; then it is counted and brings no data. The window must be zero, or the segment one
 * byte below snd_nxt. */
bool take_probe(struct segment_context *seg, int64_t start, uint32_t length);

/* The receiver accepted the byte of a window probe if the stream continues, or is acknowledged, at
 * `position` above it. */
void accept_probe_byte(struct segment_context *seg, struct tcp_stream *stream, int64_t position);
static inline void check_probe_byte(struct segment_context *seg, struct tcp_stream *stream,
                                    int64_t position) {
    if (stream->probe_pending == PROBE_WINDOW)
        accept_probe_byte(seg, stream, position);
}

/* Returns true if the ACK answers the receiver's pending probe or keep-alive, so that it is not a
 * duplicate ACK. */
bool answer_probe(struct segment_context *seg);

/* Returns the time that the endpoint's window was zero, ns, up to `now_ns` if it still is. */
int64_t zero_window_ns(const struct tcp_stream *stream, int64_t now_ns);
/* The same of windows below one segment of the other end. */
int64_t low_window_ns(const struct tcp_stream *stream, int64_t now_ns);

#endif
