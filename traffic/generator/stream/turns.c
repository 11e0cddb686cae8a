/* SPDX-License-Identifier: Apache-2.0 */
/* Turns: over one connection the sender sends a request, waits for the whole response, pauses, and
 * sends the next. The receiver waits its server time before it responds. Request and response k are
 * blocks with number k; both ends have all lines, and so the size of the next block. Each
 * wait ends early if the transfer stops; a receiver that is silent for longer than its server time
 * and RUNNING_IDLE_NS fails the transfer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/lateness.h"
#include "stream/block_fast.h"
#include "stream/stream.h"

#define BUFFER_BYTES    (1u << 17)
#define COMPARED_CPU_NS (50 * NS_PER_MS) /* of a thread, before it is compared with the clock */

struct turns {
    struct stream *stream;
    const struct transfer_plan *plan;
    uint8_t *bytes;
    uint64_t last_ns;          /* monotonic: of the latest bytes of the peer */
    uint64_t limit_ns;         /* of the peer's silence, at the sender */
    bool may_raise;            /* the own priority */
    uint64_t clock_ns, cpu_ns; /* monotonic and of this thread, at the latest comparison */
};

static struct block_header header_of(const struct turns *turns, uint64_t number, uint32_t length) {
    return (struct block_header){
        .run = (uint32_t)turns->plan->run,
        .stream = turns->stream->number,
        .flags = (uint16_t)(BLOCK_TILED | (number ? 0 : BLOCK_FIRST) |
                            (number + 1 == turns->plan->count ? BLOCK_LAST : 0)),
        .length = length,
        .sequence = number,
        .sent_ns = realtime_ns(),
    };
}

static bool send_piece(struct turns *turns, size_t count) {
    struct stream *stream = turns->stream;
    for (size_t at = 0; at < count;) {
        ssize_t sent = send(stream->fd, turns->bytes + at, count - at, MSG_NOSIGNAL);
        if (sent > 0) {
            at += (size_t)sent;
            stream_note_moved(stream, (uint64_t)sent);
            stream->progress_ns = monotonic_ns();
        } else if (!stream_handle_error(stream, errno)) {
            return false;
        }
        if (stream->direction->stop)
            return false;
    }
    return true;
}

/* Both ends must wake up in time, so they have real-time priority if turns leave time to sleep. A
 * message that takes long does not have it. */
static void begin_message(const struct turns *turns, uint32_t length) {
    if (length > BUFFER_BYTES)
        stream_end_priority(turns->stream);
}

static uint64_t thread_cpu_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)timespec_ns(time);
}

/* A peer need not keep the times of its lines. A thread that takes more than a quarter of a CPU
 * thus loses its priority for good, because others on this host could not run beside it. */
static void limit_priority(struct turns *turns) {
    uint64_t cpu_ns = thread_cpu_ns() - turns->cpu_ns, now = monotonic_ns();
    if (!turns->may_raise || cpu_ns < COMPARED_CPU_NS)
        return;
    turns->may_raise = cpu_ns <= (now - turns->clock_ns) / 4;
    turns->cpu_ns += cpu_ns;
    turns->clock_ns = now;
    if (turns->may_raise)
        return;
    stream_end_priority(turns->stream);
    turns->stream->own.real_time = 0;
}

static void end_message(struct turns *turns) {
    limit_priority(turns);
    if (turns->may_raise && !turns->stream->has_raised)
        stream_raise_priority(turns->stream);
}

/* Returns false if the stream cannot go on. */
static bool send_block(struct turns *turns, uint64_t number, uint32_t length) {
    struct block_header header = header_of(turns, number, length);
    begin_message(turns, length);
    turns->stream->progress_ns = monotonic_ns();
    for (uint32_t offset = 0; offset < length;) {
        uint32_t left = length - offset, piece = left < BUFFER_BYTES ? left : BUFFER_BYTES;
        block_fill(turns->bytes, &header, offset, piece);
        if (!offset)
            block_put_header(turns->bytes, BLOCK_MAGIC, &header);
        if (!send_piece(turns, piece))
            return false;
        offset += piece;
    }
    end_message(turns);
    return true;
}

