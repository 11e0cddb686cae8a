/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of the TCP stream that one end sends, and of the acknowledgments it sends for the
 * other's. Positions are 64-bit: 0 is the first byte after the SYN, or the first byte seen. */
#ifndef WIRETALE_TCP_STREAM_H
#define WIRETALE_TCP_STREAM_H

#include "flow/histogram.h"
#include "sequence/tcp_blocks.h"
#include "tcp/unacked_segments.h"

/* What each packet runs through is one piece of code, out of which is kept what few of them need:
 * it would take the registers. */
#define IN_LINE inline __attribute__((always_inline))
#define APART   __attribute__((noinline))

/* A packet as its copy would look: by these a copy is known from a retransmission. */
struct packet_mark {
    uint32_t time;      /* in units of 128 ns, modulo 2^32 */
    uint32_t frame;     /* 0 for an empty mark */
    uint32_t signature; /* of what routers leave alone */
    uint16_t ip_id;
    uint8_t ttl : 2;        /* its lowest bits: a router takes one */
    uint8_t port_moved : 6; /* the port of the last copy, as what it differs by (exclusive or) */
    uint8_t port : 6;       /* of the capture (struct sighting): where the first one came by */
    uint8_t copies : 2;     /* seen so far, 3 for more */
};
#define MARKS_MOST 32u /* the last packets of a direction: a copy comes soon */

/* What speaks for the mirror when a copy comes at once. */
enum copy_doubt {
    COPY_OF_TWO_PORTS, /* other link addresses, or a router between: not the network's */
    COPY_REPORTABLE,   /* the receiver would report a second one of the network's */
    COPY_UNKNOWN
};

/* A verdict that later packets may still change, or that tells when something was last sent. */
struct judged {
    int64_t start, end; /* stream positions */
    int64_t time_ns;
    uint64_t event; /* its row, EVENT_NONE when it was not written */
    uint32_t frame;
    uint32_t tsval;
    uint16_t ip_id;
    uint16_t kind;    /* enum word */
    bool timestamps;  /* tsval is known */
    bool copy;        /* a copy of a packet, not a retransmission */
    bool upstream;    /* counted as lost upstream, and so not downstream */
    bool lost;        /* counted as lost */
    bool spurious;    /* proven */
    bool reported;    /* a DSACK was taken for it */
    bool settled;     /* its acknowledgment has been seen */
    bool skipped;     /* whether it was lost is open */
    bool first_older; /* the timestamp of its first sending is older */
    bool needed;      /* its acknowledgment answers this sending */
    uint8_t doubt;    /* enum copy_doubt, of a mirror's copy */
    uint16_t capture; /* of a copy: the interface that stored it */
};
#define JUDGED_MOST 256u
#define EVENT_NONE  UINT64_MAX

#define SACKED_MOST 4u

struct tcp_limit;
struct stall_list;

/* What few streams need: made with the first irregular segment. */
struct tcp_trouble {
    /* What every packet asks, in a line of a cache. */
    uint64_t retransmissions;
    uint64_t timeouts; /* expiries: go-back-N after one is part of it */
    uint64_t suspected_timeouts;
    /* Losses being mended: what is sent again below these was decided when they were set. */
    int64_t recovery_point, timeout_point;
    uint32_t recovery_frame, timeout_frame;
    int64_t advanced_from; /* what was acknowledged before the last advance */
    uint32_t sacked_count;
    /* Of the data. */
    uint64_t fast, timeout, probe, spurious;
    uint64_t retransmitted_bytes, duplicate_bytes, probe_bytes, unseen_bytes, unknown_bytes;
    uint64_t out_of_order, ambiguous, network_duplicates, mirror_duplicates, mirror_ip_bytes;
    uint64_t unknown_duplicates;
    uint64_t packets_uncopied; /* of the direction, before its first copy */
    uint64_t lost_upstream, lost_downstream;
    uint64_t gaps_opened, gaps_filled, capture_reordered;
    uint64_t window_full, window_probes, keep_alives;
    /* Of the acknowledgments. */
    uint64_t duplicate_acks, sack_acks, sack_gaps, zero_windows, acks_out_of_range;
    uint64_t ecn_echo, ecn_cwr, unusual_options;
    int64_t zero_since_ns, zero_window_ns;
    int64_t opened_ns; /* when its window last opened */
    uint32_t opened_frame;
    int64_t timeout_ns;        /* silence before timeouts */
    struct stall_list *stalls; /* the longest of those, see tcp_stall.h */
    /* The other end's reports on this stream's data. */
    int64_t news_ns;      /* of the last duplicate ACK or SACK */
    int64_t delivered_ns; /* when the newest of what was sent again and arrived was sent, 0: none */
    int64_t sacked_highest;
    int64_t sacked_rtt_ns; /* least time until data was reported, 0: none was */
    struct {
        int64_t start, end;
    } sacked[SACKED_MOST];   /* of the last acknowledgment */
    int64_t suspected_point; /* end of what a suspected timeout sent again, 0: none */
    struct {                 /* what was lately reported lost, though it may have arrived since */
        int64_t start, end, time_ns;
    } reported;
    bool timeout_undone; /* the sender recovers as without it: needless (RFC 4015), or lost again */
    /* The last verdicts, a ring once it is full. */
    struct judged *judged;
    uint32_t judged_count, judged_room, judged_next;
    uint32_t unsettled;
    int64_t settled_from; /* an acknowledgment of less settles none of them */
    int64_t held_below;   /* without SACK: the receiver may hold something above a gap below this */
};

