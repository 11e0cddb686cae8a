/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of a packet, one by one. */
#ifndef WIRETALE_DECODE_H
#define WIRETALE_DECODE_H

#include "decode/step.h"

/* One header of a packet, as decode_packet() went through it. */
struct decode_step {
    enum next_header kind;
    uint8_t protocol; /* of the IP header before it, 0 without one */
    bool fragment;    /* that IP packet is one */
    uint32_t offset;  /* of the header, in bytes of the packet */
    uint32_t end;     /* of the layer around it on the wire */
    uint32_t behind; /* offset at which decoding went on or stopped; equal to `offset` if the header
                        could not be read, and at a TCP, SCTP, DCCP or ICMP header */
};
#define DECODE_STEPS_MAX 96 /* more than PATH_DEPTH_MAX and SHIMS_MAX allow */

/* Lists the headers of a packet from the link to the transport header and returns their number.
 * Inside UDP they are listed only if they lead to an IP packet. */
size_t decode_steps(const struct packet *packet, struct decode_step steps[DECODE_STEPS_MAX]);

#endif
