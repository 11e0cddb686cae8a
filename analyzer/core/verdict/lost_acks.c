/* SPDX-License-Identifier: Apache-2.0 */
/* ACKs that were lost between the capture point and the sender of the data (rule V6.7).
 *
 * A sender that repeats data although an ACK of it has passed had not received that ACK. Its TSecr
 * is the TSval of the newest packet that it had received (RFC 7323 section 4.3), and its TSval
 * tells when it made the segment. So neither an ACK that crossed it, nor a queue between the sender
 * and the capture point, nor an ACK that PAWS rejected can imitate this: it would be older than
 * that TSecr.
 *
 * The ACK may still be late instead of lost, because a queue on its way takes seconds. If so, the
 * sender echoes it later, or falls silent once it arrives. So it was lost only if the sender
 * answers a later packet within a round trip of its last retransmission, and either has more to
 * send, which the late ACK would have released before, or repeated the data after two ACKs or more;
 * or if it goes on for so long that no queue explains it. */
#include "verdict/verdict.h"

#define SLACK_NS       INT64_C(5000000)     /* beyond half a round trip */
#define PROMPT_NS      INT64_C(10000000)    /* of a sender that an ACK releases */
#define DELAYED_ACK_NS INT64_C(50000000)    /* of one that acknowledges data */
#define LONG_NS        INT64_C(10000000000) /* no queue holds an ACK for as long */
#define LONG_ACKS      3u                   /* that the sender did not receive in that time */
#define CLOCK_DRIFT    10000                /* clocks differ by less than one part in so many */

/* Returns the time in which an ACK reaches the sender in any case, unless it is late. */
static int64_t usual_way_ns(const struct tcp_connection *connection,
                            const struct tcp_stream *data) {
    const struct histogram *way = &peer_of(connection, data)->rtt;
    int64_t rtt = sender_rtt(connection, data);
    if (rtt < 0)
        return rto_ns(connection, data);
    return max64(rtt + rtt / 2, way->count ? way->greatest : 0) + SLACK_NS;
}

/* Ends the wait for an echo. `lost`: the number of ACKs, 0 if it is not known that they were. */
static void end_wait(struct tcp_stream *data, uint32_t lost) {
    struct tcp_recovery_state *recovery = data->recovery;
    recovery->acks_lost += lost;
    recovery->unheard = (struct unheard_acks){0};
    data->awaits_echo = false;
    for (uint32_t i = 0; i < recovery->record_count; i++) {
        struct retransmission_record *record = &recovery->records[i];
        if (record->unheard && lost)
            amend_event(
                record->event,
                &(struct event){.kind = record->kind,
                                .evidence = record->dsacked ? WORD_DSACK : WORD_ACKNOWLEDGED,
                                .cause = WORD_LOST_ACK});
        record->unheard = false;
    }
}

/* Returns true if the sender has received a packet since its last retransmission that had passed
 * before that: ACKs are late, and those that had passed by now may be as well. */
static bool take_late_echo(const struct segment_context *seg, struct tcp_recovery_state *recovery) {
    const struct unheard_acks *unheard = &recovery->unheard;
    uint32_t echo = seg->tcp->timestamp_echo;
    if (!unheard->count || (int32_t)(echo - unheard->heard_tsval) <= 0 ||
        (int32_t)(echo - unheard->last_tsval) > 0)
        return false;
    recovery->acks_late_ns = seg->packet->time_ns;
    end_wait(seg->sender, 0);
    return true;
}

/* Returns how long before the segment the newest packet of the receiver passed, if the sender has
 * not received it although it should have, and it acknowledges the record's data; else 0. */
static int64_t unheard_for_ns(const struct segment_context *seg,
                              const struct retransmission_record *record) {
    const struct tcp_stream *data = seg->sender, *acks = seg->receiver;
    bool acknowledged = record->start >= 0 && data->snd_una_known && record->end <= data->snd_una &&
                        acks->tsval_ns >= data->una_advanced_ns;
    if (!acknowledged || !has_timestamps(seg) || !acks->timestamps || !seg->packet->time_known ||
        (int32_t)(acks->max_tsval - seg->tcp->timestamp_echo) <= 0)
        return 0;
    int64_t passed_ns = seg->packet->time_ns - acks->tsval_ns - clock_step_ns(seg);
    return passed_ns > usual_way_ns(seg->connection, data) ? passed_ns : 0;
}

