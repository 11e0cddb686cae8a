/* SPDX-License-Identifier: Apache-2.0 */
/* A record of a capture file, and the metadata of a packet that counters need. */
#ifndef WIRETALE_PACKET_H
#define WIRETALE_PACKET_H

#include <stdbool.h>
#include <stdint.h>

/* A simple packet block of pcapng carries no time; other blocks may hold a number that cannot be
 * one. Times from about 1896 to 2116 are accepted, so that no difference of two exceeds 64 bits. */
#define TIME_UNKNOWN      INT64_MIN
#define TIME_OUT_OF_RANGE (INT64_MIN + 1)
#define TIME_LEAST_NS     (-(INT64_C(1) << 61))
#define TIME_MOST_NS      (INT64_C(1) << 62)

struct packet {
    int64_t time_ns;           /* ns since the epoch, or TIME_UNKNOWN, or TIME_OUT_OF_RANGE */
    uint64_t frame;            /* 1-based within its file, as Wireshark numbers frames */
    const uint8_t *data;       /* `captured` bytes; valid until the next merged_input_read() */
    uint32_t captured;         /* bytes in the file, without an FCS that the file declares */
    uint32_t length;           /* bytes on the wire (without FCS) */
    uint32_t interface;        /* index in merged_input_interfaces() */
    uint16_t link_type;        /* LINKTYPE_* as in the file */
    uint16_t shard : 15;       /* enum packet_shard (format/packet_origin.h), 0 in ordinary files */
    uint16_t with_options : 1; /* of pcapng: pcapng_packet_options() reads them */
    const struct process *process; /* that sent or received it, NULL if the file names none */
};

struct process; /* input/interfaces.h */

/* A port of the capture: a hash of the link addresses, and low bits of the interface, which alone
 * show no other place, because rotated files have interfaces of their own. */
#define PORT_BITS           12u
#define PORT_INTERFACE_BITS 3u
#define NO_PORT             UINT16_MAX
static inline bool same_link(uint16_t one_port, uint16_t other_port) {
    return one_port >> PORT_INTERFACE_BITS == other_port >> PORT_INTERFACE_BITS;
}

static inline bool packet_is_timed(const struct packet *packet) {
    return packet->time_ns > TIME_OUT_OF_RANGE;
}

#define LINKTYPE_ETHERNET 1
#define ETHERNET_LEAST    60 /* bytes of a frame without FCS; shorter ones are padded (IEEE 802.3) */
#define ETHERNET_AROUND   24 /* preamble and delimiter 8, FCS 4, gap 12 */

/* Returns the bytes that a frame takes on an Ethernet link, so that rates compare with the link
 * rate. Other link types count as captured, since their overhead is unknown. */
static inline uint32_t wire_bytes_of(uint16_t link_type, uint32_t length) {
    if (link_type != LINKTYPE_ETHERNET || length > UINT32_MAX - ETHERNET_AROUND)
        return length;
    return (length < ETHERNET_LEAST ? ETHERNET_LEAST : length) + ETHERNET_AROUND;
}

/* What the checksum of a TCP, UDP or ICMP packet shows (flow/checksum.h). */
enum packet_checksum {
    CHECKSUM_UNVERIFIED, /* cut, a fragment, none, or of another protocol */
    CHECKSUM_RIGHT,
    CHECKSUM_OFFLOADED, /* not filled in: it was captured before the adapter computed it */
    CHECKSUM_WRONG
};

/* Whether a packet was damaged before it was captured. */
enum packet_damage {
    DAMAGE_NONE,     /* or its checksum was not verified */
    DAMAGE_POSSIBLE, /* its checksum is wrong, and so may be all of the direction */
    DAMAGE_CERTAIN   /* it is wrong, and those of other packets of the direction are right */
};

#define HTTP_UNTIL_CLOSE UINT32_MAX /* a response that only the end of its connection ends */
#define HTTP_ASKS_HEADER 1u         /* HEAD or CONNECT: the response has no content */

/* Metadata of a packet, enough to count it: a fragment that waits for the first one of its
 * datagram is kept as this alone. */
struct packet_info {
    int64_t time_ns; /* ns; of the packet before if the file has no time */
    uint64_t frame;
    uint32_t capture; /* index of the input interface */
    uint32_t wire_bytes;
    uint32_t ip_bytes;
    uint32_t payload_bytes; /* bytes of transport payload in this packet */
    union {
        /* Bytes of text in a RST: not part of the stream (RFC 9293 section 3.5.3). */
        uint32_t reset_bytes;
        /* If there is a payload: length of the HTTP message that begins with it, HTTP_UNTIL_CLOSE,
         * or 0 if it is not known. */
        uint32_t message_bytes;
    };
    union {
        uint16_t fragment_offset; /* of a fragment */
        uint16_t http_status;     /* of another: that of the status line with which the payload
                                     begins, HTTP_ASKS_HEADER, or 0 */
    };
    uint16_t port; /* of the capture, PORT_BITS bits */
    bool fragment : 1;
    bool payload_known : 1; /* payload_bytes is valid: the headers before it were read */
    bool copied : 1;        /* a fragment whose bytes were all seen before */
    uint8_t checksum : 2;   /* enum packet_checksum */
    bool time_known : 1;
    bool wlan_retry : 1; /* an 802.11 frame that its sender repeats */
    uint8_t ids_before;  /* IPv4 IDs right before ip_id that are in the host's packets before, up to
                            255 of them (local/host_ids.h) */
    uint8_t ttl;
    uint8_t traffic_class;
    uint16_t clock_step_us; /* one tick of the clock that stamped it, 0 if that is fine */
    uint16_t ip_id;         /* IPv4 identification; 0 proves nothing */
};

#endif
