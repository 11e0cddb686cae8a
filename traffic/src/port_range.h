/* SPDX-License-Identifier: Apache-2.0 */
/* Local ports, as --data-ports of both sides says them. */
#ifndef WIRETALE_PORT_RANGE_H
#define WIRETALE_PORT_RANGE_H

#include <stdio.h>

#include "endpoint.h"

static inline bool take_port_range(struct local_plan *local, const char *value,
                                   const char **expected) {
    unsigned first, last;
    char rest;
    *expected = "two ports as in 40000-40100";
    if (sscanf(value, "%5u-%5u%c", &first, &last, &rest) != 2 || !first || last > 65535 ||
        first > last)
        return false;
    local->port_first = (uint16_t)first;
    local->port_last = (uint16_t)last;
    return true;
}

#endif