enum probe_pending { PROBE_NONE, PROBE_KEEP_ALIVE, PROBE_WINDOW };

struct tcp_stream {
    uint32_t zero_sequence; /* sequence number of position 0 */
    bool started : 1;       /* zero_sequence is known */
    bool based : 1;         /* a segment of it was seen: what lies below `base` came before */
    bool acked_known : 1;   /* `acked` is known */
    bool flight_known : 1;  /* based and acked_known */
    bool window_zero : 1;   /* the last window announced was 0 */
    bool window_known : 1;  /* window_min and window_max are */
    bool shift_known : 1;   /* window_shift is */
    bool unsettled : 1;     /* verdicts of its trouble wait for their acknowledgment */
    bool syn_seen : 1, syn_ack_seen : 1, fin_seen : 1;
    bool sack_permitted : 1;
    bool scale_offered : 1; /* its SYN carried a window scale */
    bool syn_cut : 1;       /* its SYN's options were not captured whole */
    bool options_cut : 1;   /* some of its segments' options were not */
    bool unjudged : 1;      /* counts of its trouble are missing: no memory */
    bool timestamps;        /* it has some */
    bool data_sent_last;    /* its data came after the other direction's */
    bool last_tiny;         /* its last data was one byte */
    uint8_t window_scale;   /* that scale */
    uint8_t window_shift;   /* by which its windows are shifted: known after both SYNs */
    uint8_t pending;        /* enum probe_pending: a probe waits for its answer */
    uint8_t ids_good, ids_bad;
    uint8_t ids_skips; /* of the good: steps of more than one */
    uint8_t next_mark; /* where the next goes; all are in use once it has come round */
    uint16_t mss;      /* announced, 0 when not seen */
    uint16_t last_window;
    uint16_t last_ip_id;
    uint32_t last_tsval; /* the newest */
    uint32_t last_acknowledgment;
    uint32_t repeats;   /* of that acknowledgment: duplicate ACKs since the last advance */
    uint32_t mark_room; /* of marks */
    int64_t highest;    /* position after the highest byte (or FIN) seen */
    int64_t acked;      /* highest cumulative acknowledgment of this stream */
    int64_t base;
    int64_t advanced_ns; /* when `acked` last rose */
    /* What had been acknowledged a while ago, the older first, both at least a round trip to the
     * sender apart: what is sent again of it, the sender knew to have arrived. */
    struct {
        int64_t acked, time_ns;
    } past[2];
    int64_t last_data_ns; /* of the last data */
    uint64_t unique_bytes;
    struct segment_ring unacked;
    struct tcp_limit *limit; /* NULL for few segments, see tcp_limit.h */
    struct range_set gaps;
    struct sample_set rtt;
    uint32_t srtt_us, rttvar_us;    /* RFC 6298, of the same samples */
    int32_t window;                 /* the last announced, -1 when it or its scale is not known */
    int32_t window_min, window_max; /* below 2^30 (RFC 7323 section 2.3) */
    uint32_t advanced_frame;        /* in which `acked` last rose */
    int64_t flight_max;
    struct tcp_trouble *trouble; /* NULL while there was none */
    struct packet_mark *marks;   /* a ring once it is full */
    char cold[0];                /* what few packets change follows */
    struct block_stream *blocks; /* NULL while none was recognised */
    int64_t fin_end;             /* position after the FIN */
    uint32_t syns, fins, resets;
    uint32_t past_frames[2]; /* of the acknowledgments in `past` */
};

extern const struct tcp_trouble no_trouble; /* all zero */

/* The stream's trouble, or zeros. */
static inline const struct tcp_trouble *tcp_trouble_of(const struct tcp_stream *stream) {
    return stream->trouble ? stream->trouble : &no_trouble;
}

/* Bytes of the stream in flight, -1 when not known. */
static inline int64_t stream_flight(const struct tcp_stream *stream) {
    if (!stream->flight_known)
        return -1;
    int64_t flight = stream->highest - stream->acked;
    return flight > 0 ? flight : 0;
}

/* The window that its sender announces, -1 when it or its scale is not known. */
static inline int64_t stream_window(const struct tcp_stream *stream) {
    return stream->window;
}

void tcp_stream_free(struct tcp_stream *stream, struct allowance *allowance);

#endif
