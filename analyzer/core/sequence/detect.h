/* SPDX-License-Identifier: Apache-2.0 */
/* Detects the sequenced format of a flow from its first packets. It keeps the last 8 candidates and
 * accepts a layout if at least 3 of them agree on source, rising numbers and times. RTP needs
 * consecutive numbers (RFC 3550 A.1); iperf must carry a plausible clock, because it has no magic.
 */
#ifndef WIRETALE_SEQUENCE_TRIAL_H
#define WIRETALE_SEQUENCE_TRIAL_H

#include "sequence/formats.h"

#define SEQUENCE_KEPT_MOST 8u

/* The latest packets, oldest first. */
struct sequence_trial {
    uint32_t count;
    struct sequence_packet kept[SEQUENCE_KEPT_MOST];
};

/* Returns whether any layout can read it. */
bool sequence_is_any(const struct sequence_packet *packet);
/* Returns whether any layout reads the two as packets of one source. */
bool sequence_look_alike(const struct sequence_packet *earlier,
                         const struct sequence_packet *later);

/* Adds a packet; replaces the oldest if the list is full. */
void sequence_trial_add(struct sequence_trial *trial, const struct sequence_packet *packet);
/* Returns the layout that enough packets agree on, or NULL; `key` receives their source. */
const struct sequence_layout *sequence_trial_believed(const struct sequence_trial *trial,
                                                      uint64_t *key);

#endif
