/* SPDX-License-Identifier: Apache-2.0 */
/* The speed of the link that an end's data goes over: a measured rate above it is none of the
 * wire's. */
#ifndef WIRETALE_LINK_RATE_H
#define WIRETALE_LINK_RATE_H

#include "transfer/endpoint.h"

/* Names the rate of an emulated link (10M, 1Gbit), of which the interface knows nothing. */
#define LINK_RATE_VARIABLE "WIRETALE_LINK_RATE"

/* bit/s of the emulated link, else of the interface that has this address; 0: unknown. */
uint64_t link_rate_bps(const union endpoint *own);

#endif
