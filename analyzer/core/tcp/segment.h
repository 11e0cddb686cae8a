/* SPDX-License-Identifier: Apache-2.0 */
/* One TCP segment while it is processed: its context, its result, and the events that it causes.
 * The caller fills the context once per segment and passes it to all rules. Rules read the headers
 * and both half-connections through it, and report through its sink, so that nothing in tcp/,
 * verdict/ and tracker/ depends on tables, flows or threads.
 *
 * A context exists only for a whole segment whose header was read, so `tcp` is never NULL: a
 * segment in IP fragments gets one when its last fragment has arrived (update/fragments.c), as its
 * receiver does, and a rule that needs no segment has no context (settle_verdicts()). */
#ifndef WIRETALE_TCP_SEGMENT_H
#define WIRETALE_TCP_SEGMENT_H

#include "base/vocabulary.h"
#include "tcp/connection.h"

/* A longer RTT (13 days) is a clock error. Sums of a few do not overflow. */
#define MAX_RTT_NS (INT64_C(1) << 50)

/* The result of a segment, for the series and the packets table. */
struct segment_effect {
    bool positions_known; /* `sequence` is set */
    bool acknowledges;    /* `acknowledged` is set */
    uint8_t sack_count;   /* SACK blocks in `sack`, from the first; 0 if the first is empty */
    bool duplicate;       /* of an earlier packet: nothing else is set */
    bool probe;           /* keep-alive or window probe: no data */
    bool mirrored;        /* a duplicate that the capture made, as far as is known */
    bool second_port;     /* by another port: the fields `first_port` to `port_delay_ns` are set */
    bool turned;          /* new data follows new data of the other direction, or is the first */
    bool may_repeat;      /* its first transmission, or data before it, may be lost upstream */
    uint32_t lost;        /* segments whose loss it proves */
    uint32_t damage_delivered; /* segments with a wrong checksum that it acknowledges */
    int64_t unique_bytes, retransmitted_bytes;
    int32_t window; /* bytes, scaled; -1 if unknown */
    int64_t rtt_ns; /* sample of the other direction's data, or RTT_UNKNOWN */
    /* Uninitialized unless the flags above are set. */
    int64_t sack[SACK_BLOCKS_MAX][2]; /* start and end of the SACK blocks, in their order */
    int64_t sequence;                 /* stream position of its first byte */
    int64_t acknowledged;             /* position in the other direction's stream */
    int64_t port_delay_ns;            /* from the first port to this one */
    uint16_t first_port;              /* that stored the packet, or NO_PORT if it is forgotten */
    uint8_t first_ttl;
};

enum tcp_spurious { SPURIOUS_NOT_ASKED, SPURIOUS_UNKNOWN, SPURIOUS_NO, SPURIOUS_YES };

/* What an ICMP error says beside its cause. */
struct icmp_report {
    uint32_t mtu;          /* bytes, 0 if none */
    unsigned version;      /* of IP */
    const uint8_t *router; /* address that sent it */
};

/* A row of `events` later. WORD_NONE is null. */
struct event {
    enum word kind, place, evidence, cause;
    int8_t spurious;      /* enum tcp_spurious */
    bool cause_withdrawn; /* of amend_event(): it has none any more */
    int64_t bytes;
    uint64_t related_frame;         /* 0 if none */
    int64_t due_ns;                 /* 0 if unknown */
    int64_t due_bytes;              /* -1 if unknown; valid with due_ns */
    uint64_t blocks;                /* 0 if none */
    const char *detail;             /* NULL: the text of the cause */
    const struct icmp_report *icmp; /* NULL if none */
};

#define EVENT_DETAIL_MAX 104 /* bytes with the final NUL; a longer text is cut */

/* What few events have. */
struct event_extra {
    uint64_t minor, blocks;
    uint32_t mtu;
    uint16_t size;   /* bytes that are used, up to the end of `detail` */
    uint8_t version; /* 0 without a router */
    uint8_t router[16];
    char detail[EVENT_DETAIL_MAX]; /* "" if it is that of a cause */
};

/* An event of a flow that is open. It stays with the flow until that ends, because later packets
 * may amend it, such as a DSACK (RFC 2883). */
struct flow_event {
    struct flow_event *before; /* of the flow, NULL without one */
    struct event_extra *extra; /* NULL without one */
    uint64_t at, frame, related_frame;
    int64_t time_ns, bytes, due_ns, due_bytes;
    uint32_t capture;
    uint16_t kind, place, evidence, cause; /* enum word */
    uint16_t detail;                       /* the cause whose text it has */
    bool time_known;
    uint8_t direction;
    int8_t spurious;
};

/* Replaces kind, place and evidence, and spurious and cause if they are set; WORD_NONE becomes
 * null. Cause and detail become null if they are withdrawn. Does nothing to NULL. */
