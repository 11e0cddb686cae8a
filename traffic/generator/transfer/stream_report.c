/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of sends, counted by name, and samples of TCP_INFO. Both have a bound, because a peer
 * reports the first and a long transfer takes many of the second. */
#include "transfer/stream_report.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* A new name is dropped if the table is full. */
void error_counts_add_one(struct error_counts *counts, const char *name, uint64_t count) {
    size_t at = 0;
    while (at < counts->kinds && strcmp(counts->names[at], name))
        at++;
    if (at == MAX_ERROR_KINDS || !*name || strlen(name) >= sizeof counts->names[0])
        return;
    if (at == counts->kinds) {
        strcpy(counts->names[at], name);
        counts->counts[at] = 0;
        counts->kinds++;
    }
    counts->counts[at] = bounded_add(counts->counts[at], count);
}

/* Text may be that of a peer: names must be letters and digits, and counts are cut to 63 bits. */
void error_counts_add(struct error_counts *counts, const char *text) {
    char name[ERROR_COUNTS_SIZE];
    while (*text) {
        size_t length = strspn(text, LETTERS);
        if (text[length] != ':' || length >= sizeof name)
            return;
        char *end;
        uint64_t count = strtoull(text + length + 1, &end, 10) & INT64_MAX;
        snprintf(name, sizeof name, "%.*s", (int)length, text);
        error_counts_add_one(counts, name, count);
        text = *end == ',' ? end + 1 : "";
    }
}

/* If an entry does not fit, the text ends before it. */
void error_counts_write(const struct error_counts *counts, char text[ERROR_COUNTS_SIZE]) {
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < counts->kinds; i++) {
        int length = snprintf(text + used, ERROR_COUNTS_SIZE - used, "%s%s:%llu", used ? "," : "",
                              counts->names[i], (unsigned long long)counts->counts[i]);
        if (length < 0 || used + (size_t)length >= ERROR_COUNTS_SIZE) {
            text[used] = 0;
            return;
        }
        used += (size_t)length;
    }
}

/* Drops every second sample, so that the rest still covers the whole time evenly. */
static void thin_out(struct tcp_samples *samples) {
    for (uint32_t i = 0; i < MAX_TCP_SAMPLES / 2; i++)
        samples->list[i] = samples->list[2 * i];
    samples->count = MAX_TCP_SAMPLES / 2;
    samples->every *= 2;
}

/* The list is allocated with its first sample, because UDP takes none. Returns NULL if memory ran
 * out. */
static struct tcp_sample *new_sample(struct tcp_samples *samples) {
    if (!samples->list) {
        samples->list = calloc(MAX_TCP_SAMPLES, sizeof *samples->list);
        samples->every = 1;
    }
    if (!samples->list)
        return NULL;
    if (samples->count == MAX_TCP_SAMPLES)
        thin_out(samples);
    return &samples->list[samples->count++];
}

/* A round that is left out costs no system call. */
void tcp_samples_take(struct tcp_samples *samples, int fd, uint32_t stream, uint64_t time_ns,
                      int keep) {
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (samples->every && samples->rounds % samples->every && !keep)
        return;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size))
        return;
    struct tcp_sample *sample = new_sample(samples);
    if (!sample)
        return;
    *sample = (struct tcp_sample){time_ns, stream, info};
}

void tcp_samples_free(struct tcp_samples *samples) {
    free(samples->list);
    *samples = (struct tcp_samples){0};
}
