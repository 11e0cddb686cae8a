/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses of a flow, and the rows of its endings and loops. */
#include "course/course.h"

#include "course/ending.h"
#include "course/pass.h"

/* A packet that only goes on with an attempt that nobody answered ends no pause: the pause before
 * the attempt is what may have ended the connection. */
NOINLINE void note_silence(struct flow *flow, unsigned direction, const struct packet_info *packet,
                           int64_t silent_ns, struct pool *pool) {
    if (!flow->pause)
        flow->pause = pool_zeroed(pool, sizeof *flow->pause);
    struct pause *pause = flow->pause;
    if (!pause)
        return;
    const struct direction *across = &flow->directions[1 - direction];
    bool again = pause->ns && pause->direction == direction && across->last_ns < pause->until_ns;
    if (again)
        return;
    pause->before_ns = max64(pause->before_ns, pause->ns);
    pause->ns = silent_ns;
    pause->until_ns = packet->time_ns;
    pause->frame = (uint32_t)min64((int64_t)packet->frame, UINT32_MAX);
    pause->capture = packet->capture;
    pause->direction = (uint8_t)direction;
}

/* --- endings ---------------------------------------------------------------------------------- */

/* Returns whether a FIN did more than close: usual ends have no row. */
static bool is_unusual_fin(const struct flow *flow, unsigned direction,
                           const struct ending *ending) {
    const struct tcp_stream *peer = &flow->tcp.streams[1 - direction];
    return ending->unacked > 0 || ending->late_ns >= 0 ||
           peer->unique_bytes > ending->peer_unique || (!peer->fin_seen && !peer->resets);
}

static void put_headers(struct row *row, const struct flow *flow, const struct ending *ending) {
    bool version4 = flow->key.ip_version == 4;
    row_set(row, endings_ttl, ending->ttl);
    row_set_if(row, endings_ttl_before_min, !ending->first, ending->ttl_min);
    row_set_if(row, endings_ttl_before_max, !ending->first, ending->ttl_max);
    row_set_if(row, endings_ip_id, version4, ending->ip_id);
    row_set_if(row, endings_ip_id_step, ending->stepped, ending->ip_id_step);
    row_set(row, endings_window, ending->window);
    row_set(row, endings_with_ack, ending->with_ack);
    row_set(row, endings_timestamps, ending->timestamps);
}

static void put_ending(struct row *row, const struct flow *flow, unsigned direction,
                       const struct ending *ending, enum word kind) {
    const struct tcp_stream *stream = &flow->tcp.streams[direction],
                            *peer = &flow->tcp.streams[1 - direction];
    row_clear(row);
    row_set(row, endings_flow, flow->number);
    row_set(row, endings_direction, direction);
    row_set(row, endings_kind, kind);
    row_set(row, endings_capture, ending->capture);
    row_set(row, endings_frame, ending->frame);
    row_set_if(row, endings_time_ns, ending->time_ns != TIME_UNKNOWN, ending->time_ns);
    row_set_if(row, endings_idle_ns, ending->idle_ns >= 0, ending->idle_ns);
    row_set_if(row, endings_reply_ns, ending->reply_ns >= 0, ending->reply_ns);
    row_set_if(row, endings_unacked_bytes, ending->unacked >= 0, ending->unacked);
    row_set(row, endings_late_bytes, (int64_t)(peer->unique_bytes - ending->peer_unique));
    row_set_if(row, endings_late_ns, ending->late_ns >= 0, ending->late_ns);
    row_set_if(row, endings_acknowledged, kind == WORD_FIN && stream->snd_una_known,
               stream->snd_una >= stream->fin_end);
    put_headers(row, flow, ending);
    uint64_t after = (uint32_t)flow->directions[direction].packets - ending->packets;
    uint64_t resets = stream->resets ? stream->resets - 1 : 0;
    row_set_if(row, endings_packets_after, kind == WORD_RESET,
               after > resets ? (int64_t)(after - resets) : 0);
}

static void add_endings(struct row_sink *sink, const struct flow *flow) {
    bool begun = false;
    for (unsigned i = 0; i < 4; i++) {
        unsigned direction = i / 2;
        enum word kind = i % 2 ? WORD_RESET : WORD_FIN;
        const struct ending *ending =
            i % 2 ? flow->endings->resets[direction] : flow->endings->fins[direction];
        struct row row;
        if (!ending || (kind == WORD_FIN && !is_unusual_fin(flow, direction, ending)))
            continue;
        if (!begun && !begin_flow_group(sink, TABLE_endings, flow))
            return;
        begun = true;
        put_ending(&row, flow, direction, ending, kind);
        add_row(sink, TABLE_endings, &row);
    }
}

/* --- loops ------------------------------------------------------------------------------------ */

static void add_loops(struct row_sink *sink, const struct flow *flow) {
    bool begun = false;
    for (unsigned i = 0; i < 2; i++) {
        const struct pass_log *log = passes_of(flow, i);
        struct row row;
        if (!log || !log->packets)
            continue;
        if (!begun && !begin_flow_group(sink, TABLE_loops, flow))
            return;
        begun = true;
        row_clear(&row);
        row_set(&row, loops_flow, flow->number);
        row_set(&row, loops_direction, i);
        row_set(&row, loops_packets, (int64_t)log->packets);
        row_set(&row, loops_passes_max, log->most);
        row_set(&row, loops_ttl_step, log->step);
        row_set(&row, loops_first_capture, log->first_capture);
        row_set(&row, loops_first_frame, log->first_frame);
        row_set_if(&row, loops_first_ns, log->first_ns != TIME_UNKNOWN, log->first_ns);
        row_set_if(&row, loops_last_ns, log->last_ns != TIME_UNKNOWN, log->last_ns);
        add_row(sink, TABLE_loops, &row);
    }
}

void course_rows_add(struct row_sink *sink, const struct flow *flow) {
    if (flow->endings)
        add_endings(sink, flow);
    if (flow->passes)
        add_loops(sink, flow);
}

void course_free(struct flow *flow, struct pool *pool) {
    endings_free(flow, pool);
    pool_release(pool, flow->passes, 2, sizeof *flow->passes);
    pool_release(pool, flow->pause, 1, sizeof *flow->pause);
}