/* Returns whether the wait for the peer's bytes may go on. */
static bool may_wait(struct turns *turns) {
    struct stream *stream = turns->stream;
    if (stream->direction->stop)
        return false;
    if (!stream->direction->is_sending)
        return !stream_is_over(stream, turns->last_ns, stream->own.blocks_received);
    if ((uint64_t)monotonic_ns() < turns->last_ns + turns->limit_ns)
        return true;
    transfer_fail(stream->direction->transfer, "response %llu did not arrive",
                  (unsigned long long)stream->own.responses);
    return false;
}

/* Reads exactly `count` bytes, of which `have` are there. Returns false at the end of the stream,
 * and if the stream cannot go on. */
static bool receive_piece(struct turns *turns, size_t have, size_t count) {
    while (have < count) {
        ssize_t got = recv(turns->stream->fd, turns->bytes + have, count - have, 0);
        if (got > 0) {
            have += (size_t)got;
            turns->last_ns = monotonic_ns();
            stream_note_moved(turns->stream, (uint64_t)got);
            if (stream_exceeds_limit(turns->stream))
                return false;
        } else if (!got || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) ||
                   !may_wait(turns)) {
            return false;
        }
    }
    return true;
}

/* Compares a piece with the block that must come next. */
static bool is_right(const struct turns *turns, const struct block_header *expected,
                     uint32_t offset, uint32_t count) {
    struct block_header header;
    if (!offset && (block_get_header(turns->bytes, &header) != BLOCK_MAGIC ||
                    header.run != expected->run || header.stream != expected->stream ||
                    header.sequence != expected->sequence || header.length != expected->length))
        return false;
    return turns->plan->unchecked || block_is_right(turns->bytes, expected, offset, count);
}

/* Sets `*right` to whether the block is the expected one. The listener may have read the begin of
 * the first request. */
static bool receive_block(struct turns *turns, uint64_t number, uint32_t length, bool *right) {
    struct block_header expected = header_of(turns, number, length);
    size_t have = number ? 0 : turns->stream->head_have;
    memcpy(turns->bytes, turns->stream->head, have);
    stream_note_moved(turns->stream, have);
    *right = true;
    for (uint32_t offset = 0; offset < length;) {
        uint32_t left = length - offset, piece = left < BUFFER_BYTES ? left : BUFFER_BYTES;
        if (!receive_piece(turns, have, piece))
            return false;
        *right = *right && is_right(turns, &expected, offset, piece);
        begin_message(turns, length);
        offset += piece;
        have = 0;
    }
    end_message(turns);
    return true;
}

static bool has_time_to_sleep(const struct transfer_plan *plan) {
    double sum_ns = 0;
    for (uint64_t i = 0; i < plan->line_count; i++)
        sum_ns += (double)plan->lines[i].gap_ns + (double)plan->lines[i].server_ns;
    return sum_ns >= (double)plan->line_count * NS_PER_MS;
}

static bool begin(struct turns *turns, struct stream *stream) {
    const struct transfer_plan *plan = &stream->direction->transfer->plan;
    *turns = (struct turns){
        .stream = stream, .plan = plan, .bytes = malloc(BUFFER_BYTES), .last_ns = monotonic_ns()};
    if (!turns->bytes)
        transfer_fail(stream->direction->transfer, "out of memory");
    turns->may_raise = has_time_to_sleep(plan);
    turns->cpu_ns = thread_cpu_ns();
    turns->clock_ns = (uint64_t)monotonic_ns();
    end_message(turns);
    return turns->bytes != NULL;
}

