/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of at most MAX_RECORDS verdicts for each half-connection, because the proof may come
 * later: a DSACK or an echoed timestamp (sack.c), the original after its retransmission
 * (retransmission.c), or the end of the connection. A record that leaves the ring, or is still
 * there at the end, is settled with the evidence at that time.
 *
 * Invariants: a retransmission counts as lost on one side of the capture point at most, and on
 * none if it is spurious; `unsettled` is the number of records that wait for their ACK, and
 * `settled_from` the least position that can settle one. */
#include "verdict/recent_verdicts.h"

#define UNREPORTED_LEAST   2u
#define CERTAIN_DUPLICATES 8u /* in a quarter of the packets: a mirror that began late */

struct retransmission_record *record_at(const struct tcp_recovery_state *recovery, uint32_t age) {
    uint32_t count = recovery->record_count;
    return &recovery->records[(recovery->record_next + 2 * count - 1 - age) % count];
}

struct retransmission_record *last_retransmission_of(const struct tcp_recovery_state *recovery,
                                                     int64_t start, int64_t end, bool of_gap) {
    for (uint32_t i = 0; recovery && i < recovery->record_count; i++) {
        struct retransmission_record *record = record_at(recovery, i);
        if (!record->duplicate && (record->upstream || !of_gap) &&
            record_overlaps(record, start, end))
            return record;
    }
    return NULL;
}

/* --- losses ---------------------------------------------------------------------------------- */

/* A SYN and a FIN have no payload. */
static uint64_t record_bytes(const struct retransmission_record *record) {
    return record->syn_fin || record->start < 0 ? 0 : (uint64_t)(record->end - record->start);
}

int64_t seen_before(const struct segment_context *seg, int64_t start,
                    const struct retransmission_record *last) {
    const struct tcp_stream *sender = seg->sender;
    const struct tcp_recovery_state *recovery = recovery_of(sender);
    const struct unacked_segment *first = unacked_find(&sender->unacked, start);
    int64_t seen = (int64_t)seen_bytes(sender) - sender->snd_nxt;
    if (!last)
        return seen + first->end - (int64_t)first->length -
               (uint32_t)((uint32_t)recovery->retransmitted_bytes - first->repeated);
    for (uint32_t i = 0; i < recovery->record_count; i++) {
        const struct retransmission_record *record = record_at(recovery, i);
        seen -= record->duplicate ? 0 : record->end - record->start;
        if (record == last)
            return seen + unacked_sent_before(&sender->unacked, last->time_ns, sender->snd_nxt);
    }
    return -1;
}

void set_lost(struct tcp_stream *stream, struct tcp_recovery_state *recovery,
              struct retransmission_record *record, bool lost) {
    bool upstream = record->upstream;
    if (record->lost == lost)
        return;
    uint64_t sign = lost ? 1 : UINT64_MAX; /* -1 */
    *(upstream ? &recovery->lost_upstream : &recovery->lost_downstream) += sign;
    *(upstream ? &recovery->lost_upstream_bytes : &recovery->lost_downstream_bytes) +=
        sign * record_bytes(record);
    *(upstream ? &recovery->syn_fin.lost_upstream : &recovery->syn_fin.lost_downstream) +=
        record->syn_fin ? sign : 0;
    count_long(stream, upstream ? WIRE_LOST_UPSTREAM : WIRE_LOST_DOWNSTREAM, record->long_bytes,
               sign);
    record->lost = lost;
}

void set_spurious(struct tcp_stream *stream, struct tcp_recovery_state *recovery,
                  struct retransmission_record *record, bool spurious) {
    if (!spurious || record->spurious)
        return;
    recovery->spurious_count++;
    recovery->syn_fin.spurious += record->syn_fin;
    if (record_bytes(record) > 1 && recovery->unreported < UINT8_MAX)
        recovery->unreported++;
    if (record->kind == WORD_TIMEOUT_RETRANSMISSION)
        recovery->needless_ns += 1000 * (int64_t)record->waited_us;
    count_long(stream, WIRE_SPURIOUS, record->long_bytes, 1);
    record->spurious = true;
}