void note_unheard_ack(const struct segment_context *seg, struct retransmission_record *record) {
    struct tcp_stream *data = seg->sender;
    const struct tcp_stream *acks = seg->receiver;
    int64_t passed_ns = data->recovery ? unheard_for_ns(seg, record) : 0;
    if (!passed_ns)
        return;
    struct unheard_acks *unheard = &data->recovery->unheard;
    if (take_late_echo(seg, data->recovery) || acks->tsval_ns <= data->recovery->acks_late_ns)
        return;
    bool another = !unheard->count || (int32_t)(acks->max_tsval - unheard->last_tsval) > 0;
    if (!unheard->count) {
        unheard->first_ns = seg->packet->time_ns;
        unheard->passed_ns = acks->tsval_ns;
    }
    unheard->last_ns = seg->packet->time_ns;
    if (another && unheard->count < UINT8_MAX)
        unheard->count++;
    unheard->last_tsval = acks->max_tsval;
    unheard->heard_tsval = seg->tcp->timestamp_echo;
    data->awaits_echo = true;
    record->unheard = true;
    record->passed_us = (uint32_t)min64(passed_ns / 1000, UINT32_MAX);
}

/* Returns whether the sender made the segment long after the ACK had passed: by its clock, the
 * segment was not queued before the capture point for as long. */
static bool was_made_later(const struct tcp_connection *connection, const struct tcp_stream *data,
                           const struct retransmission_record *record) {
    int64_t tick = tsval_tick_ns(data), span = record->time_ns - data->first_tsval_ns;
    int64_t made_ns = tick * (int32_t)(record->tsval - data->first_tsval);
    int64_t queued_ns = max64(span - made_ns, 0) + tick + span / CLOCK_DRIFT;
    return tick && record->has_tsval &&
           1000 * (int64_t)record->passed_us - queued_ns > usual_way_ns(connection, data);
}

/* Returns how many ACKs the sender did not receive in time, and passes over records that a queue
 * may explain. */
static uint32_t count_unheard(const struct tcp_connection *connection, struct tcp_stream *data) {
    struct tcp_recovery_state *recovery = data->recovery;
    uint32_t made_later = 0;
    for (uint32_t i = 0; i < recovery->record_count; i++) {
        struct retransmission_record *record = &recovery->records[i];
        record->unheard = record->unheard && was_made_later(connection, data, record);
        made_later += record->unheard;
    }
    return made_later < recovery->unheard.count ? made_later : recovery->unheard.count;
}

/* Returns whether the sender answers within a round trip and `slack_ns` of its last retransmission,
 * a short time beside that in which it received no ACK. */
static bool answers_at_once(const struct segment_context *seg, const struct unheard_acks *unheard,
                            int64_t slack_ns) {
    int64_t rtt = path_rtt(seg->connection), most_ns = rtt + rtt / 4 + slack_ns;
    return rtt >= 0 && seg->packet->time_known &&
           seg->packet->time_ns - unheard->last_ns <= most_ns &&
           (unheard->last_ns - unheard->passed_ns) / 4 >= most_ns;
}

static bool is_long(const struct unheard_acks *unheard, const struct tcp_stream *data,
                    uint32_t count) {
    return count >= LONG_ACKS && !data->resets && unheard->last_ns - unheard->passed_ns >= LONG_NS;
}

/* The segment echoes a later packet than those. */
static bool shows_loss(const struct segment_context *seg, uint32_t count) {
    const struct unheard_acks *unheard = &recovery_of(seg->sender)->unheard;
    bool released = seg->effect.unique_bytes && seg->receiver->last_data_ns < unheard->first_ns;
    if (is_long(unheard, seg->sender, count))
        return true;
    return count > 1 ? answers_at_once(seg, unheard, DELAYED_ACK_NS)
                     : count && released && answers_at_once(seg, unheard, PROMPT_NS);
}

NOINLINE void take_echo(const struct segment_context *seg) {
    struct tcp_stream *data = seg->sender;
    const struct unheard_acks *unheard = &recovery_of(data)->unheard;
    if (!has_timestamps(seg) || (int32_t)(seg->tcp->timestamp_echo - unheard->heard_tsval) <= 0 ||
        take_late_echo(seg, data->recovery))
        return;
    uint32_t count = count_unheard(seg->connection, data);
    end_wait(data, shows_loss(seg, count) ? count : 0);
}

void settle_unheard_acks(const struct tcp_connection *connection, struct tcp_stream *stream) {
    if (!stream->awaits_echo)
        return;
    uint32_t count = count_unheard(connection, stream);
    bool lost = is_long(&stream->recovery->unheard, stream, count);
    end_wait(stream, lost ? count : 0);
}
