/* SPDX-License-Identifier: Apache-2.0 */
/* An interface that the link receives frames from and sends frames to, by a packet socket. The
 * kernel stamps each arrival, so that a thread that wakes up late does not delay the packet. */
#ifndef WIRETALE_LINK_LINK_PORT_H
#define WIRETALE_LINK_LINK_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packet/link_packet.h"

#define PORT_BATCH 32u /* frames of one system call */

struct link_port {
    const char *name; /* of the interface */
    int socket;
    /* Frames whose checksum the sending host left to its adapter. The link delivers them as they
     * are, so a capture shows a wrong checksum. */
    uint64_t unfinished;
};

struct port_frame {
    uint8_t *bytes; /* room for MAX_FRAME */
    uint32_t size;
    int64_t in_ns; /* since the epoch; 0: no stamp */
};

/* Opens the socket in promiscuous mode. If that is impossible, exits with one line. */
void link_port_open(struct link_port *port, const char *name);

/* Receives up to PORT_BATCH frames without waiting. Returns their number. */
unsigned link_port_receive(struct link_port *port, struct port_frame *frames);

/* Sends frames of packets. Returns the number of those that precede the first that was refused. */
unsigned link_port_send(const struct link_port *port, struct link_packet *const *packets,
                        unsigned count);
/* Returns whether the frame was sent. */
bool link_port_send_frame(const struct link_port *port, const uint8_t *frame, uint32_t size);

/* Returns the frames that the kernel dropped since the previous call, because the link was too
 * slow. */
uint64_t link_port_overruns(const struct link_port *port);

#endif
