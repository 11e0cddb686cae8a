/* SPDX-License-Identifier: Apache-2.0 */
/* What a test is: all that the sender asks for and both ends have to know. */
#ifndef WIRETALE_TRANSFER_PLAN_H
#define WIRETALE_TRANSFER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_STREAMS       1024u
#define MAX_UDP_SIZE_IPV4 65507u /* 65535 - 20 - 8 */
#define MAX_UDP_SIZE_IPV6 65527u /* 65535 - 8: the length of IPv6 does not count its header */
#define MAX_CONTENT_SIZE  262144u
#define DEFAULT_PORT      5010u

enum protocol { PROTOCOL_TCP, PROTOCOL_UDP };
enum direction_name { DIRECTION_FORWARD, DIRECTION_REVERSE, DIRECTION_BOTH };
#define DIRECTIONS 2u /* forward and reverse */
enum pacing { PACING_NONE, PACING_CONSTANT, PACING_POISSON, PACING_BURST };
enum path_mtu { PATH_MTU_SYSTEM, PATH_MTU_DO, PATH_MTU_DONT, PATH_MTU_WANT, PATH_MTU_PROBE };

/* Options of the data sockets at both ends; 0 or "": the system's. */
struct socket_plan {
    uint64_t dscp_plus_1;
    uint64_t ttl;
    uint64_t path_mtu; /* enum path_mtu */
    uint64_t buffer;   /* bytes */
    uint64_t no_delay;
    uint64_t mss;
    char congestion[16];
};

/* Amounts and rates are of each stream. All members that travel are listed in test_plan.c. */
struct transfer_plan {
    uint64_t run;
    uint64_t protocol;  /* enum protocol */
    uint64_t direction; /* enum direction_name, as the sender that asks sees it */
    uint64_t streams;
    char sizes_text[1001];
    uint64_t count, bytes, time_ns; /* 0: not the limit */
    uint64_t pacing;                /* enum pacing */
    double rate_bps, rate_pps;      /* 0: not given */
    uint64_t burst;                 /* blocks */
    uint64_t start_offset_ns, stagger_ns;
    uint64_t idle_ns;
    uint64_t interval_ns; /* of samples */
    uint64_t unchecked;   /* patterns are not checked */
    uint64_t offload;
    uint64_t content; /* blocks have the bytes of a file */
    char file_name[241];
    struct socket_plan socket;
    /* Made from sizes_text. */
    uint32_t *sizes;
    uint32_t size_count;
    uint32_t max_size, min_size;
};

extern const char *const protocol_names[], *const direction_names[], *const pacing_names[],
                                                                         *const path_mtu_names[];

/* Reads sizes_text. Returns what is wrong with the plan, or NULL. */
const char *transfer_plan_complete(struct transfer_plan *plan, bool ipv6);
void transfer_plan_free(struct transfer_plan *plan);

/* The line that announces it, without its end; and back. Whatever is not there has its default,
 * what is unknown or out of bounds is refused. */
size_t transfer_plan_to_line(const struct transfer_plan *plan, char *line, size_t room);
const char *transfer_plan_from_line(struct transfer_plan *plan, const char *line);

/* The bytes of block `number`. */
static inline uint32_t transfer_plan_size(const struct transfer_plan *plan, uint64_t number) {
    return plan->size_count == 1 ? plan->sizes[0] : plan->sizes[number % plan->size_count];
}

/* Bytes and time that a stream takes by the plan; 0 when the plan does not tell. */
uint64_t transfer_plan_bytes(const struct transfer_plan *plan);
uint64_t transfer_plan_duration_ns(const struct transfer_plan *plan);
/* The longest time between two blocks that is still no silence. */
uint64_t transfer_plan_max_gap_ns(const struct transfer_plan *plan);

#endif
