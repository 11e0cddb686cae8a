/* SPDX-License-Identifier: Apache-2.0 */
/* One half-connection: the data that an endpoint sends, the acknowledgments (ACKs) that the other
 * endpoint returns for it, and the window that this endpoint announces.
 *
 * Positions are 64-bit offsets that do not wrap: 0 is the first byte after the SYN, or the first
 * byte seen if the capture begins later; a SYN is at -1. snd_una and snd_nxt are those of RFC
 * 9293 section 3.3.1 as the capture point sees them, so snd_una may exceed snd_nxt by one if the
 * capture missed a FIN.
 *
 * `recovery` is NULL until the first irregular segment, so that regular streams stay small: it must
 * be read through recovery_of() and written through recovery_state() (segment.h). One worker owns a
 * flow at a time, so nothing is locked. All lists come from the memory pool of a shard and are
 * bounded: if a bound is reached, the oldest entry must give way, and a counter must show it if a
 * verdict can depend on it. */
#ifndef WIRETALE_TCP_STREAM_H
#define WIRETALE_TCP_STREAM_H

#include "base/bytes.h"
#include "base/histogram.h"
#include "base/int64.h"
#include "base/range_set.h"
#include "decode/headers.h"
#include "sequence/tcp_blocks.h"
#include "tcp/scoreboard.h"
#include "tcp/time_account.h"
#include "tcp/unacked_segments.h"

#define MAX_FINGERPRINTS 32u  /* per half-connection: a duplicate follows within a few packets */
#define MAX_RECORDS      256u /* verdicts per half-connection that can still be amended */
#define MAX_SACK_RANGES  4u
#define MAX_STALLS       5u
#define MAX_DAMAGED      32u
#define MIN_RTO_NS       INT64_C(200000000) /* Linux; RFC 6298 section 2.4 says 1 s */
#define DUP_ACK_THRESH   3u                 /* DupThresh, RFC 5681 section 3.2 */
#define SEGMENT_USUAL    1460               /* bytes, if no MSS was seen */
#define RTT_UNKNOWN      INT64_C(-1)

/* A sequence number this far from snd_nxt is not part of the stream: windows reach 2^30 at most
 * (RFC 7323 section 2.3). */
#define POSITION_SPAN (INT64_C(1) << 30)

/* Distinguishes a duplicate of a packet from a retransmission of its data. */
struct packet_fingerprint {
    uint32_t time;           /* fingerprint_time() */
    uint32_t frame;          /* 0 for an empty entry */
    uint32_t signature;      /* packet_signature() */
    uint16_t ip_id;          /* IPv4 identification, 0 if unusable */
    uint16_t port : 12;      /* capture port (struct packet_info) of the original */
    uint16_t copies : 2;     /* duplicates so far, 3 for more */
    uint16_t again : 2;      /* network duplicates that the original's port stored, 3 for more */
    uint16_t last_port : 12; /* other port that stored a duplicate last, if last_count */
    uint16_t last_count : 2; /* duplicates that it stored, 3 for more */
    uint16_t mirrored : 1;   /* the original's port stored the original again at once */
    uint8_t ttl, last_ttl;   /* of the original and of the last duplicate of another port */
};
_Static_assert(PORT_BITS == 12, "ports fit");

/* The port that stores packets a second time, on the other side of a router. */
struct second_side {
    uint16_t port;
    uint8_t ttl;
    uint8_t count; /* duplicates that it stored, less those of other ports */
};

/* Whether a duplicate within MIRROR_GAP_NS can be the network's rather than the capture's. */
enum duplicate_origin {
    DUPLICATE_TWO_PORTS,      /* other link addresses, or a router in between: the capture's */
    DUPLICATE_TWO_INTERFACES, /* only the interface differs, as at the start of a rotated file */
    DUPLICATE_REPORTABLE,     /* the receiver would report a second copy by DSACK */
    DUPLICATE_UNPROVEN
};

/* Counts that differ on the wire if the capture has super-segments (tcp/wire_segments.h). */
enum wire_counter {
    WIRE_DATA,
    WIRE_RETRANSMITTED,
    WIRE_SPURIOUS,
    WIRE_LOST_UPSTREAM,
    WIRE_LOST_DOWNSTREAM,
    WIRE_COUNTERS
};

