/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one source of numbered packets: loss, reordering, duplicates and restarts (rules
 * V12.2 to V12.4, V12.8; RFC 4737, RFC 5560), transit times and jitter (RFC 3550 6.4.1). A step
 * that is too large waits for a second packet that confirms it: if none does, it was damage; if one
 * does, it is loss, or a restart if the format says so. Memory is fixed: a window of 8,192 numbers.
 */
#ifndef WIRETALE_SEQUENCE_SOURCE_H
#define WIRETALE_SEQUENCE_SOURCE_H

#include "base/pool.h"
#include "common/sequence_window.h"
#include "sequence/formats.h"

#define SEQUENCE_WINDOW 8192u /* numbers; a power of 2 */
#define SEQUENCE_FRAMES 128u  /* numbers whose frames are stored; a power of 2 */

struct sequence_event {
    enum word kind;
    uint64_t sequence; /* as on the wire; the first of `count` if they are lost */
    uint64_t count;    /* packets */
    uint64_t frame;    /* of the judged packet, which may precede the last one processed */
    /* The frame before a gap, the first frame that overtook a late packet, the original of a
     * duplicate, or the sender's previous frame if it restarts; 0 if unknown. */
    uint64_t related_frame;
    int64_t time_ns; /* of `frame` */
    bool time_known;
    uint32_t capture; /* of `frame` */
};

struct sequence_listener {
    void (*report)(void *context, const struct sequence_event *event);
    void *context;
};

/* The packet with the greatest transit time. */
struct slowest {
    uint64_t frame; /* 0 if there is none */
    int64_t time_ns;
    uint32_t capture;
};

/* Sums over all sources and restarts; in packets unless noted. */
struct sequence_summary {
    enum word application; /* WORD_NONE if no format was recognized */
    uint64_t received;     /* of the format, without end markers */
    uint64_t unique;
    uint64_t expected; /* highest - first + 1, unwrapped */
    uint64_t lost;     /* expected - unique */
    uint64_t out_of_order;
    uint64_t duplicates;
    uint64_t next;     /* arrived directly behind the highest before */
    uint64_t contrary; /* came again with other payload, so they are other packets */
    uint64_t
        foreign;   /* other packets that no layout of the flow reads, without STUN and the like */
    uint64_t late; /* out of order or duplicate, older than the window; still counted in `lost` */
    uint64_t comfort_noise; /* of `received`: RTP of a sender that is silent (RFC 3389) */
    uint64_t corrupt;       /* of `received`: a block's pattern or length is wrong */
    uint64_t end_markers;   /* of iperf2, which repeats them until the server answers */
    uint64_t other_packets; /* of another format, or of a source that was never confirmed */
    uint64_t sources;       /* SSRCs, streams */
    uint64_t restarts;      /* restarts; another block stream of the same run is not one */
    uint64_t loss_runs;     /* runs of consecutive missing numbers */
    uint64_t longest_loss_run;
    bool jitter_known;
    int64_t jitter_ns;          /* RFC 3550 section 6.4.1; of the source with most packets */
    int64_t jitter_mean_ns;     /* of the same source, over all its packets */
    int64_t delay_variation_ns; /* greatest minus least transit; the clocks' offset cancels out */
    struct slowest slowest;     /* of the source with that variation */
    uint64_t jitter_packets;    /* samples of `jitter_ns` */
};

/* Output of the rules. */
struct sequence_judge {
    const struct sequence_layout *layout;
    struct sequence_summary *counts;
    const struct sequence_listener *listener; /* or NULL */
    struct pool *pool;
};

/* Transit times relative to the first packet. */
struct transit_clock {
    bool begun;
    uint8_t payload_kind;
    int64_t time_ns, sent; /* of the previous packet */
    int64_t transit_ns;    /* relative to the first, as are the next two */
    int64_t least, greatest;
    struct slowest slowest; /* with `greatest` */
    double jitter;          /* ns */
    double sizes;           /* ns, the sum of the differences without their signs */
    uint64_t differences;
};

struct sequence_source {
    uint64_t key;
    uint64_t heard;         /* rises with each packet of any source */
    uint64_t last_frame;    /* of the latest packet */
    uint64_t highest_frame; /* of the highest number */
    int64_t highest_sent;
    struct transit_clock clock;
    uint64_t foreign;  /* packets of other protocols before the latest packet */
    int64_t pace;      /* RTP: ticks from one number to the next, 0 if unknown */
    uint32_t arrivals; /* so far, to order frames of different files */
    bool is_waiting;   /* `waiting` is far off and must be confirmed by the next packet */
    struct sequence_item waiting;
    struct sequence_window window;
    uint64_t map[SEQUENCE_WINDOW_WORDS(SEQUENCE_WINDOW)]; /* bits of the window */
    /* Of position p at p % SEQUENCE_FRAMES: number of the arrival (high 32 bits), and frame. */
    uint64_t frames[SEQUENCE_FRAMES];
    uint32_t prints[SEQUENCE_FRAMES]; /* of their payloads */
};

void sequence_source_begin(struct sequence_source *source, uint64_t key);
/* Judges the next packet of the source, which may have to wait for the one after it. Adds to
 * judge->counts and reports events. */
void sequence_source_take(struct sequence_source *source, const struct sequence_judge *judge,
                          const struct sequence_item *item);
/* Judges a waiting packet as if none followed. */
void sequence_source_settle(struct sequence_source *source, const struct sequence_judge *judge);
/* Adds the counts that are final only at a restart or the end. */
void sequence_source_sum(const struct sequence_source *source, struct sequence_summary *summary);

void sequence_report(const struct sequence_judge *judge, enum word kind,
                     const struct sequence_item *item, uint64_t related_frame);

#endif
