/* SPDX-License-Identifier: Apache-2.0 */
/* One sender's numbered packets, judged as they come: lost, out of order, duplicate, late, begun
 * again; and how long they were under way. */
#ifndef WIRETALE_SEQUENCE_SOURCE_H
#define WIRETALE_SEQUENCE_SOURCE_H

#include "common/sequence_window.h"
#include "sequence/formats.h"

#define SEQUENCE_WINDOW 8192u /* numbers; a power of 2 */
#define SEQUENCE_FRAMES 128u  /* numbers whose frames are kept; a power of 2 */

enum sequence_event_kind {
    SEQUENCE_LOST, /* `count` from `sequence` on are missing; related: the frame before the gap */
    SEQUENCE_OUT_OF_ORDER, /* related: the first frame that came ahead of it */
    SEQUENCE_DUPLICATE,    /* related: the frame that brought it */
    SEQUENCE_LATE,         /* out of order or duplicate, too old to tell */
    SEQUENCE_CORRUPT,
    SEQUENCE_RESTART /* the sender begins again with `sequence`; related: its frame before */
};

struct sequence_event {
    enum sequence_event_kind kind;
    uint64_t sequence;      /* as on the wire */
    uint64_t count;         /* packets */
    uint64_t frame;         /* of the packet judged: it may be some packets before the last taken */
    uint64_t related_frame; /* 0 when not known */
    int64_t time_ns;        /* of `frame` */
    bool time_known;
};

struct sequence_listener {
    void (*tell)(void *context, const struct sequence_event *event);
    void *context;
};

/* Sums over all sources and all their beginnings; packets, but for what says otherwise. */
struct sequence_summary {
    enum sequence_format format;
    uint8_t counter_bits;
    uint64_t received; /* of the format, end markers excluded */
    uint64_t unique;
    uint64_t expected; /* highest - first + 1, wraps undone */
    uint64_t lost;     /* expected - unique */
    uint64_t out_of_order;
    uint64_t duplicates;
    uint64_t late;          /* out of order or duplicate, older than the window: still in `lost` */
    uint64_t corrupt;       /* among `received`: the pattern or the length of a block is wrong */
    uint64_t end_markers;   /* of iperf2 */
    uint64_t other_packets; /* not of the format, or of a source that never was confirmed */
    uint64_t sources;       /* SSRCs, streams */
    uint64_t restarts;      /* beginnings after the first; a block stream beside it is none */
    uint64_t loss_runs;     /* groups of missing numbers side by side */
    uint64_t longest_loss_run;
    uint64_t first, highest; /* of the source that was heard last, since its last beginning */
    uint64_t end_sequence;   /* if `ended`: the number of the end marker or of the last block */
    bool ended;
    bool jitter_known;
    bool transit_known; /* the next two: capture's clock - sender's clock, with their offset */
    int64_t transit_ns_least, transit_ns_greatest;
    int64_t jitter_ns;          /* RFC 3550 section 6.4.1; of the source with the most packets */
    int64_t delay_variation_ns; /* greatest transit - least transit, without their offset */
    uint64_t jitter_packets;    /* that `jitter_ns` is from */
};

/* A packet with what it says. */
struct sequence_item {
    struct sequence_reading reading;
    int64_t time_ns;
    uint64_t frame;
    bool time_known;
};

/* Where judgements go. */
struct sequence_judge {
    const struct sequence_layout *layout;
    struct sequence_summary *counts;
    const struct sequence_listener *listener; /* or NULL */
};

/* Differences of transit time between a packet and the one that came before. */
struct transit_clock {
    bool begun;
    uint8_t payload_kind;
    int64_t time_ns, sent; /* of the packet before */
    int64_t first_ns;      /* transit of the first, with the offset of the clocks */
    int64_t transit_ns;    /* less that of the first; so are the next two */
    int64_t least, greatest;
    double jitter; /* ns */
    uint64_t differences;
};

struct sequence_source {
    uint64_t key;
    uint64_t heard;         /* grows with each packet of any source */
    uint64_t last_frame;    /* of the newest packet */
    uint64_t highest_frame; /* of the highest */
    int64_t highest_sent;
    struct transit_clock clock;
    bool is_waiting; /* `waiting` is far off: the next packet tells what it means */
    struct sequence_item waiting;
    struct sequence_window window;
    uint64_t map[SEQUENCE_WINDOW_WORDS(SEQUENCE_WINDOW)]; /* of the window */
    uint64_t frames[SEQUENCE_FRAMES]; /* frame of position p at p % SEQUENCE_FRAMES */
};

void sequence_source_begin(struct sequence_source *source, uint64_t key);
void sequence_source_take(struct sequence_source *source, const struct sequence_judge *judge,
                          const struct sequence_item *item);
/* Nothing follows: judges the packet that waits, if any. */
void sequence_source_settle(struct sequence_source *source, const struct sequence_judge *judge);
/* Adds what is counted only at the end of a beginning. */
void sequence_source_sum(const struct sequence_source *source, const struct sequence_layout *layout,
                         struct sequence_summary *summary);

/* Returns the frame that brought `position`, or 0 if it is unknown. */
uint64_t sequence_source_frame(const struct sequence_source *source, int64_t position);
/* Returns the first known frame that came ahead of `position`, or 0. */
uint64_t sequence_source_overtaker(const struct sequence_source *source, int64_t position);

void sequence_tell(const struct sequence_judge *judge, enum sequence_event_kind kind,
                   const struct sequence_item *item, uint64_t related_frame);

#endif