/* Payloads longer than a segment on the wire, allocated at the first. */
struct super_segments {
    struct wire_sum {
        uint64_t packets;
        uint64_t bytes;
        uint64_t segments; /* of agreed_mss, each payload rounded up; 0 if that is unknown */
    } sums[WIRE_COUNTERS];
    uint32_t allowed;      /* the MSS that the receiver announced, 0 if agreed_mss is unknown */
    uint32_t common;       /* divisor of most payloads, bytes */
    uint32_t fits, misses; /* payloads that it divides, and others */
    uint32_t link_max;     /* largest payload that was no super-segment, bytes */
};

/* Data with a wrong checksum that was neither retransmitted nor acknowledged since. */
struct damaged_data {
    int64_t start, end;       /* stream positions */
    struct flow_event *event; /* NULL unless it is certain, or if it was not kept */
    uint32_t frame;
    bool certain;
};

/* A verdict that later packets may amend, and the time of the last retransmission of its bytes. */
struct retransmission_record {
    int64_t start, end; /* stream positions */
    int64_t time_ns;
    int64_t first_ns; /* of the first transmission, 0 if unknown */
    int64_t late_ns;  /* delay of the first transmission if its ACK answers that; 0 if unknown */
    struct flow_event *event; /* NULL if it was not kept */
    union {
        uint64_t long_bytes; /* of a retransmission: long_bytes() of start to end */
        uint64_t ip_bytes;   /* of a duplicate */
    };
    uint32_t frame;
    uint32_t tsval;       /* if has_tsval */
    uint32_t first_tsval; /* of the first transmission, if newer_tsval */
    uint32_t waited_us;   /* since the sender's data before, which it retransmits or follows */
    uint32_t passed_us;   /* since the ACK passed, if unheard */
    uint16_t ip_id;
    uint16_t kind; /* enum word */
    bool has_tsval;
    bool duplicate;        /* a duplicate packet, not a retransmission */
    bool syn_fin;          /* a SYN, or a FIN without data */
    bool upstream;         /* the loss counts in lost_upstream, else in lost_downstream */
    bool lost;             /* counted as lost */
    bool spurious;         /* proven */
    bool dsacked;          /* a DSACK was attributed to it */
    bool unheard;          /* its sender had not received an ACK that had passed (V6.7) */
    bool settled;          /* its ACK was seen, or none is expected */
    bool damaged;          /* the transmission before arrived damaged: it was not lost */
    bool place_unknown;    /* counts as lost on neither side (V7.2, V7.4 to V7.9) */
    bool newer_tsval;      /* newer than the TSval of the first transmission */
    bool needed;           /* its ACK echoes this transmission */
    bool reported_missing; /* the last SACK before it left these bytes open */
    bool third;            /* a third duplicate of one port within 1 ms */
    bool at_once;          /* stored at the time of its original */
    bool sacked;           /* a SACK of it was seen, and judged */
    uint8_t origin;        /* enum duplicate_origin, if a duplicate */
    uint16_t interface;    /* that stored it, if a duplicate */
};

/* ACKs that passed and did not reach the sender in time (verdict/lost_acks.c). */
struct unheard_acks {
    int64_t passed_ns;         /* the first of them */
    int64_t first_ns, last_ns; /* retransmissions in spite of them */
    uint32_t last_tsval;       /* of the last of them */
    uint32_t heard_tsval;      /* the newest that the sender had received */
    uint8_t count;             /* of ACKs before different retransmissions, 0 if none */
};

/* Idle time that an RTO ended. */
struct stall {
    int64_t ns, until_ns; /* its length, and the time of its last packet */
    uint32_t from, until; /* frames */
    uint32_t from_capture, until_capture;
};

/* Loss-recovery state, allocated at the first irregular segment: counters, the sender's recovery as
 * it can be inferred, and the receiver's SACK reports. */
