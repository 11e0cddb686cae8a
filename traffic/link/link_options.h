/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of wiretale-link. */
#ifndef WIRETALE_LINK_LINK_OPTIONS_H
#define WIRETALE_LINK_LINK_OPTIONS_H

#include "icmp_too_big.h"
#include "link_spec.h"

struct link_options {
    const char *interfaces[2];
    struct link_spec specs[2]; /* of each direction */
    uint64_t seed;
    const char *truth_path;
    const char *print_path;
    int64_t spin_ns;
    uint64_t priority; /* of SCHED_RR; 0: as everybody else */
    struct link_addresses addresses;
    bool overwrite; /* the truth may replace a capture */
    bool json;
};

/* Ends the program with code 2 and one line when something is wrong; with 0 after --help and
 * --version. `options` refers to the texts in `argv`. */
void link_options_parse(struct link_options *options, int argc, char **argv);

#endif
