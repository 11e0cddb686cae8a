/* SPDX-License-Identifier: Apache-2.0 */
/* Segments whose checksum is wrong: rules V14 of docs/verdicts.md. */
#ifndef WIRETALE_DAMAGE_H
#define WIRETALE_DAMAGE_H

#include "tcp/segment.h"

/* Notes the segment's data [start, end), of the range 0 without any; if its damage is certain, it
 * is an event. */
void note_damage(struct segment_context *seg, int64_t start, int64_t end);

/* Returns the frame of a damaged segment with data of [start, end), which is transmitted again; 0
 * without one. If its damage was only possible, the right checksum of this segment with the same
 * data proves it. */
uint32_t take_damage(struct segment_context *seg, int64_t start, int64_t end);

/* The segment acknowledges data below `position`: what was damaged and not transmitted again was
 * damaged in the capture alone. */
void settle_damage(struct segment_context *seg, int64_t position);

#endif