struct tcp_recovery_state {
    /* Read for every packet: one cache line. */
    uint64_t retransmissions;
    uint32_t rto_count; /* expiries; the go-back-N after one belongs to it */
    uint32_t suspected_rto_count;
    int64_t recovery_point, rto_point;  /* snd_nxt when fast recovery or the RTO began */
    uint32_t recovery_frame, rto_frame; /* of the first retransmission, 0 if none */
    int64_t previous_snd_una;           /* before its last advance */
    uint16_t sack_count;                /* ranges in `sacked` */
    uint16_t unsettled;                 /* records that wait for their ACK */
    struct second_side second_side;
    /* Counters of the data. */
    uint64_t fast_count, rto_retransmissions, tlp_count, spurious_count;
    uint64_t retransmitted_bytes, duplicate_bytes, probe_bytes, unseen_bytes, unknown_bytes;
    uint64_t duplicate_data; /* duplicates with payload */
    uint64_t out_of_order, ambiguous, network_duplicates, mirror_duplicates, mirror_ip_bytes;
    uint64_t unknown_duplicates, third_duplicates;
    uint64_t packets_before_duplicates; /* sent before the first duplicate */
    uint64_t lost_upstream, lost_downstream;
    uint64_t lost_upstream_bytes, lost_downstream_bytes; /* payload of these */
    struct {
        uint32_t retransmissions, spurious, lost_upstream, lost_downstream;
    } syn_fin; /* of these counters, SYNs and FINs without data */
    uint64_t checksum_retransmissions;
    uint64_t gaps_opened, gaps_filled, capture_reordered;
    uint64_t window_full;
    uint32_t window_probes, keep_alives;
    uint32_t window_openings, probed_openings; /* of closed windows; of these, behind probes */
    /* Counters of the ACKs that this endpoint sends. */
    uint64_t duplicate_acks, sack_acks, sack_gaps, zero_windows, acks_out_of_range;
    uint64_t sacks_outside;                 /* ACKs with SACK blocks outside of the stream */
    int64_t sack_shift_min, sack_shift_max; /* from their ACK to their first block, bytes */
    uint64_t ecn_echo, ecn_cwr, unusual_options, signed_segments;
    int64_t zero_since_ns, zero_window_ns; /* total of closed windows */
    int64_t low_since_ns, low_window_ns;   /* the same of windows below one segment */
    int64_t window_opened_ns;              /* last time, 0 if never */
    int64_t window_probed_ns;              /* likewise, by this endpoint */
    uint32_t window_opened_frame;
    uint32_t stall_count;
    int64_t rto_idle_ns; /* total of idle time that RTOs ended */
    int64_t needless_ns; /* of that, before RTOs that were spurious */
    struct stall
        *stalls; /* the longest of those, longest first: room for MAX_STALLS, NULL at first */
    /* Reports of the receiver on this stream's data. */
    uint64_t acks_lost; /* on their way from the capture point to the sender, at least */
    struct unheard_acks unheard;
    int64_t acks_late_ns;        /* when the sender last received an ACK late, 0 if never */
    int64_t last_loss_signal_ns; /* last duplicate ACK or SACK */
    int64_t third_dup_ack_ns;    /* the duplicate ACK that last reached DUP_ACK_THRESH */
    int64_t rack_xmit_ns;        /* RACK.xmit_ts (RFC 8985), of retransmissions only; 0 if none */
    int64_t sacked_max;          /* highest position that was SACKed */
    int64_t sack_rtt_ns;         /* least time until data was SACKed, 0 if unknown */
    struct {
        int64_t start, end;
    } sacked[MAX_SACK_RANGES];    /* of the last ACK */
    struct scoreboard scoreboard; /* of all ACKs */
    int64_t recovery_ns, rto_ns;  /* of recovery_frame and rto_frame */
    int64_t idle_ns;              /* of idle_frame */
    int64_t suspected_ns;         /* the last idle time with lost packets, 0 if none */
    int64_t suspected_idle_ns;    /* its length */
    int64_t suspected_point;      /* end of data that followed a suspected RTO, 0 if none */
    int64_t idle_point;           /* end of data that followed an idle time of a sender with more
                                     to send, 0 if none */
    int64_t rto_room;    /* bytes that the sender of the last RTO may send at once after the
                            ACK of rto_point */
    uint32_t idle_frame; /* of the data that ends at idle_point */
    struct {             /* data reported lost; it may have arrived since */
        int64_t start, end, time_ns;
    } loss_report;           /* without SACK: not yet retransmitted */
    struct gap forgotten;    /* gaps dropped below its end; its opener is newer than theirs */
    int64_t forgotten_bytes; /* of those gaps that have not come since */
    uint32_t answer_us;      /* without SACK: from an ACK to the retransmission it caused last */
    uint16_t report_wait_ms; /* without SACK: from the ACK that advanced to the report */
    uint8_t idle_repeats;    /* without SACK: repeated ACKs with nothing outstanding, up to 3 */
    bool sends_dsack;        /* the receiver reported data that arrived twice */
    uint8_t unreported;      /* retransmissions proven spurious without a DSACK, up to 255 */
    bool rto_undone;         /* the sender recovers as if no RTO had expired (RFC 4015, RFC 5682) */
    uint8_t multipath;       /* enum multipath_fact: what shows the token of its sender */
    uint32_t multipath_token;
    int64_t reorder_ns; /* longest delay of a segment that later ones overtook, 0 if none did */
    struct retransmission_record *records; /* a ring once it is full */
    struct damaged_data *damaged;          /* the oldest gives way */
    uint32_t damaged_room;
    uint16_t damaged_count;
    uint32_t record_capacity;
    uint16_t record_count, record_next;
    int64_t settled_from;     /* an ACK below this settles no record */
    int64_t maybe_held_below; /* without SACK: the receiver may hold data above a gap below this */
};

