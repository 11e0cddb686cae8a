/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of transfers: the fields of the line "test" with their bounds, the sizes of blocks, and
 * bounds of amount, time and silence. A plan comes from the network, so every member has a bound
 * here, and a plan that passes transfer_plan_complete() can be run without further checks. Fields
 * that are absent are 0, so that a later version can add one without a new protocol. */
#include "transfer/transfer_plan.h"

#include <stdlib.h>
#include <string.h>

#include "common/block.h"
#include "common/clock.h"
#include "common/units.h"

const char *const protocol_names[] = {"tcp", "udp"};
const char *const direction_names[] = {"forward", "reverse", "both", NULL};
const char *const pacing_names[] = {"none", "constant", "poisson", "burst", "pattern"};
const char *const path_mtu_names[] = {"system", "do", "dont", "want", "probe", NULL};

/* A field has the name of its member, which is thereby part of the protocol. */
#define NUMBER(name, max)                                                                          \
    { #name, offsetof(struct transfer_plan, name), FIELD_NUMBER, max, NULL }
#define WORD(name, count)                                                                          \
    { #name, offsetof(struct transfer_plan, name), FIELD_WORD, count, name##_names }
#define DECIMAL(name)                                                                              \
    { #name, offsetof(struct transfer_plan, name), FIELD_DECIMAL, 0, NULL }
#define TEXT(name, room)                                                                           \
    { #name, offsetof(struct transfer_plan, name), FIELD_TEXT, room, NULL }
#define OF_SOCKET(name, kind, max, words)                                                          \
    { #name, offsetof(struct transfer_plan, socket.name), kind, max, words }

#define MAX_SIZES      65536u
#define MAX_TIME       (1000000 * NS_PER_S) /* 11 days */
#define FQ_BURST_BYTES 65536.0 /* that Linux sends at once at most (tcp_tso_autosize) */

/* The fields of the `test` line. */
static const struct line_field fields[] = {
    NUMBER(run, UINT32_MAX),
    WORD(protocol, 2),
    WORD(direction, 3),
    NUMBER(streams, MAX_STREAMS),
    TEXT(sizes_text, 1001),
    NUMBER(count, INT64_MAX),
    NUMBER(bytes, INT64_MAX),
    NUMBER(time_ns, MAX_TIME),
    WORD(pacing, 5),
    DECIMAL(rate_bps),
    DECIMAL(rate_pps),
    NUMBER(burst, 1000000),
    NUMBER(burst_cap, 1000000),
    NUMBER(no_real_time, 1),
    NUMBER(kernel_pacing, 1),
    NUMBER(line_count, MAX_PATTERN_LINES),
    NUMBER(longest_gap_ns, MAX_TIME),
    NUMBER(draws_lines, 1),
    NUMBER(turns, 1),
    NUMBER(write_each, 1),
    NUMBER(start_offset_ns, MAX_TIME),
    NUMBER(stagger_ns, MAX_TIME),
    NUMBER(idle_ns, MAX_TIME),
    NUMBER(interval_ns, MAX_TIME),
    NUMBER(unchecked, 1),
    NUMBER(offload, OFFLOAD_NEVER),
    NUMBER(authentic, 1),
    NUMBER(content, 1),
    NUMBER(stop_receiver, 1),
    TEXT(file_name, 241),
    OF_SOCKET(dscp_plus_1, FIELD_NUMBER, 64, NULL),
    OF_SOCKET(ttl, FIELD_NUMBER, 255, NULL),
    OF_SOCKET(path_mtu, FIELD_WORD, 5, path_mtu_names),
    OF_SOCKET(buffer, FIELD_NUMBER, 1 << 30, NULL),
    OF_SOCKET(no_delay, FIELD_NUMBER, 1, NULL),
    OF_SOCKET(mss, FIELD_NUMBER, 65535, NULL),
    OF_SOCKET(fq_rate_bps, FIELD_DECIMAL, 0, NULL),
    OF_SOCKET(congestion, FIELD_TEXT, 16, NULL),
};
#define FIELDS (sizeof fields / sizeof *fields)

void transfer_plan_to_line(const struct transfer_plan *plan, char line[LINE_SIZE]) {
    line_write(line, "test", fields, FIELDS, plan);
}

const char *transfer_plan_from_line(struct transfer_plan *plan, const char *line) {
    *plan = (struct transfer_plan){0};
    return line_read(line, fields, FIELDS, plan);
}

struct size_bound {
    uint32_t max; /* bytes of the largest block */
    const char *error;
};

/* Over UDP a block is one datagram; of a file it must fit into the sender's buffer. */
static struct size_bound size_bound(const struct transfer_plan *plan, bool ipv6) {
    static const struct size_bound bounds[] = {
        {MAX_UDP_SIZE_IPV4, "a UDP datagram over IPv4 carries at most 65507 bytes"},
        {MAX_UDP_SIZE_IPV6, "a UDP datagram over IPv6 carries at most 65527 bytes"},
        {BLOCK_LENGTH_MOST, "a block has at most 1073741824 bytes"},
        {MAX_CONTENT_SIZE, "the blocks of a file have at most 262144 bytes"},
    };
    return bounds[plan->protocol == PROTOCOL_UDP ? ipv6 : plan->content ? 3 : 2];
}

static const char *check_fq_rate(const struct transfer_plan *plan) {
    double rate = plan->socket.fq_rate_bps;
    if (rate > 0 && plan->protocol == PROTOCOL_UDP)
        return "the kernel paces TCP alone";
    if (rate > 0 && (rate < FQ_RATE_LEAST || rate >= FQ_RATE_LIMIT))
        return "a rate of the kernel out of bounds";
    return NULL;
}

static const char *check_pacing(const struct transfer_plan *plan) {
    if ((plan->pacing != PACING_NONE) != (plan->rate_bps > 0 || plan->rate_pps > 0))
        return "a pacing without a rate, or a rate without a pacing";
    if (plan->pacing == PACING_BURST && !plan->burst)
        return "bursts of no blocks";
    if (plan->burst_cap && plan->burst_cap < plan->burst)
        return "bursts above their limit";
    if (plan->kernel_pacing && (plan->protocol != PROTOCOL_UDP || plan->pacing == PACING_NONE ||
                                plan->offload == OFFLOAD_ALWAYS))
        return "pacing by the kernel is of single datagrams with a rate";
    return check_fq_rate(plan);
}

/* A plan with lines has either turns or a pattern. */
static const char *check_lines(const struct transfer_plan *plan) {
    if (!plan->line_count && (plan->turns || plan->pacing == PACING_PATTERN))
        return "no lines of turns or of a pattern";
    if (plan->line_count && (plan->streams != 1 || plan->content))
        return "turns and patterns go in one stream";
    if (plan->turns && (plan->protocol != PROTOCOL_TCP || plan->direction != DIRECTION_FORWARD ||
                        plan->pacing != PACING_NONE))
        return "turns go forward over TCP, without a rate";
    if (plan->turns || !plan->line_count)
        return NULL;
    if (plan->protocol != PROTOCOL_UDP || plan->direction == DIRECTION_BOTH)
        return "a pattern goes in one direction over UDP";
    return NULL;
}

/* Returns NULL, or the reason why the members contradict each other. */
static const char *check_members(const struct transfer_plan *plan) {
    if (!plan->streams)
        return "no streams";
    if (!plan->count && !plan->bytes && !plan->time_ns && !plan->content)
        return "no amount";
    if (plan->content && (plan->streams != 1 || plan->direction != DIRECTION_FORWARD))
        return "a file goes forward, in one stream";
    if (plan->content && plan->size_count != 1)
        return "a file goes in blocks of one size";
    if (plan->authentic && (plan->protocol != PROTOCOL_UDP || plan->pacing == PACING_PATTERN))
        return "authenticated blocks go over UDP, without a pattern of lines";
    const char *error = check_lines(plan);
    return error ? error : check_pacing(plan);
}

struct size_range {
    uint64_t from, to, step;
};

/* Parses "64", "64-1472" or "64-1472:8". */
static bool read_range(char *item, struct size_range *range) {
    char *step = item, *from = strsep(&step, "-"), *to = strsep(&step, ":");
    range->step = 1;
    if (!units_parse_whole(from, UNIT_SIZE, "", &range->from))
        return false;
    range->to = range->from;
    return (!to || units_parse_whole(to, UNIT_SIZE, "", &range->to)) && range->to >= range->from &&
           (!step || (units_parse_whole(step, UNIT_SIZE, "", &range->step) && range->step));
}

/* Appends all sizes of a range. Returns NULL, or the reason for a failure. */
static const char *add_range(struct transfer_plan *plan, const struct size_range *range,
                             const struct size_bound *bound) {
    if (range->from < transfer_plan_overhead(plan) + (plan->content ? 1 : 0))
        return plan->authentic
                   ? "expected at least 48 bytes, the header and the code of a block (49 "
                     "with a file)"
                   : "expected at least 32 bytes, the header of a block (33 with a "
                     "file)";
    if (range->to > bound->max)
        return bound->error;
    /* A step can be up to 2^64 - 1, so the sum must not wrap. */
    for (uint64_t size = range->from;; size += range->step) {
        if (plan->size_count == MAX_SIZES)
            return "expected at most 65536 sizes: give ranges a larger step, as in 64-65000:64";
        plan->sizes[plan->size_count++] = (uint32_t)size;
        plan->max_size = size > plan->max_size ? (uint32_t)size : plan->max_size;
        plan->min_size = size < plan->min_size ? (uint32_t)size : plan->min_size;
        if (range->to - size < range->step)
            return NULL;
    }
}

/* The IP version of the control connection decides the largest datagram, because data uses the
 * same. Ranges expand into one list, which is allocated at its bound of 256 KiB, because the text
 * may come from a peer. */
const char *transfer_plan_complete(struct transfer_plan *plan, bool ipv6) {
    struct size_bound bound = size_bound(plan, ipv6);
    struct size_range range;
    char copy[sizeof plan->sizes_text], *rest = copy, *item;
    const char *error = NULL;
    free(plan->sizes);
    plan->sizes = malloc(MAX_SIZES * sizeof *plan->sizes);
    if (!plan->sizes)
        return "out of memory";
    plan->size_count = plan->max_size = 0;
    plan->min_size = UINT32_MAX;
    strcpy(copy, plan->sizes_text);
    while (!error && (item = strsep(&rest, ",")))
        error = read_range(item, &range) ? add_range(plan, &range, &bound)
                                         : "expected sizes and ranges as in 64,512,1000-1400:100";
    if (error) {
        free(plan->sizes);
        plan->sizes = NULL;
    }
    return error ? error : check_members(plan);
}

void transfer_plan_free(struct transfer_plan *plan) {
    free(plan->sizes);
    free(plan->lines);
    plan->sizes = NULL;
    plan->lines = NULL;
}

/* With --count, all blocks are taken as the largest: this is an upper bound. A turn has two, and
 * its responses are no part of --bytes. */
uint64_t transfer_plan_bytes(const struct transfer_plan *plan) {
    uint64_t block = (uint64_t)plan->max_size * (plan->turns ? 2 : 1);
    if (plan->bytes && !plan->turns)
        return plan->bytes;
    if (plan->count > INT64_MAX / block)
        return INT64_MAX;
    return plan->count * block;
}

double transfer_plan_gap_ns(const struct transfer_plan *plan, uint32_t size) {
    if (plan->pacing == PACING_NONE)
        return 0;
    return plan->rate_pps > 0 ? 1e9 / plan->rate_pps : size * 8e9 / plan->rate_bps;
}

/* A lower bound: blocks of the smallest size are due first. */
uint64_t transfer_plan_duration_ns(const struct transfer_plan *plan) {
    if (plan->time_ns)
        return plan->time_ns;
    if (plan->pacing == PACING_NONE)
        return 0;
    double blocks = plan->count ? (double)plan->count : (double)plan->bytes / plan->min_size;
    double ns = blocks * transfer_plan_gap_ns(plan, plan->min_size);
    return ns < 9e18 ? (uint64_t)ns : INT64_MAX;
}

double transfer_plan_rate_bps(const struct transfer_plan *plan) {
    double rate = plan->rate_pps > 0 ? plan->rate_pps * plan->max_size * 8 : plan->rate_bps;
    return rate * (double)plan->streams;
}

/* Twice the longest gap, because the sender may be held up. A Poisson gap exceeds 20 means once in
 * e^20 blocks. */
uint64_t transfer_plan_max_gap_ns(const struct transfer_plan *plan) {
    if (plan->turns)
        return 2 * plan->longest_gap_ns;
    if (plan->pacing == PACING_NONE)
        return 0;
    if (plan->pacing == PACING_PATTERN)
        return 2 * plan->longest_gap_ns;
    double gap = transfer_plan_gap_ns(plan, plan->max_size);
    if (plan->pacing == PACING_BURST)
        gap *= (double)plan->burst;
    if (plan->pacing == PACING_POISSON)
        gap *= 20;
    return gap < 1e18 ? (uint64_t)(2 * gap) : INT64_MAX / 2;
}

uint64_t transfer_plan_kernel_gap_ns(const struct transfer_plan *plan) {
    double rate = plan->socket.fq_rate_bps;
    return rate > 0 ? (uint64_t)(FQ_BURST_BYTES * 8e9 / rate) : 0;
}
