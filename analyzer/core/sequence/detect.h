/* SPDX-License-Identifier: Apache-2.0 */
/* The first packets of a flow, until they agree on what they are. */
#ifndef WIRETALE_SEQUENCE_TRIAL_H
#define WIRETALE_SEQUENCE_TRIAL_H

#include "sequence/formats.h"

#define SEQUENCE_KEPT_MOST 8u

/* A packet as it is kept; packed, that a track is no more than 64 bytes. */
struct __attribute__((packed, aligned(4))) sequence_kept {
    int64_t time_ns;
    uint64_t frame;
    uint8_t payload[SEQUENCE_BYTES_MOST];
    uint16_t length; /* on the wire; a UDP payload has no more */
    uint8_t captured;
    uint8_t time_known : 1;
    uint8_t corrupt : 1; /* if it is a block: its pattern was looked at when it was all there */
    uint8_t present : 1;
};

/* The newest packets, oldest first. */
struct sequence_trial {
    uint32_t count;
    struct sequence_kept kept[SEQUENCE_KEPT_MOST];
};

struct sequence_kept sequence_keep(const struct sequence_packet *packet);
bool sequence_read_kept(struct sequence_reading *reading, const struct sequence_layout *layout,
                        const struct sequence_kept *kept);

/* Whether any layout can read it. */
bool sequence_is_any(const struct sequence_kept *kept);
/* Whether any layout takes the two for packets of one source. */
bool sequence_look_alike(const struct sequence_kept *earlier, const struct sequence_kept *later);

/* Adds one, in place of the oldest when there is no room. */
void sequence_trial_add(struct sequence_trial *trial, const struct sequence_kept *kept);
/* The layout that enough of them agree on, or NULL; `key` becomes that of their source. */
const struct sequence_layout *sequence_trial_believed(const struct sequence_trial *trial,
                                                      uint64_t *key);

#endif