void retract_loss(struct tcp_stream *stream, struct retransmission_record *record,
                  enum word evidence) {
    set_lost(stream, stream->recovery, record, false);
    amend_event(record->event,
                &(struct event){.kind = record->kind,
                                .evidence = evidence,
                                .spurious = record->spurious ? SPURIOUS_YES : SPURIOUS_UNKNOWN,
                                .cause_withdrawn = record->damaged});
    stream->recovery->checksum_retransmissions -= record->damaged;
    record->damaged = false;
}

void leave_loss_open(struct tcp_stream *stream, struct retransmission_record *record) {
    enum word evidence = record->kind == WORD_FAST_RETRANSMISSION      ? WORD_ACKS
                         : record->kind == WORD_TIMEOUT_RETRANSMISSION ? WORD_TIME
                                                                       : WORD_NONE;
    record->place_unknown = true;
    retract_loss(stream, record, evidence);
}

/* Without a captured SYN, negative positions are those of data before the capture. */
static bool is_syn(const struct tcp_stream *stream, const struct retransmission_record *record) {
    return stream->syn_seen && record->start < 0 && !record->duplicate;
}

/* Rule V7.10: retransmissions of data that the receiver had reached it, and it reported none. A
 * single one may have been lost, or its report. */
static bool shows_no_dsack(const struct tcp_recovery_state *recovery) {
    return !recovery->sends_dsack && recovery->unreported >= UNREPORTED_LEAST;
}

/* Rule V7.7: without SACK, and without an echo of the retransmission, it may have come late
 * instead. */
static bool may_be_late(const struct tcp_connection *connection, const struct tcp_stream *data,
                        const struct retransmission_record *record) {
    const struct tcp_stream *acks = peer_of(connection, data);
    int64_t reorder_ns = data->recovery->reorder_ns;
    return reorder_ns && record->late_ns && record->late_ns / 2 <= reorder_ns &&
           (record->kind == WORD_FAST_RETRANSMISSION || record->kind == WORD_RETRANSMISSION) &&
           !(data->timestamps && acks->timestamps && record->needed) &&
           is_without_sack(connection, data);
}

/* Rules V7.6, V7.7 and V7.10: a loss downstream is an absence of proof, so it needs evidence that
 * could have proved the retransmission spurious. */
static bool lacks_evidence(const struct tcp_connection *connection, const struct tcp_stream *data,
                           const struct retransmission_record *record) {
    if (!record->lost || record->upstream)
        return false;
    if (peer_of(connection, data)->reports_truncated)
        return !record->needed;
    if (shows_no_dsack(data->recovery) && !record->needed && !record->reported_missing &&
        !is_without_sack(connection, data) && !is_syn(data, record))
        return true;
    return may_be_late(connection, data, record);
}

/* An older timestamp may be that of an earlier retransmission of the same bytes. */
static bool was_retransmitted_before(const struct tcp_recovery_state *recovery,
                                     const struct retransmission_record *record) {
    for (uint32_t i = 0; i < recovery->record_count; i++) {
        const struct retransmission_record *earlier = &recovery->records[i];
        if (!earlier->duplicate && earlier->frame < record->frame &&
            record_overlaps(earlier, record->start, record->end))
            return true;
    }
    return false;
}

void mark_spurious(struct tcp_stream *stream, struct retransmission_record *record,
                   enum word evidence) {
    struct tcp_recovery_state *recovery = stream->recovery;
    if (record->spurious && evidence != WORD_DSACK)
        return;
    set_spurious(stream, recovery, record, true);
    /* Eifel (RFC 4015): the sender sees the same echo and undoes the RTO's recovery. */
    if (evidence == WORD_TIMESTAMPS && record->frame == recovery->rto_frame &&
        record->time_ns == recovery->rto_ns)
        recovery->rto_undone |= !was_retransmitted_before(recovery, record);
    retract_loss(stream, record, evidence);
}

/* --- mirror duplicates ----------------------------------------------------------------------- */

void set_mirrored(const struct event_sink *sink, struct tcp_recovery_state *recovery,
                  const struct retransmission_record *record, bool mirrored) {
    uint64_t sign = mirrored ? 1 : UINT64_MAX; /* -1 */
    recovery->mirror_duplicates += sign;
    recovery->mirror_ip_bytes += sign * record->ip_bytes;
    sink->mirrored(sink, record->interface, mirrored ? 1 : -1);
}

