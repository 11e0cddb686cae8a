/* SPDX-License-Identifier: Apache-2.0 */
/* What `find` is asked for, and whether a packet is it. All conditions must hold. */
#ifndef WIRETALE_CAPTURE_QUERY_H
#define WIRETALE_CAPTURE_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "index/addresses.h"
#include "index/records.h"

#define HOSTS_MAX   16u
#define PORTS_MAX   16u
#define FOLDERS_MAX 64u

struct host {
    struct address address;
    unsigned prefix; /* bits that count */
};

struct query {
    const char *folders[FOLDERS_MAX];
    uint64_t folder_count;
    struct host hosts[HOSTS_MAX];
    uint64_t host_count;
    struct address ports[PORTS_MAX];
    uint64_t port_count;
    int64_t start_ns, end_ns; /* from, and before which */
    const char *filter;       /* NULL: none */
    const char *kept;         /* a span that a capture keeps: its time */
    const char *release;      /* a span to let go; nothing is searched */
    bool spans;               /* list spans; nothing is searched */
    const char *output;       /* NULL: only count */
    bool overwrite, json, quiet;
};

/* Reads the command line after `find`. Exits with one line if it is wrong. */
void query_read(struct query *query, int count, char **arguments);

/* Exits with one line if libpcap does not take the filter. */
void query_check_filter(const struct query *query);

bool query_has(const struct query *query, const struct record *packet);

/* Returns whether all packets of a host have one address, which an index can look up. */
static inline bool host_is_one(const struct host *host) {
    return host->prefix == 8u * host->address.size;
}

#endif
