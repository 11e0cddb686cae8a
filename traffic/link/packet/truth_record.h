/* SPDX-License-Identifier: Apache-2.0 */
/* The truth record: the fate of one packet, as the truth file holds it.
 *
 * The file is a header of 64 bytes and records of 128, all little-endian. A record is written when
 * the fate is known, so records are in the order of fates. `wiretale-link --print-truth FILE`
 * prints the file as CSV.
 *
 *     header  OFFSET SIZE
 *                  0    8  magic "WTTRUTH1"
 *                  8    4  bytes of this header, 64
 *                 12    4  bytes of a record, 128
 *                 16    8  seed
 *                 24    8  start, ns since the epoch
 *                 32   32  0
 *
 *     record  OFFSET SIZE
 *                  0    8  number in its direction, from 1; 0: an ICMP message of the link
 *                  8    8  time of arrival by the kernel's stamp, ns since the epoch
 *                 16    8  time right after it was sent; 0: it never was
 *                 24    8  time at which it was due; 0: none
 *                 32    8  block sequence
 *                 40    4  TCP sequence number
 *                 44    4  TCP acknowledgment number
 *                 48    4  block run
 *                 52    4  packets in the link's buffer at its arrival, with the one being sent
 *                 56    4  bytes of those, with overhead
 *                 60    4  bytes of the IP packet at its arrival
 *                 64   16  source address (IPv4: the first 4)
 *                 80   16  destination address
 *                 96    4  IP ID (IPv6: of the fragment header)
 *                100    2  source port
 *                102    2  destination port
 *                104    2  block stream
 *                106    2  bits flipped
 *                108    4  bytes of TCP or UDP payload
 *                112    2  fragment offset, bytes / 8
 *                114    1  direction: 0 from the first interface to the second, 1 back
 *                115    1  fate (enum fate)
 *                116    1  IP protocol
 *                117    1  IP version; 0: not an IP packet
 *                118    1  TCP flags
 *                119    1  copies that left
 *                120    1  flags (enum truth_bits)
 *                121    1  fate that a mark (RFC 3168) spared the packet; 0: not marked
 *                122    6  0
 */
#ifndef WIRETALE_LINK_TRUTH_RECORD_H
#define WIRETALE_LINK_TRUTH_RECORD_H

#include <stdint.h>

enum fate {
    FATE_DELIVERED,
    FATE_RANDOM,   /* lost by `loss` */
    FATE_GILBERT,  /* lost by `gilbert` */
    FATE_PERIODIC, /* lost by `periodic` */
    FATE_LISTED,   /* lost by `drop` */
    FATE_SPAN,     /* lost by `loss-span` */
    FATE_OUTAGE,
    FATE_MTU,   /* larger than `mtu` */
    FATE_QUEUE, /* the queue was full */
    FATE_RED,
    FATE_CODEL,
    FATE_UNFINISHED, /* inside when the link ended */
    FATE_MEMORY,     /* dropped by the link's own bound, not by a setting */
    FATE_SEND_ERROR, /* refused by the interface */
    FATE_MADE,       /* an ICMP message of the link */
    FATE_PIE,
    FATES,
};

extern const char *const fate_names[FATES];

enum truth_bits {
    TRUTH_REORDERED = 1, /* held back to be overtaken */
    TRUTH_PORTS = 2,     /* ports are known */
    TRUTH_TCP = 4,       /* TCP numbers and flags are known */
    TRUTH_BLOCK = 8,     /* block run, stream and sequence are known */
    TRUTH_FRAGMENT = 16,
    TRUTH_COPIED = 32, /* by the link */
};

struct truth_header {
    char magic[8];
    uint32_t header_bytes;
    uint32_t record_bytes;
    uint64_t seed;
    int64_t start_ns;
    uint8_t zero[32];
};

struct truth_record {
    uint64_t index;
    int64_t in_ns;
    int64_t out_ns;
    int64_t due_ns;
    uint64_t block_sequence;
    uint32_t tcp_sequence;
    uint32_t tcp_ack;
    uint32_t block_run;
    uint32_t queue_packets;
    uint32_t queue_bytes;
    uint32_t ip_bytes;
    uint8_t source[16];
    uint8_t destination[16];
    uint32_t ip_id;
    uint16_t source_port;
    uint16_t destination_port;
    uint16_t block_stream;
    uint16_t corrupted_bits;
    uint32_t payload_bytes;
    uint16_t fragment_offset;
    uint8_t direction;
    uint8_t fate;
    uint8_t protocol;
    uint8_t ip_version;
    uint8_t tcp_flags;
    uint8_t copies;
    uint8_t bits;
    uint8_t marked;
    uint8_t zero[6];
};

_Static_assert(sizeof(struct truth_header) == 64, "the file's layout");
_Static_assert(sizeof(struct truth_record) == 128, "the file's layout");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file's layout is this machine's");

#define TRUTH_MAGIC "WTTRUTH1"

#endif