_Static_assert(sizeof(struct tcp_recovery_state) <= 896, "a size class of pools");

enum probe_pending { PROBE_NONE, PROBE_KEEP_ALIVE, PROBE_WINDOW };

/* An ACK between the capture point and the sender of the data. */
struct passing_ack {
    int64_t una;     /* position that it acknowledges */
    int64_t edge;    /* position of the right edge of its window, INT64_MAX if unknown */
    int64_t time_ns; /* at the capture point */
    uint32_t tsval;  /* 0 without timestamps */
} __attribute__((packed, aligned(4)));

/* The connection as the sender of the data saw it when it created its last segment
 * (tracker/sender_view.c). */
struct sender_view {
    struct passing_ack seen;  /* the newest ACK that it had processed */
    uint8_t first, end, room; /* of `passing` */
    bool thinned : 1;         /* `passing` was full, and leaves out ACKs */
    bool unknown : 1;         /* neither timestamps nor an RTT: the view is not known */
    bool same : 1;            /* the last segment has the view of the one before, and its TSval */
    struct passing_ack *passing; /* later ones, oldest first: from `first` to `end` */
    uint32_t tsval;              /* of the last segment, 0 without timestamps */
    int32_t tick_ns;             /* of the sender's timestamp clock, 0 if unknown */
    int64_t echo_rtt_ns;  /* least time from an ACK to data that echoes it, INT64_MAX if unknown */
    int64_t least_age_ns; /* of segments, compared with the first one with timestamps */
    int64_t least_age_at_ns; /* when a segment had it */
    int64_t queued_ns;       /* how long the last segment was queued before the capture point */
};

/* The longest wait of a kind (tracker/longest_waits.c). */
enum wait_kind {
    WAIT_IDLE,
    WAIT_DELAYED_ACK,
    WAIT_WINDOW,     /* data segment after data segment, while the window was the limit */
    WAIT_NETWORK,    /* the same of the network */
    WAIT_SLOW_START, /* at its end */
    WAIT_SEND_BUFFER,
    WAIT_RTT, /* from data to its ACK */
    WAIT_KINDS
};

/* A wait between two packets. */
struct packet_wait {
    int64_t ns; /* the part of the time that counts */
    int64_t first_ns, last_ns;
    uint32_t first_frame, last_frame; /* last_frame is 0 if there was none */
    uint32_t first_capture, last_capture;
};

