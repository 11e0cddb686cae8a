/* SPDX-License-Identifier: Apache-2.0 */
/* "ENOBUFS:3,EPERM:1": how often sends failed, by the name of the error. */
#ifndef WIRETALE_ERROR_COUNTS_H
#define WIRETALE_ERROR_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#define ERROR_KINDS       12
#define ERROR_COUNTS_SIZE 256

struct error_counts {
    size_t kinds;
    char names[ERROR_KINDS][20];
    uint64_t counts[ERROR_KINDS];
};

/* What is no such text, or one kind too many, is left out. */
void error_counts_add(struct error_counts *counts, const char *text);
void error_counts_write(const struct error_counts *counts, char text[ERROR_COUNTS_SIZE]);

#endif
