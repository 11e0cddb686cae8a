/* SPDX-License-Identifier: Apache-2.0 */
/* What the tracer wrote about its links and its clock: comments of wiretale-capture that are one
 * line, "wiretale.link/1" or "wiretale.clock/1", and words of the form key=value. A file of another
 * program has none, and a strange word is ignored. */
#ifndef WIRETALE_TRACER_FACTS_H
#define WIRETALE_TRACER_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum truth { TRUTH_UNKNOWN, TRUTH_NO, TRUTH_YES };

#define FACT_WORD_SIZE 20 /* of a word with its NUL; longer ones are ignored */

/* Zeros are unknown. */
struct tracer_facts {
    uint64_t speed_bps;
    uint32_t mtu; /* bytes */
    char duplex[FACT_WORD_SIZE], time_stamps[FACT_WORD_SIZE];
    uint8_t promiscuous, receive_offload, send_offload; /* enum truth */
    uint8_t synchronized;                               /* NO: at any time */
    bool error_unknown;                                 /* at any time */
    int64_t error_ns;                                   /* the greatest */
    bool link_told;          /* losses of the carrier would have been recorded */
    uint32_t carrier_losses; /* that began in this file */
    int64_t carrier_down_ns; /* of those that ended in it */
    int64_t carrier_lost_ns; /* the first; 0: none */
    int64_t carrier_back_ns; /* the last return; 0: none, or it is lost at the end */
    uint32_t clock_steps;
    int64_t clock_step_size_ns;                /* the largest, with its sign */
    int64_t clock_step_ns, clock_step_last_ns; /* the first and the last */
};

/* Returns whether a comment is about the clock, which all interfaces of a file share. */
bool tracer_facts_are_of_clock(const char *comment, size_t size);
/* Takes a comment of the description of an interface, or of its section. */
void tracer_facts_describe(struct tracer_facts *facts, const char *comment, size_t size);
/* Takes a comment of interface statistics, which are of `time_ns`. */
void tracer_facts_happen(struct tracer_facts *facts, const char *comment, size_t size,
                         int64_t time_ns);

#endif