/* Round trips in which flight reached the same level (tracker/steady_flight.c), and the places of
 * the longest waits: state that only longer directions, and those with certain waits, have. */
struct steady_flight {
    /* Most packets compare the last of these and extend the run, so that they are beside each
     * other. */
    struct packet_wait longest[WAIT_KINDS];
    struct packet_wait
        run;           /* of intervals with the same limit, the present one; not yet in `longest` */
    uint8_t run_cause; /* enum sender_time */
    bool begun;        /* round trips are compared */
    bool late;         /* the data behind gap_ns came long after the ACK that had made room */
    struct packet_wait gap; /* gap_ns */
    int64_t end;            /* an ACK of this position ends the round trip */
    int64_t began_ns;       /* the round trip */
    int64_t highest;        /* flight in it, bytes */
    int64_t gap_ns;         /* its longest time without data */
    int64_t round_ns;       /* accounted to the network when it began */
    int64_t since_ns;       /* the same when flight first reached the level */
    int64_t previous;       /* highest flight of the round trip before */
    int64_t level;          /* bytes */
    int64_t active_ns;      /* of the network, since the application was last idle */
    int64_t unsure_ns; /* of the network, before idle times: a queue may have spread one write */
    int64_t spread_ns; /* of the window: the sender may have paced the segments that filled it */
    int64_t most;      /* highest flight of all round trips */
    int64_t first;     /* position of the data after `begun` */
    uint64_t retransmissions;
    uint32_t pushes; /* segments with PSH since */
    uint32_t queued; /* segments that waited between the sender and the capture point */
    uint8_t rounds;  /* in which flight reached the level */
    bool uncertain;  /* data were lost before the level was known */
};

/* A time in which the capture's clock advanced by more than the sender's timestamp clock: the last
 * packet was late, or the capture's clock jumped. `ns` is 0 if there is none. */
struct clock_jump {
    int64_t ns, after_ns, until_ns; /* after this packet of the sender, until that one */
    uint32_t frame;                 /* the latter */
};

/* A direction in the view of its sender, from its 8th packet on (tracker/time_accounting.c). */
struct time_accounting {
    int64_t transfer_ns;   /* of SENDER_NETWORK: the bottleneck was busy with this direction */
    int64_t slow_start_ns; /* the same until bytes in flight last doubled, before any loss */
    int64_t created_ns;    /* when its sender created the last segment */
    int64_t doubled_ns;    /* when bytes in flight last doubled */
    int64_t end;           /* snd_nxt after the last segment */
    int64_t una;           /* that its sender had seen when it created that */
    uint32_t doubled_bytes;
    uint32_t block_us;      /* of the present block of segments so far */
    uint32_t block_most_us; /* its longest gap */
    uint32_t even_block_us; /* that blocks of the present run with an even spacing take */
    uint16_t even_blocks;   /* of the run */
    uint16_t spacing_us;    /* the least of an even block, 0 at first */
    uint8_t block_count;    /* segments of the present block */
    bool slow_start_over;
    bool blocked; /* one more segment did not fit the receive window that the sender saw */
    struct sender_view view;
    struct steady_flight *steady; /* NULL at first */
    struct clock_jump jump;       /* the largest */
};
_Static_assert(sizeof(struct time_accounting) <= 256, "a size class of pools");

/* A value of snd_una and the ACK that advanced it there. */
struct ack_point {
    int64_t snd_una, time_ns;
    uint32_t frame; /* 0 if unknown */
} __attribute__((packed, aligned(4)));

#define ACKS_KEPT 2u /* the oldest first, one RTT apart; the first may be empty */

/* What a SYN offers that a device or the peer may refuse by silence. */
enum syn_option { SYN_FAST_OPEN = 1, SYN_MPTCP = 2, SYN_SIGNATURE = 4, SYN_ECN = 8 };