/* Returns false if the stream cannot go on. */
static bool take_turn(struct turns *turns, uint64_t number, struct lateness *times) {
    struct stream *stream = turns->stream;
    const struct pattern_line *line = transfer_plan_line(turns->plan, number);
    uint64_t begin_ns = monotonic_ns();
    bool right;
    if (!stream->times.first_ns)
        stream_times_note(&stream->times, begin_ns);
    if (!send_block(turns, number, line->size))
        return false;
    stream->own.blocks_sent++;
    stream->own.bytes_sent += line->size;
    stream_note_sent(stream);
    turns->last_ns = monotonic_ns();
    turns->limit_ns = line->server_ns + RUNNING_IDLE_NS;
    if (!receive_block(turns, number, line->response, &right)) {
        if (!stream->direction->stop)
            transfer_fail(stream->direction->transfer, "the receiver ended before response %llu",
                          (unsigned long long)number);
        return false;
    }
    if (!right) {
        transfer_fail(stream->direction->transfer, "response %llu is damaged",
                      (unsigned long long)number);
        return false;
    }
    lateness_add(times, turns->last_ns - begin_ns);
    stream->own.responses++;
    stream->own.response_bytes += line->response;
    return true;
}

static bool amount_is_used_up(const struct turns *turns, uint64_t number, uint64_t end_ns) {
    const struct transfer_plan *plan = turns->plan;
    return (plan->count && number >= plan->count) ||
           (plan->bytes && turns->stream->own.bytes_sent >= plan->bytes) ||
           (uint64_t)monotonic_ns() >= end_ns;
}

/* Waits until turn `number` is due, but not longer than until the end. Returns false if there is no
 * such turn, and if the transfer stops. */
static bool await_turn(const struct turns *turns, uint64_t number, uint64_t end_ns) {
    uint64_t due_ns = 0;
    if (amount_is_used_up(turns, number, end_ns))
        return false;
    if (number)
        due_ns = turns->last_ns + transfer_plan_line(turns->plan, number - 1)->gap_ns;
    return pacer_wait(due_ns < end_ns ? due_ns : end_ns, &turns->stream->direction->stop) &&
           !amount_is_used_up(turns, number, end_ns);
}

void stream_send_turns(struct stream *stream, uint64_t start_ns) {
    const struct transfer_plan *plan = &stream->direction->transfer->plan;
    struct lateness *times = calloc(1, sizeof *times);
    struct turns turns;
    uint64_t number = 0, end_ns = plan->time_ns ? start_ns + plan->time_ns : UINT64_MAX;
    bool goes_on = begin(&turns, stream) && times;
    while (goes_on && await_turn(&turns, number, end_ns))
        goes_on = take_turn(&turns, number++, times);
    if (times && times->count) {
        stream->own.turn_p50_ns = lateness_percentile(times, 50);
        stream->own.turn_p99_ns = lateness_percentile(times, 99);
        stream->own.turn_max_ns = times->max_ns;
    }
    shutdown(stream->fd, SHUT_WR);
    stream_end_priority(stream);
    free(turns.bytes);
    free(times);
}

/* Ends at the end of the stream, an error, a stop, or silence. */
void stream_receive_turns(struct stream *stream) {
    struct turns turns;
    bool goes_on = begin(&turns, stream), right;
    while (goes_on) {
        uint64_t number = stream->own.blocks_received;
        const struct pattern_line *line = transfer_plan_line(turns.plan, number);
        if (!receive_block(&turns, number, line->size, &right))
            break;
        stream->own.blocks_received++;
        stream->own.bytes_received += line->size;
        stream->own.corrupt += !right;
        stream_times_note(&stream->times, turns.last_ns);
        stream_publish(stream);
        goes_on = pacer_wait(turns.last_ns + line->server_ns, &stream->direction->stop) &&
                  send_block(&turns, number, line->response);
        if (goes_on) {
            stream->own.response_bytes += line->response;
            stream->own.responses++;
        }
        turns.last_ns = monotonic_ns();
    }
    stream_end_priority(stream);
    free(turns.bytes);
}
