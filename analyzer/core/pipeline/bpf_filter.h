/* SPDX-License-Identifier: Apache-2.0 */
/* A capture filter in libpcap's language, compiled once for each link type. */
#ifndef WIRETALE_BPF_FILTER_H
#define WIRETALE_BPF_FILTER_H

#include "base/error.h"
#include "base/packet.h"

struct bpf_filter;

/* Compiles the expression for Ethernet at once, so that an invalid one is a usage error before
 * any reading. Returns NULL with ERROR_USAGE and libpcap's message. */
struct bpf_filter *bpf_filter_open(const char *expression, struct error *error);
void bpf_filter_close(struct bpf_filter *filter);

/* Returns whether the packet passes. If the expression cannot be compiled for its link type, it
 * does not pass and is counted: bpf_filter_refused() returns the number of those packets. */
bool bpf_filter_pass(struct bpf_filter *filter, const struct packet *packet);
uint64_t bpf_filter_refused(const struct bpf_filter *filter); /* 0 for NULL */

#endif
