/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of packets: by a mirror port (the capture's own doing), or by the network. */
#ifndef WIRETALE_TCP_COPY_H
#define WIRETALE_TCP_COPY_H

#include "tcp_step.h"

#define MIRROR_GAP_NS 1000000 /* a mirror port's copy comes within */
#define HASTE_GAP_NS  500000  /* sooner than any timer */

/* Whether the segment is a copy of one of the last packets; then it is counted, and is nothing
 * else. Others are remembered for their copies. `doubtful`: it brings nothing new by its numbers.
 */
bool tcp_copy_take(struct step *step, bool doubtful);

#endif
