/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of several devices in the order of their packets' times. A device that is silent is waited
 * for only until it has said how far it has been read, or until waiting would cost packets. */
#ifndef WIRETALE_MERGE_H
#define WIRETALE_MERGE_H

#include "output.h"

struct merge {
    struct chunk_queue *queue;
    struct output *output;
    struct lane lanes[DEVICES_MAX];
    size_t position[DEVICES_MAX];       /* in the first chunk of each lane */
    uint32_t packets_done[DEVICES_MAX]; /* of it */
};

/* Writes what may be written now; true when anything was. */
bool merge_write(struct merge *merge);
bool merge_is_empty(const struct merge *merge);
bool merge_has_ended(const struct merge *merge);

#endif
