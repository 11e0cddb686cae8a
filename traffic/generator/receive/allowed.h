/* SPDX-License-Identifier: Apache-2.0 */
/* Networks from which tests are accepted: "192.0.2.0/24", "2001:db8::/32" or an address. */
#ifndef WIRETALE_ALLOWED_H
#define WIRETALE_ALLOWED_H

#include "transfer/endpoint.h"

#define MAX_ALLOWED 64u

struct allowed_network {
    int family;
    uint8_t address[16]; /* in network byte order; IPv4 takes the first 4 */
    unsigned prefix;     /* bits */
};

struct allowed_networks {
    struct allowed_network list[MAX_ALLOWED];
    unsigned count; /* 0: all are allowed */
};

/* Adds a network to a struct allowed_networks (common/options.h). Returns false if the text is
 * none, if it has bits behind its prefix, or if the list is full. */
bool allowed_networks_take(void *networks, const char *text, const char **expected);

bool allowed_networks_contain(const struct allowed_networks *networks, const union endpoint *peer);

#endif