/* Fields that every packet changes come first: memory is fetched in lines of 64 bytes. */
struct tcp_stream {
    uint32_t isn;                /* initial sequence number: position 0 is isn + 1 */
    bool isn_known : 1;          /* else no segment and no ACK was seen */
    bool base_known : 1;         /* a segment was seen: data below first_seq precedes the capture */
    bool snd_una_known : 1;      /* an ACK was seen */
    bool flight_known : 1;       /* base_known and snd_una_known */
    bool zero_window : 1;        /* the last window announced was 0 */
    bool low_window : 1;         /* it was below one segment of the other end */
    bool window_range_known : 1; /* window_min and window_max are set */
    bool window_shift_known : 1;
    bool has_unsettled : 1; /* records wait for their ACK */
    bool awaits_echo : 1;   /* recovery->unheard waits for the sender's next echo */
    bool pushes : 1;        /* some of its data had PSH */
    bool unpushed : 1;      /* some had not */
    bool sent_new_last : 1; /* its new data came after the other direction's */
    bool last_pushed : 1;   /* its last new data had */
    bool syn_seen : 1, syn_ack_seen : 1, fin_seen : 1;
    bool sack_permitted : 1;
    bool scale_offered : 1;     /* its SYN had a window scale option */
    bool syn_truncated : 1;     /* the snap length cut its SYN's options */
    bool options_truncated : 1; /* it cut options of some segments */
    bool reports_truncated : 1; /* it cut options of ACKs that this endpoint sent */
    bool counts_missing : 1;    /* some state could not be allocated: counters are null */
    bool prompt_sample : 1;     /* an RTT sample is of an ACK that no timer delays */
    bool timestamps;            /* a segment had the option */
    bool sent_data_last;        /* its data came after the other direction's */
    uint8_t window_scale;       /* as its SYN offered */
    uint8_t window_shift;       /* in force, if window_shift_known */
    uint8_t syn_nops;           /* most NOPs in a row in its SYN */
    uint8_t probe_pending;      /* enum probe_pending: a probe waits for its answer */
    uint8_t ip_id_small_steps, ip_id_jumps;
    uint8_t ip_id_skips;      /* small steps over IDs that no packet of the host has */
    uint8_t next_fingerprint; /* where the next one goes */
    uint8_t fingerprint_capacity;
    uint8_t syn_options : 4, last_syn_options : 4; /* enum syn_option of its first and last SYN */
    uint16_t mss;                                  /* announced, 0 if not seen */
    uint16_t agreed_mss;  /* the lesser of both SYNs, less options, or of the path if that
                             is proven to be less; 0 before data, or if unknown */
    uint16_t last_window; /* as in the header */
    uint16_t last_ip_id;
    uint16_t last_payload;  /* of its last data, bytes; UINT16_MAX for more */
    uint16_t dup_ack_count; /* duplicate ACKs that it sent since its last one that advanced;
                               UINT16_MAX for more */
    uint32_t max_tsval;     /* the newest */
    uint32_t tsval_echo;    /* TSecr of the first segment with that TSval */
    uint32_t last_ack;      /* acknowledgment number that it sent last */
    uint32_t una_advanced_frame;
    int64_t snd_nxt;               /* position after the highest byte (or FIN) seen */
    int64_t snd_una;               /* highest cumulative ACK for this stream */
    int64_t una_advanced_ns;       /* when snd_una last advanced */
    struct ack_point *ack_history; /* ACKS_KEPT earlier ones, or NULL: earlier_acks() */
    int64_t last_data_ns;
    int64_t tsval_ns; /* of the first segment with the newest TSval */
    uint64_t unique_bytes;
    uint32_t last_data_frame; /* of the packet at last_data_ns */
    uint32_t syns;
    struct unacked_segments unacked;
    struct time_accounting *accounting; /* NULL below ACCOUNTING_MIN_PACKETS */
    struct range_set gaps;              /* data below snd_nxt that was not seen */
    struct histogram rtt;               /* from the capture point to the receiver and back, ns */
    uint32_t srtt_us, rttvar_us;        /* RFC 6298, of the same samples */
    int32_t clock_step_ns;              /* tick of the capture's clock, 0 if it is fine */
    int32_t window;     /* last announced, bytes; -1 if it or its scale is unknown */
    int64_t flight_max; /* bytes */
    uint64_t packets;   /* of the direction */
    struct tcp_recovery_state *recovery;     /* NULL if there was nothing irregular */
    struct packet_fingerprint *fingerprints; /* a ring once it is full */
    uint32_t segment_max;                    /* largest payload, bytes */
    uint32_t single_max;  /* a longer payload may be a super-segment; 0 at first */
    char cold[0];         /* rarely changed fields follow */
    int64_t ids_since_ns; /* since then, no IP ID of it was missing; of the first at first */
    int64_t first_seq;    /* position of the first segment seen */
    int32_t window_min, window_max;        /* below 2^30 (RFC 7323 section 2.3) */
    struct super_segments *super_segments; /* NULL if there was none */
    int64_t first_tsval_ns;                /* of the first segment with timestamps */
    uint32_t first_tsval;                  /* of the same segment */
    uint32_t resets;
    struct block_stream *blocks; /* NULL unless recognized */
    int64_t pause_ns;            /* its last idle time of an RTO or more without a missing IP ID */
    int64_t fin_end;             /* position after the FIN */
    uint32_t fins;
    uint32_t paused_us; /* pauses in its data before the other direction had any */
};

