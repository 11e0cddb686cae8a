/* SPDX-License-Identifier: Apache-2.0 */
/* The packets table as the report's page reads it: one stream of numbers for each column.
 *
 * A number is a zigzag varint (as in Protocol Buffers). What the packet before in the same flow and
 * direction foretells is left out, so that a steady transfer costs a few bytes a packet:
 *
 *   STREAM    A NUMBER FOR               IS
 *   who       each packet                2 * place of the flow in the list given + direction
 *   time      each packet                ns since the packet before (the first: since `base_ns`)
 *   frame     each packet                frame number less that of the packet before
 *   capture   each packet                interfaces row
 *   known     each packet                which of the following it has, bits of enum packet_known
 *   size      each packet                payload less the payload before
 *   sequence  PACKET_SEQUENCE            position less the end of the segment before
 *   ack       PACKET_ACK                 position less the one before
 *   window    PACKET_WINDOW              bytes less those before
 *   flags     PACKET_FLAGS               less those before
 *   unique    PACKET_REPEATED            bytes seen for the first time (else: all of the payload)
 *   rtt       PACKET_RTT                 ns
 *   offset    PACKET_FRAGMENT            bytes
 *   sack      PACKET_SACK                start of the first SACK block less the acknowledgment
 *   sacked    PACKET_SACK                bytes of that block
 *
 * "Before" is the packet before in the same flow and direction but for time and frame, 0 at first.
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
    PACKET_SACK = 128, /* only with PACKET_ACK */
};

struct packet_streams {
    struct {
        uint8_t *bytes;
        size_t used, room;
    } streams[STREAM_COUNT];
    uint64_t packets; /* packed: those with a time, of a flow in the list */
};

extern const char *const packet_stream_names[STREAM_COUNT];

/* Packs the rows of `count` flows. False without memory; free the streams in any case. */
bool packet_pack(const struct table *packets, const uint32_t *flows, size_t count, int64_t base_ns,
                 struct packet_streams *out);
void packet_streams_free(struct packet_streams *streams);

#endif
