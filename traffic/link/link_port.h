/* SPDX-License-Identifier: Apache-2.0 */
/* An interface that the link takes frames from and sends them to: a packet socket. The kernel
 * stamps a frame's arrival, so that a late wake-up does not make the packet late. */
#ifndef WIRETALE_LINK_LINK_PORT_H
#define WIRETALE_LINK_LINK_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link_packet.h"

#define PORT_BATCH 32u

struct link_port {
    const char *name;
    int socket;
    uint64_t unfinished; /* frames whose checksum the sender left to the card: captures would show a
                            wrong one */
};

struct port_frame {
    uint8_t *bytes; /* room for FRAME_MOST */
    uint32_t size;
    int64_t in_ns; /* since the epoch */
};

/* Ends the program with one line when it cannot. */
void link_port_open(struct link_port *port, const char *name);

/* Up to PORT_BATCH frames that are there; returns how many. */
unsigned link_port_receive(struct link_port *port, struct port_frame *frames);

/* Sends the packets' frames; returns how many were sent, which is all of them or those before the
 * first refused. */
unsigned link_port_send(const struct link_port *port, struct link_packet *const *packets,
                        unsigned count);

bool link_port_send_frame(const struct link_port *port, const uint8_t *frame, uint32_t size);

/* Frames that the kernel dropped because the link was too slow, since the last time it was asked.
 */
uint64_t link_port_overruns(const struct link_port *port);

#endif