extern const struct tcp_recovery_state no_recovery; /* all zero */

/* Returns the stream's recovery state for reading; never NULL. */
static inline const struct tcp_recovery_state *recovery_of(const struct tcp_stream *stream) {
    return stream->recovery ? stream->recovery : &no_recovery;
}

/* Returns the payload that passed the capture point, without duplicates and probes. */
static inline uint64_t seen_bytes(const struct tcp_stream *stream) {
    return stream->unique_bytes + recovery_of(stream)->retransmitted_bytes;
}

/* Returns the bytes in flight, -1 if unknown. */
static inline int64_t stream_flight(const struct tcp_stream *stream) {
    if (!stream->flight_known)
        return -1;
    int64_t flight = stream->snd_nxt - stream->snd_una;
    return flight > 0 ? flight : 0;
}

/* Returns the position of a sequence number: the one nearest to snd_nxt. */
static inline int64_t stream_position(const struct tcp_stream *stream, uint32_t sequence) {
    uint32_t snd_nxt = stream->isn + 1 + (uint32_t)stream->snd_nxt;
    return stream->snd_nxt + (int32_t)(sequence - snd_nxt);
}

/* Returns ACKS_KEPT earlier ACKs for reading, of which some may be empty. */
static inline const struct ack_point *earlier_acks(const struct tcp_stream *stream) {
    static const struct ack_point none[ACKS_KEPT];
    return stream->ack_history ? stream->ack_history : none;
}

/* Returns the last ACK that advanced snd_una. */
static inline struct ack_point last_ack_point(const struct tcp_stream *stream) {
    return (struct ack_point){stream->snd_una, stream->una_advanced_ns, stream->una_advanced_frame};
}

static inline void set_isn(struct tcp_stream *stream, uint32_t isn) {
    stream->isn_known = true;
    stream->isn = isn;
}

/* Returns how far the endpoint's ACKs can exceed the data that was seen: twice its largest window,
 * because the capture may have missed a window update. */
static inline int64_t max_ack_ahead(const struct tcp_stream *acks) {
    return acks->window_range_known ? max64(2 * acks->window_max, 1 << 20) : POSITION_SPAN;
}

/* Returns how many IP IDs were given out after `from` up to `to`. 0 is none (RFC 6864 section 4.1).
 */
static inline uint16_t ip_ids_between(uint16_t from, uint16_t to) {
    return (uint16_t)(to - from - (to < from));
}

/* The sender's IPv4 IDs rise by small steps (RFC 6864), so they order its packets. */
static inline bool ip_ids_ordered(const struct tcp_stream *stream) {
    return stream->ip_id_small_steps >= 2 && stream->ip_id_small_steps >= 4 * stream->ip_id_jumps;
}

/* They are constant or random, so equal IDs do not prove a duplicate. */
static inline bool ip_ids_unusable(const struct tcp_stream *stream) {
    return stream->ip_id_jumps && !ip_ids_ordered(stream);
}

