/* SPDX-License-Identifier: Apache-2.0 */
/* Local ports, as --data-ports of both sides says them. */
#ifndef WIRETALE_PORT_RANGE_H
#define WIRETALE_PORT_RANGE_H

#include <stdio.h>
#include <string.h>

#include "transfer/endpoint.h"
#include "transfer/units.h"

static inline bool take_port_range(struct local_plan *local, const char *value,
                                   const char **expected) {
    uint64_t first, last;
    char begin[8] = "";
    const char *end = strchr(value, '-');
    *expected = "two ports from 1 to 65535, the lower one first, as in 40000-40100";
    if (!end || end - value >= (ptrdiff_t)sizeof begin)
        return false;
    memcpy(begin, value, (size_t)(end - value));
    if (!units_port(begin, &first) || !units_port(end + 1, &last) || first > last)
        return false;
    local->port_first = (uint16_t)first;
    local->port_last = (uint16_t)last;
    return true;
}

#endif
