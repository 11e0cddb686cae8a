/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "status/metrics.h"

/* A label value may have a brace, so that the last one of the line ends the labels. */
static bool read_sample(const char *line, const char *end, const char *name,
                        struct sample *sample) {
    size_t prefix = strlen(METRICS_PREFIX), length = strlen(name);
    if ((size_t)(end - line) <= prefix + length || strncmp(line, METRICS_PREFIX, prefix) != 0 ||
        strncmp(line + prefix, name, length) != 0)
        return false;
    const char *at = line + prefix + length, *brace = memrchr(at, '}', (size_t)(end - at));
    *sample->labels = '\0';
    if (*at == '{' && brace) {
        snprintf(sample->labels, sizeof sample->labels, "%.*s", (int)(brace - at - 1), at + 1);
        at = brace + 1;
    }
    sample->value = strtod(at, NULL);
    return *at == ' ';
}

bool samples_next(const char **text, const char *name, struct sample *sample) {
    while (**text) {
        const char *line = *text, *end = strchrnul(line, '\n');
        *text = *end ? end + 1 : end;
        if (read_sample(line, end, name, sample))
            return true;
    }
    return false;
}

double samples_sum(const char *text, const char *name) {
    struct sample sample;
    double sum = NAN;
    while (samples_next(&text, name, &sample))
        sum = isnan(sum) ? sample.value : sum + sample.value;
    return sum;
}

bool samples_label(const struct sample *sample, const char *name, char *out, size_t size) {
    char start[64];
    snprintf(start, sizeof start, "%s=\"", name);
    const char *at = strstr(sample->labels, start);
    size_t used = 0;
    if (!at)
        return false;
    for (at += strlen(start); *at && *at != '"' && used + 1 < size; at++) {
        at += *at == '\\' && at[1];
        out[used++] = *at;
    }
    out[used] = '\0';
    return true;
}
