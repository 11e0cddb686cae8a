/* SPDX-License-Identifier: Apache-2.0 */
/* Compression and index of files that were published without, because these failed or were put off.
 * The compressed file takes the place of the plain one: in the ring, and for --on-close. */
#ifndef WIRETALE_CAPTURE_RESUME_H
#define WIRETALE_CAPTURE_RESUME_H

#include "finish/publisher.h"
#include "ring/ring.h"

/* Finishes a published file, and ends the job and the descriptor of its directory. `until_ns` is
 * the end of the attempt; 0: it is stopped, and is no failure. */
void resume_finishing(struct publisher *publisher, struct ring *ring, struct job *job,
                      int directory_fd, const _Atomic int64_t *until_ns);

#endif
