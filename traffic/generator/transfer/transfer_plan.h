/* SPDX-License-Identifier: Apache-2.0 */
/* A transfer as the sender asks for it: everything that both ends must know. It crosses the control
 * connection as the line "test". Amounts and rates are those of each stream. */
#ifndef WIRETALE_TRANSFER_PLAN_H
#define WIRETALE_TRANSFER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/block.h"
#include "control/control.h"

#define MAX_STREAMS       1024u
#define MAX_UDP_SIZE_IPV4 65507u  /* 65535 - 20 - 8 */
#define MAX_UDP_SIZE_IPV6 65527u  /* 65535 - 8: IPv6's length excludes its header (RFC 8200) */
#define MAX_CONTENT_SIZE  262144u /* of a block of a file, which must fit into a buffer */
#define MAX_PATTERN_LINES 65536u
#define DEFAULT_PORT      5010u
#define FQ_RATE_LEAST     1e5 /* bit/s: a burst of FQ_BURST_BYTES then takes 5 s */
#define FQ_RATE_LIMIT     1e13

enum protocol { PROTOCOL_TCP, PROTOCOL_UDP };
/* The end that asks sends forward. */
enum direction_name { DIRECTION_FORWARD, DIRECTION_REVERSE, DIRECTION_BOTH };
#define DIRECTIONS 2u /* of a running transfer */
enum pacing { PACING_NONE, PACING_CONSTANT, PACING_POISSON, PACING_BURST, PACING_PATTERN };
/* Whether the kernel is given joined datagrams (UDP_SEGMENT). */
enum offload {
    OFFLOAD_IF_SOFTWARE, /* if it segments them before the interface, where captures see them */
    OFFLOAD_ALWAYS,      /* also UDP_GRO at the receiver */
    OFFLOAD_NEVER
};
enum path_mtu { PATH_MTU_SYSTEM, PATH_MTU_DO, PATH_MTU_DONT, PATH_MTU_WANT, PATH_MTU_PROBE };

/* Options of the data sockets at both ends; 0 or "" leaves the system's. */
struct socket_plan {
    uint64_t dscp_plus_1;
    uint64_t ttl;
    uint64_t path_mtu;   /* enum path_mtu */
    uint64_t buffer;     /* bytes */
    uint64_t no_delay;   /* flag */
    uint64_t mss;        /* bytes */
    double fq_rate_bps;  /* at which the kernel sends the bytes of a stream */
    char congestion[16]; /* name of the algorithm */
};

/* A block of a pattern, or a turn (pattern.c). */
struct pattern_line {
    uint64_t gap_ns;    /* until the next block; of a turn, from the response to the next request */
    uint64_t server_ns; /* of a turn: from the request to the response */
    uint32_t size;      /* bytes of the block, or the request */
    uint32_t response;  /* bytes; of a turn */
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
    uint64_t burst_cap;        /* most blocks sent at once in catching up; 0: no limit */
    uint64_t no_real_time;     /* flag: paced senders keep the usual priority */
    uint64_t kernel_pacing;    /* flag: the kernel gets datagrams with their times (SO_TXTIME) */
    uint64_t line_count;       /* of a pattern */
    uint64_t longest_gap_ns;   /* of a pattern */
    uint64_t turns;            /* flag: over TCP, the lines are turns */
    uint64_t draws_lines;      /* flag: of a pattern, at random; else in turn */
    uint64_t write_each;       /* flag: over TCP, a call of send() for each block */
    uint64_t start_offset_ns;  /* before the first block of stream 0 */
    uint64_t stagger_ns;       /* between the first blocks of consecutive streams */
    uint64_t idle_ns;          /* silence that ends the transfer after the sender's "end" */
    uint64_t interval_ns;      /* between TCP_INFO samples */
    uint64_t unchecked;        /* flag: patterns are not compared */
    uint64_t offload;          /* enum offload */
    uint64_t authentic;        /* flag: datagrams end in a code of a shared key */
    uint64_t content;          /* flag: blocks contain a file */
    uint64_t stop_receiver;    /* flag: the end that is asked ends after the test */
    char file_name[241];
    struct socket_plan socket;
    /* Parsed from sizes_text by transfer_plan_complete(). */
    uint32_t *sizes;
    uint32_t size_count;
    uint32_t max_size, min_size;
    /* Of a pattern, at the end that asks, and at the one that sends. */
    struct pattern_line *lines; /* NULL: none; else room for line_count */
    uint64_t lines_have;        /* of line_count */
};

