/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts on segments that are not simply the next ones: sent again, reordered, lost, and where;
 * docs/verdicts.md has the rules. */
#ifndef WIRETALE_TCP_JUDGE_H
#define WIRETALE_TCP_JUDGE_H

#include "verdict/recent_verdicts.h"

/* Bytes [start, end) of the segment fill a gap. Returns whether they were sent again (not
 * reordered), and so counted as a retransmission. */
bool judge_fill(struct step *step, int64_t start, int64_t end, const struct gap_fill *fill);
/* Bytes [start, end), SYN or FIN that had been seen before; `detail` may be NULL. Returns false for
 * a copy of what was seen, which is nothing that was sent again. */
bool judge_again(struct step *step, int64_t start, int64_t end, const char *detail);
/* Bytes [start, end) below the first that the capture holds: its acknowledgments may have asked for
 * them. */
void judge_from_before(struct step *step, int64_t start, int64_t end);
/* The acknowledgment of the other stream is about to rise. */
void judge_note_acked(struct step *step);
struct copy {
    bool mirror; /* made by the capture; else by the network */
    enum copy_doubt doubt;
    uint32_t frame; /* of the first */
};
/* A copy of a packet with data in [start, end). */
void judge_copy(struct step *step, int64_t start, int64_t end, const struct copy *copy);
/* New data or a FIN in order, `pause` ns after what was sent before it: a loss may hide in a pause
 * of a timeout. */
void judge_long_pause(struct step *step, int64_t pause, int64_t length, bool fin);
static inline void judge_pause(struct step *step, const struct tcp_stream *stream, int64_t length,
                               bool fin) {
    int64_t pause = step->seen->time_ns - stream->last_data_ns;
    if (pause >= TIMEOUT_LEAST_NS) /* what is less is less than any timeout */
        judge_long_pause(step, pause, length, fin);
}
/* The acknowledgment's SACK blocks (RFC 2018), the first of which may report a duplicate (RFC
 * 2883).
 */
void judge_sack(struct step *step, int64_t position);
/* A repeated acknowledgment of the other stream: without SACK it may answer what had been sent in
 * vain. */
void judge_repeated(struct step *step);
/* The other stream, which is unsettled, was acknowledged up to `position`: an echoed timestamp
 * tells which sending of a segment arrived (RFC 3522). */
void judge_acknowledged(struct step *step, int64_t position);

#endif
