/* SPDX-License-Identifier: Apache-2.0 */
/* Counts in segments on the wire (rules V13 of docs/verdicts.md).
 *
 * A host that offloads segmentation (TSO, GSO) or merging (GRO, LRO) captures super-segments: one
 * packet in place of many. Verdicts count packets as they were captured; the functions below keep
 * by how much the same counts exceed that on the wire. A stream without super-segments has no state
 * for it, because both counts are equal. */
#ifndef WIRETALE_WIRE_SEGMENTS_H
#define WIRETALE_WIRE_SEGMENTS_H

#include "tcp/segment.h"

/* Counts the current segment's payload, which must exceed seg->sender->single_max. Must be called
 * before segment_max includes it, and before any verdict. */
void note_long_payload(struct segment_context *seg);

/* The same of a segment in IP fragments: it is one on the wire, however long, because
 * super-segments are divided before IP could fragment them. */
void note_fragmented_payload(struct segment_context *seg);

/* Returns the bytes of a retransmission or loss that count in the sums, 0 if they are one segment.
 * Then it learns from it the largest packet that a link carries. */
uint64_t long_bytes(const struct tcp_stream *stream, int64_t bytes);

/* The current segment is a duplicate: its sender sent the data once, so wire_segments leave it out
 * (rule V13.4). */
void leave_out_duplicate(struct segment_context *seg);

/* Adds a result of long_bytes() to a sum if `sign` is 1, and takes it back if it is -1. */
void count_long(struct tcp_stream *stream, enum wire_counter counter, uint64_t bytes,
                uint64_t sign);

/* Returns the number of segments on the wire of such a result; 1 if the MSS is not known yet. */
uint32_t segments_of(const struct tcp_stream *stream, uint64_t bytes);

/* A router reported the MTU of a link that a packet of the stream did not fit (RFC 1191, RFC 8201),
 * whose IP header has `ip_header` bytes. */
void note_path_mtu(struct tcp_stream *stream, uint32_t mtu, uint32_t ip_header);

/* Returns the largest payload of a segment on the wire in bytes, 0 if it is unknown. The stream has
 * `payload` bytes in `packets` packets. */
uint32_t wire_mss(const struct tcp_stream *stream, uint64_t packets, uint64_t payload);

/* Returns a count of captured packets in segments on the wire, -1 if wire_mss() is unknown and the
 * capture has super-segments. */
int64_t wire_count(const struct tcp_stream *stream, enum wire_counter counter, uint64_t packets);

#endif
