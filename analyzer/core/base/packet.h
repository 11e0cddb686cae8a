/* SPDX-License-Identifier: Apache-2.0 */
/* One record of a capture file, as every later stage sees it. */
#ifndef WIRETALE_PACKET_H
#define WIRETALE_PACKET_H

#include <stdint.h>

/* A simple packet block of pcapng carries no time. */
#define TIME_UNKNOWN INT64_MIN

struct packet {
    int64_t time_ns;     /* since the epoch, or TIME_UNKNOWN */
    uint64_t frame;      /* 1-based within its file, as Wireshark numbers frames */
    const uint8_t *data; /* `captured` bytes; valid until the next capture_set_read() */
    uint32_t captured;   /* bytes in the file (without an FCS that the file says it holds) */
    uint32_t length;     /* bytes on the wire (without FCS) */
    uint32_t interface;  /* index for capture_set_interface() */
    uint16_t link_type;  /* LINKTYPE_* as in the file */
};

#endif
