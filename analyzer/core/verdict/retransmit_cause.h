/* SPDX-License-Identifier: Apache-2.0 */
/* Why a sender sent something again, as its acknowledgments and timers tell. */
#ifndef WIRETALE_TCP_CAUSE_H
#define WIRETALE_TCP_CAUSE_H

#include "verdict/recent_verdicts.h"

struct cause {
    enum word kind, evidence;
    uint32_t frame; /* what it answers or follows */
    const char *detail;
    int64_t silence_ns;     /* before a timeout */
    uint32_t silence_frame; /* with which it began, 0 if not known */
};

/* What is being sent again. */
struct resend {
    int64_t start, end;
    int64_t sent_ns; /* when it was last sent, or its gap was opened */
    bool again;      /* that was not the first time */
    uint32_t sent_frame;
    uint32_t since_frame; /* at sent_ns, 0 if not known */
};

/* RFC 5681: three duplicate ACKs; RFC 6675: more than two segments reported above it. */
bool cause_is_reported_lost(const struct step *step, int64_t start, int64_t end);
/* Whether the last acknowledgment reported these very bytes (SACK). */
bool cause_is_held(const struct tcp_trouble *trouble, int64_t start, int64_t end);
/* Whether anything at all was reported. */
bool cause_is_suspected(const struct step *step, int64_t end);
/* The cause that acknowledgments gave, of kind WORD_NONE without one; then that of the timers too.
 */
struct cause cause_in_acks(const struct step *step, const struct resend *resend);
struct cause cause_of(const struct step *step, const struct resend *resend);
/* Keeps in mind what the acknowledgment just taken reports lost: the sender acts on it a while
 * after it passed here. */
void cause_keep_report(struct step *step, struct tcp_trouble *trouble);
static inline void cause_note_report(struct step *step) {
    struct tcp_trouble *trouble = step->other->trouble;
    if (trouble && (trouble->sacked_count || step->stream->repeats >= DUPLICATE_ACKS))
        cause_keep_report(step, trouble);
}
/* Counts the retransmission by its cause. */
void cause_count(struct step *step, struct tcp_trouble *trouble, const struct cause *cause,
                 int64_t start);

#endif
