/* SPDX-License-Identifier: Apache-2.0 */
/* The longest silences of a stream that a retransmission timer ended, by their frames: evidence for
 * the sum in tcp_trouble.timeout_ns. */
#ifndef WIRETALE_TCP_STALL_H
#define WIRETALE_TCP_STALL_H

#include "verdict/recent_verdicts.h"

#define STALLS_MOST     5u
#define STALLS_TEXT_MAX (STALLS_MOST * 24u)

/* A silence of `ns` that began with frame `from` (0: not known, the frame of this direction is
 * looked up) and that the segment at hand ended. */
void stall_note(const struct step *step, struct tcp_trouble *trouble, int64_t ns, uint32_t from);

/* As in `340-341, 90-120`: frames before and after, the longest first; "" without any. */
void stall_text(const struct tcp_trouble *trouble, char text[STALLS_TEXT_MAX]);

void stall_free(struct tcp_trouble *trouble, struct allowance *allowance);

#endif
