/* SPDX-License-Identifier: Apache-2.0 */
/* What a direction of the link is like: `rate=2Mbit delay=10ms queue=20 drop=17,90-95`. */
#ifndef WIRETALE_LINK_SPEC_H
#define WIRETALE_LINK_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPANS_MOST  64u
#define RANGES_MOST 4096u
#define BITS_MOST   64u

enum jitter_distribution { JITTER_UNIFORM, JITTER_NORMAL, JITTER_EXPONENTIAL };
enum queue_discipline { QUEUE_TAIL, QUEUE_RED, QUEUE_CODEL };

/* From the first packet of the link on; `share` of the packets within are meant. */
struct time_span {
    int64_t start_ns;
    int64_t end_ns;
    double share;
};

struct span_list {
    struct time_span spans[SPANS_MOST];
    uint32_t count;
};

struct index_range {
    uint64_t first;
    uint64_t last;
};

struct link_spec {
    double rate_bps;        /* 0: no limit */
    const char *trace_path; /* of delivery opportunities, instead of a rate */
    int64_t overhead;       /* bytes that the link adds to an IP packet; may be below 0 */
    int64_t delay_ns;
    int64_t jitter_ns;
    enum jitter_distribution distribution;
    bool jitter_reorders;
    uint64_t queue_packets; /* with the one being sent; 0: no limit */
    uint64_t queue_bytes;   /* 0: no limit */
    enum queue_discipline discipline;
    double red_min, red_max; /* in the queue's unit; 0: by the queue */
    double red_probability, red_weight;
    int64_t codel_target_ns, codel_interval_ns;
    double loss;
    double gilbert_to_bad, gilbert_to_good, gilbert_loss_bad, gilbert_loss_good;
    uint64_t periodic;
    struct index_range *listed; /* in order */
    uint32_t listed_count;
    struct span_list lost_spans; /* what comes then is lost */
    struct span_list outages;    /* down: what comes then is lost */
    struct span_list stalls;     /* nothing leaves then; the queue fills */
    double reorder;
    uint64_t reorder_distance;
    int64_t reorder_wait_ns; /* at most, when nothing comes to overtake */
    double duplicate;
    double corrupt;
    uint64_t corrupt_bits;
    uint64_t mtu; /* bytes of an IP packet; 0: no limit */
    bool black_hole;
};

/* The defaults: a link without any limit, loss or delay. */
void link_spec_init(struct link_spec *spec);

/* Takes the settings in `text` (changed by it, and referred to afterwards). Returns NULL or what is
 * wrong, in `problem`. */
const char *link_spec_parse(struct link_spec *spec, char *text, char *problem,
                            size_t problem_bytes);

void link_spec_free(struct link_spec *spec);

#endif
