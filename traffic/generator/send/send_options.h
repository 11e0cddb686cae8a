/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `send`. */
#ifndef WIRETALE_SEND_OPTIONS_H
#define WIRETALE_SEND_OPTIONS_H

#include "session/exchange.h"

struct send_options {
    const char *host;
    const char *key, *file, *size, *pattern, *turns; /* NULL: not given */
    uint64_t port;
    uint64_t wait_ns;    /* to repeat attempts for */
    uint64_t connect_ns; /* of one attempt at one address */
    struct transfer_plan plan;
    struct local_plan local;
    struct exchange_options exchange;
    uint64_t family; /* AF_UNSPEC, AF_INET, AF_INET6 */
    bool is_poisson;
};

/* Reads the command line. Exits with an error if an option is wrong or contradicts another. */
void send_options_read(struct send_options *options, int argc, char **argv);

#endif
