/* SPDX-License-Identifier: Apache-2.0 */
/* A direction of the link under test: sends packets at chosen times and keeps the records of their
 * fates. */
#ifndef WIRETALE_LINK_TEST_LINK_TRIAL_H
#define WIRETALE_LINK_TEST_LINK_TRIAL_H

#include <stdlib.h>
#include <string.h>

#include "common/block.h"
#include "common/test/check.h"
#include "path/link_direction.h"

#define TRIAL_MOST 20000u
#define MS         INT64_C(1000000)

struct trial {
    struct link_spec spec;
    struct link_direction direction;
    struct direction_events events;
    _Atomic int64_t origin;
    char text[256];
    struct truth_record records[TRIAL_MOST]; /* in the order of fates */
    uint32_t count;
    uint64_t left[TRIAL_MOST]; /* index of each packet that left, in order */
    int64_t left_ns[TRIAL_MOST];
    uint32_t left_count;
    uint32_t answers;
};

static void trial_keep(void *context, const struct truth_record *truth) {
    struct trial *trial = context;
    CHECK(trial->count < TRIAL_MOST);
    trial->records[trial->count++] = *truth;
}

static void trial_answer(void *context, const struct link_packet *packet) {
    (void)packet;
    ((struct trial *)context)->answers++;
}

/* Makes a direction from settings as the command line has them. */
static inline struct trial *trial_new(const char *settings, uint64_t seed) {
    char problem[256];
    struct trial *trial = calloc(1, sizeof *trial);
    CHECK(trial);
    snprintf(trial->text, sizeof trial->text, "%s", settings);
    link_spec_init(&trial->spec);
    const char *wrong = link_spec_parse(&trial->spec, trial->text, problem, sizeof problem);
    if (wrong)
        fprintf(stderr, "%s\n", wrong);
    CHECK(!wrong);
    trial->events = (struct direction_events){trial, trial_keep, trial_answer};
    wrong = link_direction_init(&trial->direction, &trial->spec, seed, 0, &trial->events,
                                &trial->origin, problem, sizeof problem);
    CHECK(!wrong);
    return trial;
}

static inline void trial_free(struct trial *trial) {
    link_direction_end(&trial->direction);
    link_spec_free(&trial->spec);
    free(trial);
}

/* Makes a UDP packet of `ip_bytes` with its headers, more than 28. Returns the size of the frame.
 */
static inline uint32_t make_frame(uint8_t *frame, uint32_t ip_bytes) {
    memset(frame, 0, ETHERNET_BYTES + ip_bytes);
    frame[12] = 8;
    uint8_t *ip = frame + ETHERNET_BYTES;
    ip[0] = 0x45;
    block_store(ip + 2, ip_bytes, 2);
    ip[9] = 17;
    ip[12] = 10;
    ip[16] = 10;
    return ETHERNET_BYTES + ip_bytes;
}

/* Advances to `now_ns` and sends all packets that leave until then. */
static inline void trial_run(struct trial *trial, int64_t now_ns) {
    struct link_packet *packet;
    link_direction_advance(&trial->direction, now_ns);
    while ((packet = link_direction_take(&trial->direction, now_ns))) {
        CHECK(trial->left_count < TRIAL_MOST);
        trial->left[trial->left_count] = packet->original->truth.index;
        trial->left_ns[trial->left_count++] = packet->out_ns;
        link_direction_sent(&trial->direction, packet, packet->out_ns, packet->out_ns);
    }
}

/* Sends a packet of a flow, which is its source port, with an ECN field (RFC 3168). */
static inline void trial_send_flow(struct trial *trial, int64_t at_ns, uint32_t ip_bytes,
                                   uint16_t flow, uint8_t ecn) {
    static uint8_t frame[MAX_FRAME];
    trial_run(trial, at_ns);
    uint32_t size = make_frame(frame, ip_bytes);
    frame[ETHERNET_BYTES + 1] = ecn;
    block_store(frame + ETHERNET_BYTES + 20, flow, 2);
    CHECK(link_direction_arrive(&trial->direction, frame, size, at_ns, at_ns));
}

static inline void trial_send(struct trial *trial, int64_t at_ns, uint32_t ip_bytes) {
    trial_send_flow(trial, at_ns, ip_bytes, 0, 0);
}

static inline uint64_t trial_fates(const struct trial *trial, enum fate fate) {
    return trial->direction.fates[fate];
}

#endif
