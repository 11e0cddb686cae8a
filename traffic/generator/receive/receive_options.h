/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `wiretale-traffic receive`. */
#ifndef WIRETALE_RECEIVE_OPTIONS_H
#define WIRETALE_RECEIVE_OPTIONS_H

#include "transfer/endpoint.h"

struct receive_options {
    const char *key, *output_dir;
    uint64_t port, family, tests, parallel, max_streams;
    uint64_t max_bytes, max_ns, idle_ns, interval_ns, buffer;
    struct local_plan local;
    bool json, quiet, to_stdout, overwrite;
    char format;
};

/* Fills `options`. If one is wrong, exits with one line on standard error. */
void receive_options_read(struct receive_options *options, int argc, char **argv);

#endif