bool is_mirrored_throughout(const struct tcp_stream *stream) {
    const struct tcp_recovery_state *recovery = recovery_of(stream);
    uint64_t duplicates = recovery->mirror_duplicates;
    if (2 * duplicates >= stream->packets || (duplicates > 1 && 4 * duplicates > stream->packets))
        return true;
    return duplicates >= CERTAIN_DUPLICATES &&
           4 * duplicates > stream->packets - recovery->packets_before_duplicates;
}

bool has_thirds_throughout(const struct tcp_stream *stream) {
    const struct tcp_recovery_state *recovery = recovery_of(stream);
    uint64_t thirds = recovery->third_duplicates;
    return thirds > 1 && 4 * thirds > stream->packets - recovery->packets_before_duplicates;
}

/* Rule V8.6: a mirror duplicate stays one if no time has passed since its original, or if the
 * receiver would have sent a DSACK for a second one, acknowledged the data and sent none. A path
 * that loses data may have lost the duplicate, and one that duplicates data has made others. */
static bool may_be_network_duplicate(const struct tcp_connection *connection,
                                     const struct tcp_stream *stream,
                                     const struct retransmission_record *record) {
    bool path_is_clean =
        !stream->recovery->lost_downstream && !stream->recovery->network_duplicates;
    bool not_dsacked = record->origin == DUPLICATE_REPORTABLE && path_is_clean &&
                       stream->snd_una_known && stream->snd_una >= record->end &&
                       !peer_of(connection, stream)->reports_truncated;
    return record->kind == WORD_MIRROR_DUPLICATE && record->origin > DUPLICATE_TWO_INTERFACES &&
           !record->at_once && !record->dsacked && !not_dsacked;
}

static void settle_third(const struct event_sink *sink, struct tcp_stream *stream,
                         struct retransmission_record *record) {
    if (!record->third || record->dsacked || record->kind != WORD_NETWORK_DUPLICATE ||
        !has_thirds_throughout(stream))
        return;
    record->kind = WORD_MIRROR_DUPLICATE;
    stream->recovery->network_duplicates--;
    set_mirrored(sink, stream->recovery, record, true);
    amend_event(record->event,
                &(struct event){.kind = WORD_MIRROR_DUPLICATE,
                                .place = WORD_CAPTURE,
                                .evidence = record->ip_id ? WORD_IP_ID : WORD_SIGNATURE});
}

/* `throughout`: a mirror duplicates the direction throughout. */
static void settle_duplicate(const struct event_sink *sink, const struct tcp_connection *connection,
                             struct tcp_stream *stream, struct retransmission_record *record,
                             bool throughout) {
    settle_third(sink, stream, record);
    if (throughout || !may_be_network_duplicate(connection, stream, record))
        return;
    record->kind = WORD_UNKNOWN_DUPLICATE;
    set_mirrored(sink, stream->recovery, record, false);
    stream->recovery->unknown_duplicates++;
    amend_event(record->event, &(struct event){.kind = WORD_UNKNOWN_DUPLICATE});
}

/* --- the ring -------------------------------------------------------------------------------- */

static void settle_record(const struct event_sink *sink, const struct tcp_connection *connection,
                          struct tcp_stream *stream, struct retransmission_record *record,
                          bool throughout) {
    settle_duplicate(sink, connection, stream, record, throughout);
    if (lacks_evidence(connection, stream, record))
        leave_loss_open(stream, record);
}

/* Returns the time of the last packet of the receiver that tells something. */
static int64_t last_sign_ns(const struct tcp_connection *connection,
                            const struct tcp_stream *stream) {
    const struct tcp_stream *acks = peer_of(connection, stream);
    int64_t reported_ns = max64(stream->una_advanced_ns, stream->recovery->last_loss_signal_ns);
    return max64(reported_ns, max64(acks->last_data_ns, acks->tsval_ns));
}

