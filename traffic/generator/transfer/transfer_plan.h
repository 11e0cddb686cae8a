/* SPDX-License-Identifier: Apache-2.0 */
/* A transfer as the sender asks for it: everything that both ends must know. It crosses the control
 * connection as the line "test". Amounts and rates are those of each stream. */
#ifndef WIRETALE_TRANSFER_PLAN_H
#define WIRETALE_TRANSFER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/control.h"

#define MAX_STREAMS       1024u
#define MAX_UDP_SIZE_IPV4 65507u  /* 65535 - 20 - 8 */
#define MAX_UDP_SIZE_IPV6 65527u  /* 65535 - 8: IPv6's length excludes its header (RFC 8200) */
#define MAX_CONTENT_SIZE  262144u /* of a block of a file, which must fit into a buffer */
#define DEFAULT_PORT      5010u

enum protocol { PROTOCOL_TCP, PROTOCOL_UDP };
/* The end that asks sends forward. */
enum direction_name { DIRECTION_FORWARD, DIRECTION_REVERSE, DIRECTION_BOTH };
#define DIRECTIONS 2u /* of a running transfer */
enum pacing { PACING_NONE, PACING_CONSTANT, PACING_POISSON, PACING_BURST };
enum path_mtu { PATH_MTU_SYSTEM, PATH_MTU_DO, PATH_MTU_DONT, PATH_MTU_WANT, PATH_MTU_PROBE };

/* Options of the data sockets at both ends; 0 or "" leaves the system's. */
struct socket_plan {
    uint64_t dscp_plus_1;
    uint64_t ttl;
    uint64_t path_mtu;   /* enum path_mtu */
    uint64_t buffer;     /* bytes */
    uint64_t no_delay;   /* flag */
    uint64_t mss;        /* bytes */
    char congestion[16]; /* name of the algorithm */
};

/* transfer_plan.c lists the members that are fields of the line. */
struct transfer_plan {
    uint64_t run;
    uint64_t protocol;  /* enum protocol */
    uint64_t direction; /* enum direction_name */
    uint64_t streams;
    char sizes_text[1001]; /* of blocks, in turn: "64,512,100-130:10" */
    uint64_t count;        /* blocks; of count, bytes and time, 0 is no limit */
    uint64_t bytes, time_ns;
    uint64_t pacing;           /* enum pacing */
    double rate_bps, rate_pps; /* of block bytes, or blocks; 0: not given */
    uint64_t burst;            /* blocks */
    uint64_t start_offset_ns;  /* before the first block of stream 0 */
    uint64_t stagger_ns;       /* between the first blocks of consecutive streams */
    uint64_t idle_ns;          /* silence that ends the transfer after the sender's "end" */
    uint64_t interval_ns;      /* between TCP_INFO samples */
    uint64_t unchecked;        /* flag: patterns are not compared */
    uint64_t offload;          /* flag: UDP_SEGMENT and UDP_GRO */
    uint64_t content;          /* flag: blocks contain a file */
    char file_name[241];
    struct socket_plan socket;
    /* Parsed from sizes_text by transfer_plan_complete(). */
    uint32_t *sizes;
    uint32_t size_count;
    uint32_t max_size, min_size;
};

extern const char *const protocol_names[], *const direction_names[], *const pacing_names[],
                                                                         *const path_mtu_names[];

/* Parses sizes_text and checks the plan. Returns NULL, or the reason for a failure. */
const char *transfer_plan_complete(struct transfer_plan *plan, bool ipv6);
void transfer_plan_free(struct transfer_plan *plan);

void transfer_plan_to_line(const struct transfer_plan *plan, char line[LINE_SIZE]);
/* Sets all members, absent ones to 0. Returns NULL, or the reason for a failure. */
const char *transfer_plan_from_line(struct transfer_plan *plan, const char *line);

/* Returns the bytes of block `number`. */
static inline uint32_t transfer_plan_size(const struct transfer_plan *plan, uint64_t number) {
    return plan->size_count == 1 ? plan->sizes[0] : plan->sizes[number % plan->size_count];
}

/* Upper bounds of a stream's bytes and time; 0 if the plan has no limit of this kind. */
uint64_t transfer_plan_bytes(const struct transfer_plan *plan);
uint64_t transfer_plan_duration_ns(const struct transfer_plan *plan);
/* Returns the longest gap between two blocks that must not count as silence. */
uint64_t transfer_plan_max_gap_ns(const struct transfer_plan *plan);

#endif
