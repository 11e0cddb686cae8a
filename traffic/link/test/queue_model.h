/* SPDX-License-Identifier: Apache-2.0 */
/* Made by tests/support/models/queue_model.py: models of queue disciplines, from their papers. */
#ifndef WIRETALE_LINK_TEST_QUEUE_MODEL_H
#define WIRETALE_LINK_TEST_QUEUE_MODEL_H

#include <stdint.h>

/* clang-format off */

static const struct model_phase {
    uint32_t packets;
    int64_t gap_ns, silence_ns;
} model_phases[] = {
    {2500, 907000, 0},
    {300, 3000000, 0},
    {1500, 850000, 0},
    {10, 5000000, 4000000000},
    {1500, 800000, 30000000},
    {900, 500000, 0},
    {700, 1008000, 0},
};

static const struct model_case {
    const char *settings;
    int64_t slower;
    uint32_t drops;
    uint64_t digest; /* FNV-1a of a line for each dropped packet, in order: its number and fate */
} model_cases[] = {
    {"rate=10Mbit discipline=codel queue=1000", 1, 549, UINT64_C(0x234326b645f1b1cf)},
    {"rate=1Mbit discipline=codel queue=1000", 10, 1196, UINT64_C(0x3611f987c2ec85d5)},
    {"rate=10Mbit discipline=codel target=20ms interval=40ms queue=25", 1, 1150, UINT64_C(0xe1d1e94c5c5cf04e)},
    {"rate=10Mbit discipline=red queue=60", 1, 1261, UINT64_C(0x79113f9a4af71b86)},
    {"rate=10Mbit discipline=red queue=40000B red-weight=0.02", 1, 1213, UINT64_C(0xeaaa92277ae1f77d)},
    {"rate=10Mbit discipline=codel ecn=yes queue=1000", 1, 616, UINT64_C(0x457e53ad445f192b)},
    {"rate=10Mbit discipline=fq_codel queue=1000", 1, 862, UINT64_C(0x373ec3a0bb96566a)},
    {"rate=10Mbit discipline=fq_codel ecn=yes queue=100", 1, 1734, UINT64_C(0xdd9a145afb3b4fee)},
    {"rate=10Mbit discipline=pie queue=1000", 1, 1186, UINT64_C(0x60f5eb3541142018)},
    {"rate=10Mbit discipline=pie ecn=yes target=30ms queue=200", 1, 1161, UINT64_C(0x70af449ffa151189)},
};

/* clang-format on */

#endif