static inline void amend_event(struct flow_event *kept, const struct event *event) {
    if (!kept)
        return;
    kept->kind = (uint16_t)event->kind;
    kept->place = (uint16_t)event->place;
    kept->evidence = (uint16_t)event->evidence;
    if (event->spurious != SPURIOUS_NOT_ASKED)
        kept->spurious = event->spurious;
    if (event->cause != WORD_NONE)
        kept->cause = (uint16_t)event->cause;
    if (!event->cause_withdrawn)
        return;
    kept->cause = kept->detail = WORD_NONE;
    if (kept->extra)
        kept->extra->detail[0] = '\0';
}

struct segment_context {
    struct tcp_connection *connection;
    struct tcp_stream *sender;   /* the half-connection that the segment belongs to */
    struct tcp_stream *receiver; /* the other one, whose data the segment acknowledges */
    const struct tcp_header *tcp;
    const struct packet_info *packet; /* metadata that needs no TCP header */
    struct pool *pool;                /* memory for lists */
    const struct event_sink *sink;
    struct flow *flow;                /* opaque here: for the sink */
    struct tcp_recovery_state *spare; /* absorbs counts if memory has run out */
    uint8_t damage;                   /* enum packet_damage */
    uint32_t frame;                   /* 0 if it exceeds 32 bits */
    uint32_t data_frame_before;       /* the sender's last data before this segment, 0 if none */
    int64_t data_ns_before;
    struct segment_effect effect;
};

/* Receives events as they happen. */
struct event_sink {
    /* Returns the event for amend_event(), NULL if it was not kept. */
    struct flow_event *(*event)(const struct segment_context *seg, const struct event *event);
    /* Adds mirror duplicates to the count of this interface; -1 if a packet is no longer one. */
    void (*mirrored)(const struct event_sink *sink, uint32_t interface, int copies);
    void *context; /* the caller's */
};

/* Returns 0 if the initiator sent the segment, else 1. */
static inline unsigned segment_direction(const struct segment_context *seg) {
    return seg->sender != seg->connection->streams;
}

/* Returns how much longer than the least RTT the segment, an ACK, follows data sent at `sent_ns`; 1
 * at least. */
static inline int64_t late_by(const struct segment_context *seg, int64_t sent_ns) {
    int64_t late = seg->packet->time_ns - sent_ns - max64(min_rtt(seg->receiver), 0);
    return max64(late, 1);
}

static inline bool has_timestamps(const struct segment_context *seg) {
    return seg->tcp->options & TCP_OPTION_TIMESTAMPS;
}

/* Returns the tick of the clock that stamped the packet in ns, 0 if it is fine: times that differ
 * by less are equal. */
static inline int64_t clock_step_ns(const struct segment_context *seg) {
    return (int64_t)seg->packet->clock_step_us * 1000;
}

/* Returns whether the segment's position `start` is that of its SYN, or of its FIN if it has no
 * data. */
static inline bool is_syn_or_fin(const struct segment_context *seg, int64_t start) {
    return !seg->packet->payload_bytes || (start < 0 && seg->tcp->flags & TCP_SYN);
}

/* Returns NULL if it was not kept. */
static inline struct flow_event *emit_event(const struct segment_context *seg,
                                            const struct event *event) {
    return seg->sink->event(seg, event);
}

static inline void emit_kind(const struct segment_context *seg, enum word kind, int64_t bytes) {
    emit_event(seg, &(struct event){.kind = kind, .bytes = bytes});
}

/* Adds the segment's data, which ends at `end` and takes `length` of the sequence space, to the
 * unacknowledged segments of its sender. */
static ALWAYS_INLINE void track_unacked(const struct segment_context *seg,
                                        struct tcp_stream *sender, const struct tcp_header *tcp,
                                        int64_t end, int64_t length) {
    struct unacked_segment *segment = unacked_next(&sender->unacked);
    if (!segment)
        segment =
            unacked_push(&sender->unacked,
                         seg->receiver->base_known ? MAX_UNACKED : MAX_UNACKED_ONE_WAY, seg->pool);
    if (!segment)
        return;
    *segment = (struct unacked_segment){
        .end = end,
        .time_ns = seg->packet->time_ns,
        .length = (uint32_t)length,
        .frame = seg->frame,
        .tsval = tcp->options & TCP_OPTION_TIMESTAMPS ? tcp->timestamp_value : 0,
        .repeated = (uint32_t)recovery_of(sender)->retransmitted_bytes,
        .least = seg->packet->payload_bytes,
        .ip_id = seg->packet->ip_id,
        .ttl = seg->packet->ttl,
        .link = unacked_link(seg->packet->port),
        .no_sample = !seg->packet->time_known};
}

/* Returns the recovery state of one of the connection's streams for writing, allocating it if
 * needed. Never NULL: without memory it returns the context's spare and sets counts_missing. */
struct tcp_recovery_state *recovery_state(const struct segment_context *seg,
                                          struct tcp_stream *stream);

/* Adds the idle time before an RTO, `ns`, which the current segment ends and frame `from` began (0
 * if unknown: the sender's last frame before is looked up). */
void record_stall(const struct segment_context *seg, struct tcp_recovery_state *recovery,
                  int64_t ns, uint32_t from);

#endif
