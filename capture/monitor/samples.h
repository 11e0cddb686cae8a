/* SPDX-License-Identifier: Apache-2.0 */
/* Reads metrics in Prometheus' text format, as metrics_prometheus() writes them. */
#ifndef WIRETALE_CAPTURE_SAMPLES_H
#define WIRETALE_CAPTURE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>

struct sample {
    char labels[512]; /* between the braces */
    double value;
};

/* Finds the next sample of a name without METRICS_PREFIX, and moves `*text` behind it. */
bool samples_next(const char **text, const char *name, struct sample *sample);

/* Returns the sum of all samples of a name, NAN if there is none. */
double samples_sum(const char *text, const char *name);

/* Copies the value of a label; returns false if there is none of that name. */
bool samples_label(const struct sample *sample, const char *name, char *out, size_t size);

#endif
