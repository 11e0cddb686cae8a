/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of one direction: `rate=2Mbit delay=10ms queue=20 drop=17,90-95`. Times are ns;
 * spans count from the link's first packet; shares are 0 to 1; packet numbers begin at 1. */
#ifndef WIRETALE_LINK_SPEC_H
#define WIRETALE_LINK_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_DURATION_NS (INT64_C(3600) * 24 * 1000000000)
#define MAX_SPANS       64u
#define MAX_RANGES      4096u
#define MAX_STEPS       4096u
#define MAX_BITS        64u /* flipped in a packet */

enum jitter_distribution { JITTER_UNIFORM, JITTER_NORMAL, JITTER_EXPONENTIAL };
enum queue_discipline { QUEUE_TAIL, QUEUE_RED, QUEUE_CODEL, QUEUE_FQ_CODEL, QUEUE_PIE };

struct time_span {
    int64_t start_ns, end_ns;
    double share; /* of the packets in the span */
};

struct span_list {
    struct time_span spans[MAX_SPANS];
    uint32_t count;
};

/* Settings from a time on. A negative one is as before the schedule. */
struct schedule_step {
    int64_t at_ns;
    double rate_bps;
    int64_t delay_ns;
    double loss;
};

struct index_range {
    uint64_t first, last;
};

struct link_spec {
    double rate_bps;        /* 0: no limit */
    const char *trace_path; /* delivery opportunities, in place of a rate; NULL: none */
    int64_t overhead;       /* bytes that the link adds to an IP packet; may be negative */
    int64_t delay_ns;
    int64_t jitter_ns;        /* half width, standard deviation or mean, by distribution */
    uint64_t distribution;    /* enum jitter_distribution */
    uint64_t jitter_reorders; /* flag */
    uint64_t queue_packets;   /* with the one being sent; 0: no limit */
    uint64_t queue_bytes;     /* 0: no limit */
    uint64_t discipline;      /* enum queue_discipline */
    double red_min, red_max;  /* in the unit of the queue; 0: derived from the limit */
    double red_probability, red_weight;
    int64_t target_ns; /* of CoDel and PIE; 0: the default of the discipline */
    int64_t codel_interval_ns;
    uint64_t fq_flows, fq_quantum; /* queues; bytes that each sends in its turn */
    uint64_t ecn;                  /* flag: mark in place of dropping, if the packet permits it */
    double loss;
    double gilbert_to_bad, gilbert_to_good;     /* transitions per packet */
    double gilbert_loss_bad, gilbert_loss_good; /* in each state */
    uint64_t periodic;                          /* every Nth packet is lost; 0: none */
    struct index_range *listed;                 /* lost packets, ascending */
    uint32_t listed_count;
    struct span_list lost_spans; /* packets that arrive in them are lost by share */
    struct span_list outages;    /* all packets that arrive in them are lost */
    struct span_list stalls;     /* nothing leaves in them; the queue fills */
    struct schedule_step *steps; /* ascending */
    uint32_t steps_count;
    double reorder;
    uint64_t reorder_distance; /* packets that overtake one that is held back */
    int64_t reorder_wait_ns;   /* after which it leaves in any case */
    double duplicate;
    double corrupt;
    uint64_t corrupt_bits;
    uint64_t mtu;        /* bytes of an IP packet; 0: no limit */
    uint64_t black_hole; /* flag: larger packets are dropped without an ICMP message */
};

/* Sets the defaults: a link without limits, loss and delay. */
void link_spec_init(struct link_spec *spec);

/* Applies the settings in `text`, which is changed and must outlive the spec. Returns NULL, or the
 * reason for a failure in `error`. */
const char *link_spec_parse(struct link_spec *spec, char *text, char *error, size_t error_size);

/* Returns the step in effect at this time, or NULL before the first one. */
const struct schedule_step *link_spec_step(const struct link_spec *spec, int64_t since_ns);
/* Each returns the setting in effect at this time. */
double link_spec_loss(const struct link_spec *spec, int64_t since_ns);
int64_t link_spec_delay_ns(const struct link_spec *spec, int64_t since_ns);
double link_spec_rate_bps(const struct link_spec *spec, int64_t since_ns);

void link_spec_free(struct link_spec *spec);

/* Returns the span that contains the time, or NULL. */
const struct time_span *span_list_find(const struct span_list *list, int64_t since_ns);

#endif
