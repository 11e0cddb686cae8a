/* SPDX-License-Identifier: Apache-2.0 */
/* Packs the packets table for the report's page: one stream of numbers per column.
 *
 * A number is a zigzag varint (as in Protocol Buffers). Values that the previous packet of the flow
 * and direction predicts are omitted, so that a steady transfer takes a few bytes per packet:
 *
 *   STREAM    A NUMBER FOR               IS
 *   who       each packet                2 * index of the flow in the given list + direction
 *   time      each packet                ns since the previous packet (the first: since `base_ns`)
 *   frame     each packet                frame number minus the previous one
 *   capture   each packet                interfaces row
 *   known     each packet                bits of enum packet_known: which of the following exist
 *   size      each packet                payload minus the previous one
 *   sequence  PACKET_SEQUENCE            position minus the end of the previous segment
 *   ack       PACKET_ACK                 position minus the previous one
 *   window    PACKET_WINDOW              bytes minus the previous ones
 *   flags     PACKET_FLAGS               minus the previous ones
 *   unique    PACKET_REPEATED            new bytes (if absent: all of the payload)
 *   rtt       PACKET_RTT                 ns
 *   offset    PACKET_FRAGMENT            bytes
 *   sack      PACKET_SACK                start of the first SACK block minus the ACK
 *   sacked    PACKET_SACK                bytes of that block
 *
 * "Previous" means the previous packet of the same flow and direction, except for time and frame; 0
 * if there is no such packet.
 */
#ifndef WIRETALE_PACKET_PACK_H
#define WIRETALE_PACKET_PACK_H

#include "table/table.h"

/* clang-format off */
#define PACKET_STREAMS(X)                                                                          \
    X(who) X(time) X(frame) X(capture) X(known) X(size) X(sequence) X(ack) X(window) X(flags)      \
    X(unique) X(rtt) X(offset) X(sack) X(sacked)
/* clang-format on */

enum packet_stream {
#define X(name) STREAM_##name,
    PACKET_STREAMS(X)
#undef X
        STREAM_COUNT
};

enum packet_known {
    PACKET_SEQUENCE = 1,
    PACKET_ACK = 2,
    PACKET_WINDOW = 4,
    PACKET_FLAGS = 8,
    PACKET_REPEATED = 16,
    PACKET_RTT = 32,
    PACKET_FRAGMENT = 64,
    PACKET_SACK = 128, /* requires PACKET_ACK */
};

struct packet_streams {
    struct {
        uint8_t *bytes;
        size_t used, room;
    } streams[STREAM_COUNT];
    uint64_t packets; /* packed packets: those with a time stamp, of a flow in the list */
};

extern const char *const packet_stream_names[STREAM_COUNT];

/* Packs the rows of `count` flows. Returns false if memory is exhausted; the streams must be freed
 * in either case. */
bool packet_pack(const struct table *packets, const uint32_t *flows, size_t count, int64_t base_ns,
                 struct packet_streams *out);
void packet_streams_free(struct packet_streams *streams);

#endif
