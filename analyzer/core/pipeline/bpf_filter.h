/* SPDX-License-Identifier: Apache-2.0 */
/* A capture filter in libpcap's language, compiled once for each link type that turns up. */
#ifndef WIRETALE_BPF_FILTER_H
#define WIRETALE_BPF_FILTER_H

#include "base/error.h"
#include "base/packet.h"

struct bpf_filter;

/* The number that libpcap uses within itself for a LINKTYPE_ number of a file. */
int link_type_dlt(uint16_t link_type);

/* Compiles for Ethernet at once, so that a wrong expression is a usage error before any reading;
 * NULL with error->kind ERROR_USAGE and libpcap's message. */
struct bpf_filter *bpf_filter_open(const char *expression, struct error *error);
void bpf_filter_close(struct bpf_filter *filter);

/* Whether the packet passes. A link type for which the expression cannot be compiled passes nothing
 * and is counted: bpf_filter_refused() says how many packets that was. */
bool bpf_filter_pass(struct bpf_filter *filter, const struct packet *packet);
uint64_t bpf_filter_refused(const struct bpf_filter *filter);

#endif