/* They rise by one per packet of the host, so a missing ID is a packet that was sent. */
static inline bool ip_ids_consecutive(const struct tcp_stream *stream) {
    return ip_ids_ordered(stream) && stream->ip_id_small_steps >= 4 * stream->ip_id_skips;
}

/* No packet that is not in the capture seems to take IDs of the same counter. */
static inline bool ip_ids_per_connection(const struct tcp_stream *stream) {
    return ip_ids_consecutive(stream) && stream->ip_id_small_steps >= 64 &&
           stream->ip_id_small_steps >= 16 * stream->ip_id_skips;
}

/* Returns whether a packet of a flow was captured before another one. Their frame numbers alone do
 * not show it, because they may be of different files. */
static inline bool is_packet_before(int64_t time_ns, uint32_t frame, int64_t other_ns,
                                    uint32_t other_frame) {
    return time_ns != other_ns ? time_ns < other_ns : frame < other_frame;
}

/* Returns a time in the unit of fingerprints: 128 ns, modulo 2^32. */
#define FINGERPRINT_TIME_SHIFT 7
static inline uint32_t fingerprint_time(int64_t time_ns) {
    return (uint32_t)(time_ns >> FINGERPRINT_TIME_SHIFT);
}

/* Returns a hash of the header fields that a router leaves alone, so equal for a packet and its
 * duplicate. It is a field of the header because the decoder computes it while that is in cache.
 *
 * Two multiplications by odd constants (of MurmurHash, public domain): each spreads differing bits
 * to the upper half. */
static inline uint32_t packet_signature(const struct tcp_header *tcp, uint16_t checksum,
                                        uint32_t payload_bytes) {
    uint64_t place = (uint64_t)tcp->acknowledgment << 32 | tcp->sequence;
    uint64_t rest = (uint64_t)checksum << 32 | (uint32_t)tcp->window << 16 | tcp->flags;
    uint64_t hash = place * UINT64_C(0xFF51AFD7ED558CCD) ^ rest;
    hash += (uint64_t)payload_bytes << 32;
    if (tcp->options & TCP_OPTION_TIMESTAMPS)
        hash += tcp->timestamp_value;
    return (uint32_t)((hash ^ hash >> 32) * UINT64_C(0xC4CEB9FE1A85EC53) >> 32);
}

/* Returns the least RTT sample between the capture point and the receiver of the stream's data, ns.
 * A clock cannot measure less than its tick. There must be a sample. */
static inline int64_t least_sample(const struct tcp_stream *stream) {
    return max64(stream->rtt.least, stream->clock_step_ns);
}

/* Returns the same including times until data was SACKed; RTT_UNKNOWN without a sample. */
int64_t min_rtt(const struct tcp_stream *stream);

/* Returns the fingerprint of the packet `age` packets ago; 1 <= age <= fingerprint_capacity. It may
 * be empty. */
static inline struct packet_fingerprint *fingerprint_at(const struct tcp_stream *stream,
                                                        unsigned age) {
    unsigned next = stream->next_fingerprint;
    return &stream->fingerprints[next >= age ? next - age
                                             : next + stream->fingerprint_capacity - age];
}

/* Adds an RTT sample (RFC 6298 section 2). `step_ns` is the tick of the capture's clock. */
void add_rtt_sample(struct tcp_stream *stream, int64_t rtt_ns, int64_t step_ns, struct pool *pool);

/* Returns the tick of the endpoint's timestamp clock in ns (RFC 7323 section 5.4), 0 if it is
 * unknown or unusual. */
int64_t tsval_tick_ns(const struct tcp_stream *stream);

#define CLOCK_JUMP_MIN_NS 200000000

/* Compares the time since the newest TSval with what the sender's clock advanced meanwhile. */
void note_clock_jump(struct tcp_stream *stream, uint32_t tsval, int64_t time_ns, uint32_t frame);

/* Returns by how much the capture's clock jumped forward against the timestamp clocks of both ends
 * at once, and stayed there; zeros without such a jump. */
struct clock_jump find_clock_jump(const struct tcp_stream streams[2]);

/* Returns all memory of the stream to the pool; it must not be used again. */
void stream_free(struct tcp_stream *stream, struct pool *pool);

#endif
