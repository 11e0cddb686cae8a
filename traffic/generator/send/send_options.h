/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `wiretale-traffic send`. */
#ifndef WIRETALE_SEND_OPTIONS_H
#define WIRETALE_SEND_OPTIONS_H

#include "transfer/endpoint.h"
#include "transfer/transfer_plan.h"

struct send_options {
    const char *host, *key, *file, *size;
    uint64_t port, wait_ns, interval_ns, connect_ns;
    struct transfer_plan plan;
    struct local_plan local;
    uint64_t family;
    bool json, quiet, is_poisson;
    char format;
};

/* Fills `options`. If one is wrong, exits with EXIT_USAGE and one line on standard error. */
void send_options_read(struct send_options *options, int argc, char **argv);

#endif
