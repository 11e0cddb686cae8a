/* SPDX-License-Identifier: Apache-2.0 */
/* Detects the sequenced format of a flow from its first packets. It keeps the last 8 candidates and
 * accepts a layout if at least 3 of them agree on source, rising numbers and times. RTP needs
 * consecutive numbers (RFC 3550 A.1); iperf must carry a plausible clock, because it has no magic.
 */
#ifndef WIRETALE_SEQUENCE_TRIAL_H
#define WIRETALE_SEQUENCE_TRIAL_H

#include "sequence/formats.h"

#define SEQUENCE_KEPT_MOST 8u

/* A stored packet; packed, so that a track fits into 64 bytes. */
struct __attribute__((packed, aligned(4))) sequence_kept {
    int64_t time_ns;
    uint64_t frame;
    uint8_t payload[SEQUENCE_BYTES_MOST];
    uint16_t length; /* on the wire; UDP has no larger payload */
    uint8_t captured;
    uint8_t time_known : 1;
    uint8_t corrupt : 1; /* for a block: its pattern is wrong; checked while the whole payload was
                            available */
    uint8_t present : 1;
};

/* The latest packets, oldest first. */
struct sequence_trial {
    uint32_t count;
    struct sequence_kept kept[SEQUENCE_KEPT_MOST];
};

struct sequence_kept sequence_keep(const struct sequence_packet *packet);
bool sequence_read_kept(struct sequence_reading *reading, const struct sequence_layout *layout,
                        const struct sequence_kept *kept);

/* Returns whether any layout can read it. */
bool sequence_is_any(const struct sequence_kept *kept);
/* Returns whether any layout reads the two as packets of one source. */
bool sequence_look_alike(const struct sequence_kept *earlier, const struct sequence_kept *later);

/* Adds a packet; replaces the oldest if the list is full. */
void sequence_trial_add(struct sequence_trial *trial, const struct sequence_kept *kept);
/* Returns the layout that enough packets agree on, or NULL; `key` receives their source. */
const struct sequence_layout *sequence_trial_believed(const struct sequence_trial *trial,
                                                      uint64_t *key);

#endif