void settle_verdicts(const struct event_sink *sink, const struct tcp_connection *connection,
                     struct tcp_stream *stream, int64_t first_ns) {
    struct tcp_recovery_state *recovery = stream->recovery;
    bool throughout = recovery && is_mirrored_throughout(stream);
    int64_t rtt = min_rtt(stream), sign_ns = recovery ? last_sign_ns(connection, stream) : 0;
    for (uint32_t i = 0; recovery && i < recovery->record_count; i++) {
        struct retransmission_record *record = &recovery->records[i];
        settle_record(sink, connection, stream, record, throughout);
        bool unanswered = !record->settled;            /* V7.5 */
        bool early = record->time_ns - first_ns < rtt; /* V7.9 */
        bool silent = unanswered && !record->upstream && !record->reported_missing &&
                      sign_ns < record->time_ns; /* V7.11 */
        if (record->lost && (silent || (is_syn(stream, record) && (unanswered || early))))
            leave_loss_open(stream, record);
    }
}

/* No later packet can amend the record. */
static void forget(const struct segment_context *seg, struct tcp_recovery_state *recovery,
                   struct retransmission_record *record) {
    settle_record(seg->sink, seg->connection, seg->sender, record,
                  is_mirrored_throughout(seg->sender));
    if (record->settled)
        return;
    recovery->unsettled--;
    bool unanswered = is_syn(seg->sender, record);                /* V7.5 */
    bool maybe_held = record->start < recovery->maybe_held_below; /* V7.4 */
    if (record->lost && !record->upstream && (unanswered || maybe_held))
        leave_loss_open(seg->sender, record);
}

/* Returns the entry for a new record, NULL without memory. */
static struct retransmission_record *next_record(const struct segment_context *seg,
                                                 struct tcp_recovery_state *recovery) {
    bool full = recovery->record_count == recovery->record_capacity;
    if (full && pool_grow(seg->pool, (void **)&recovery->records, &recovery->record_capacity,
                          sizeof *recovery->records, 4, MAX_RECORDS)) {
        recovery->record_next = recovery->record_count;
        full = false;
    }
    if (!recovery->record_capacity)
        return NULL;
    recovery->record_count += !full;
    struct retransmission_record *record = &recovery->records[recovery->record_next];
    recovery->record_next = (recovery->record_next + 1) % recovery->record_capacity;
    if (full)
        forget(seg, recovery, record);
    return record;
}

/* Returns the retransmission that filled the gap of these bytes, all zero if there was no gap: it
 * was the first transmission that passed. */
static struct retransmission_record fill_of(const struct tcp_recovery_state *recovery,
                                            const struct retransmission_record *record) {
    const struct retransmission_record *fill =
        last_retransmission_of(recovery, record->start, record->end, true);
    return fill ? *fill : (struct retransmission_record){0};
}

/* Returns the time since the sender's last data in us, 0 if unknown. */
static uint32_t waited_us(const struct segment_context *seg) {
    int64_t waited_ns = seg->packet->time_ns - seg->sender->last_data_ns;
    if (!seg->packet->time_known || !seg->sender->last_data_ns || waited_ns < 0)
        return 0;
    return (uint32_t)min64(waited_ns / 1000, UINT32_MAX);
}

void remember_verdict(const struct segment_context *seg, struct retransmission_record record) {
    struct tcp_recovery_state *recovery = seg->sender->recovery;
    const struct retransmission_record fill = fill_of(recovery, &record); /* its slot may be next */
    struct retransmission_record *entry = recovery ? next_record(seg, recovery) : NULL;
    if (!entry)
        return;
    const struct unacked_segment *first = unacked_find(&seg->sender->unacked, record.start);
    record.time_ns = seg->packet->time_ns;
    record.frame = seg->frame;
    record.waited_us = waited_us(seg);
    record.ip_id = seg->packet->ip_id;
    record.has_tsval = has_timestamps(seg);
    record.tsval = record.has_tsval ? seg->tcp->timestamp_value : 0;
    record.first_ns = first ? first->time_ns : 0;
    record.first_tsval = first ? first->tsval : fill.tsval;
    record.newer_tsval = (first || fill.has_tsval) && record.has_tsval &&
                         (int32_t)(record.tsval - record.first_tsval) > 0;
    if (!record.settled && (!recovery->unsettled++ || record.end < recovery->settled_from))
        recovery->settled_from = record.end;
    seg->sender->has_unsettled = recovery->unsettled;
    *entry = record;
}