extern const char *const protocol_names[], *const direction_names[], *const pacing_names[],
                                                                         *const path_mtu_names[];

/* Parses sizes_text, if necessary again, and checks the plan. Returns NULL, or the reason for a
 * failure. */
const char *transfer_plan_complete(struct transfer_plan *plan, bool ipv6);
void transfer_plan_free(struct transfer_plan *plan);

void transfer_plan_to_line(const struct transfer_plan *plan, char line[LINE_SIZE]);
/* Sets all members, absent ones to 0. Returns NULL, or the reason for a failure. */
const char *transfer_plan_from_line(struct transfer_plan *plan, const char *line);

/* Reads the lines of a pattern and sets all members of the plan that follow from them; without an
 * amount, each line is sent once. Returns false with `error` set if the file cannot be read or is
 * no pattern. */
bool transfer_plan_read_pattern(struct transfer_plan *plan, const char *path, char *error,
                                size_t room);

/* Lines of a pattern as a list "SIZE:GAP,SIZE:GAP" (of turns "SIZE:GAP:RESPONSE:SERVER"), for an
 * end that sends and did not read them. */

/* Writes lines from `from` on, as many as fit. Returns the number of the line behind them. */
uint64_t transfer_plan_write_lines(const struct transfer_plan *plan, uint64_t from, char *text,
                                   size_t room);
/* Appends the lines of a list, which must be within the bounds of the plan. Returns NULL, or the
 * reason for a failure. */
const char *transfer_plan_take_lines(struct transfer_plan *plan, const char *text);
/* Returns whether the end that is asked must get the lines. */
bool transfer_plan_needs_lines(const struct transfer_plan *plan);
/* Returns whether the plan can be run: this end has all lines that it needs, and they have the rate
 * of the plan. */
bool transfer_plan_has_lines(const struct transfer_plan *plan);

/* Returns the line of block `number`, of a plan with a pattern. */
static inline const struct pattern_line *transfer_plan_line(const struct transfer_plan *plan,
                                                            uint64_t number) {
    uint64_t place = plan->draws_lines ? block_mix(block_mix(plan->run) + number) : number;
    return &plan->lines[place % plan->line_count];
}

/* Returns the bytes of block `number`. */
static inline uint32_t transfer_plan_size(const struct transfer_plan *plan, uint64_t number) {
    if (plan->lines)
        return transfer_plan_line(plan, number)->size;
    return plan->size_count == 1 ? plan->sizes[0] : plan->sizes[number % plan->size_count];
}

/* Returns the bytes of a block that are neither pattern nor file. */
static inline uint32_t transfer_plan_overhead(const struct transfer_plan *plan) {
    return BLOCK_HEADER_BYTES + (plan->authentic ? BLOCK_MAC_BYTES : 0);
}

/* Upper bounds of a stream's bytes and time; 0 if the plan has no limit of this kind. */
uint64_t transfer_plan_bytes(const struct transfer_plan *plan);
uint64_t transfer_plan_duration_ns(const struct transfer_plan *plan);
/* Returns the mean gap that a block of `size` bytes takes of the rate; 0: no rate. */
double transfer_plan_gap_ns(const struct transfer_plan *plan, uint32_t size);
/* Returns bit/s of block bytes of all streams in a direction, of the largest blocks; 0: no limit.
 */
double transfer_plan_rate_bps(const struct transfer_plan *plan);
/* Returns the longest gap between two blocks that must not count as silence. */
uint64_t transfer_plan_max_gap_ns(const struct transfer_plan *plan);
/* Returns the longest gap that the kernel's pacing makes between bytes that were sent. */
uint64_t transfer_plan_kernel_gap_ns(const struct transfer_plan *plan);

#endif
