/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer/error_counts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transfer/bounded.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static void add_one(struct error_counts *counts, const char *name, size_t length, uint64_t count) {
    size_t at = 0;
    while (at < counts->kinds &&
           (strlen(counts->names[at]) != length || memcmp(counts->names[at], name, length)))
        at++;
    if (at == ERROR_KINDS || !length || length >= sizeof counts->names[0])
        return;
    if (at == counts->kinds) {
        memcpy(counts->names[at], name, length);
        counts->names[at][length] = 0;
        counts->counts[at] = 0;
        counts->kinds++;
    }
    counts->counts[at] = bounded_add(counts->counts[at], count);
}

void error_counts_add(struct error_counts *counts, const char *text) {
    while (*text) {
        size_t length = strspn(text, LETTERS);
        if (text[length] != ':')
            return;
        char *end;
        uint64_t count = strtoull(text + length + 1, &end, 10) & INT64_MAX;
        add_one(counts, text, length, count);
        text = *end == ',' ? end + 1 : "";
    }
}

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
