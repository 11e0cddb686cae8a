/* SPDX-License-Identifier: Apache-2.0 */
/* A capture filter in libpcap's language, compiled once for each link type that turns up. */
#ifndef WIRETALE_PACKET_FILTER_H
#define WIRETALE_PACKET_FILTER_H

#include "base/error.h"
#include "base/packet.h"

struct packet_filter;

/* The number that libpcap uses within itself for a LINKTYPE_ number of a file. */
int link_type_dlt(uint16_t link_type);

/* Compiles for Ethernet at once, so that a wrong expression is a usage problem before any reading;
 * NULL with problem->kind PROBLEM_USAGE and libpcap's message. */
struct packet_filter *packet_filter_open(const char *expression, struct problem *problem);
void packet_filter_close(struct packet_filter *filter);

/* Whether the packet passes. A link type for which the expression cannot be compiled passes nothing
 * and is counted: packet_filter_refused() says how many packets that was. */
bool packet_filter_pass(struct packet_filter *filter, const struct packet *packet);
uint64_t packet_filter_refused(const struct packet_filter *filter);

#endif
