/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options that both sides have. */
#ifndef WIRETALE_COMMON_OPTIONS_H
#define WIRETALE_COMMON_OPTIONS_H

#include <stdio.h>
#include <string.h>

#include "endpoint.h"
#include "units.h"

#define FORMAT_WANTED "one of k K m M g G"

static inline bool format_is_right(const char *value) {
    return strlen(value) == 1 && units_rate_unit(value[0]);
}

static inline bool take_port_range(struct local_plan *local, const char *value,
                                   const char **wanted) {
    unsigned first, last;
    char rest;
    *wanted = "two ports as in 40000-40100";
    if (sscanf(value, "%5u-%5u%c", &first, &last, &rest) != 2 || !first || last > 65535 ||
        first > last)
        return false;
    local->port_first = (uint16_t)first;
    local->port_last = (uint16_t)last;
    return true;
}

#endif
