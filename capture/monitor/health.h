/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a capture, by its metrics, as plugins of Nagios and Icinga say it. */
#ifndef WIRETALE_CAPTURE_HEALTH_H
#define WIRETALE_CAPTURE_HEALTH_H

#include <stddef.h>
#include <stdint.h>

/* Exit codes of monitoring plugins. */
enum health { HEALTH_OK, HEALTH_WARNING, HEALTH_CRITICAL, HEALTH_UNKNOWN };

struct health_limits {
    int64_t loss_ns;    /* how long a loss counts */
    int64_t lag_ns;     /* longest wait of a packet */
    int64_t disk_ns;    /* least time until the disk is full */
    int64_t silence_ns; /* longest time without a packet; 0: no limit */
};

struct verdict {
    enum health health;
    char text[2048]; /* all that is wrong, the worst first */
};

void health_judge(const char *metrics, const struct health_limits *limits, struct verdict *verdict);

/* Writes the line of a plugin: "CAPTURE OK - ... | received=12c ...". */
void health_put(const char *metrics, const struct health_limits *limits,
                const struct verdict *verdict);

/* Writes "12 packets received, 12 written; none lost". */
void health_counts(const char *metrics, char *text, size_t size);

/* Copies the state of the capture, as in the JSON; "" if there is none. */
void health_state(const char *metrics, char *text, size_t size);

#endif
