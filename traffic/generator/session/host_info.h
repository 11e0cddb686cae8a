/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRETALE_HOST_INFO_H
#define WIRETALE_HOST_INFO_H

#include "transfer/endpoint.h"

/* Environment variable with the rate of an emulated link (10M, 1Gbit), because the interface of a
 * lab's host reports none. */
#define LINK_RATE_VARIABLE "WIRETALE_LINK_RATE"

/* Returns bit/s: LINK_RATE_VARIABLE, else the rate of the interface with address `own`; 0 if
 * unknown. A measured rate above it is not a rate of the wire. */
uint64_t host_link_bps(const union endpoint *own);

/* Returns the datagrams that all UDP sockets of this host dropped so far because their buffers were
 * full (RcvbufErrors of IPv4 and IPv6); -1 if unknown. */
int64_t host_udp_drops(void);

#endif
