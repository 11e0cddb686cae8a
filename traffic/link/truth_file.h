/* SPDX-License-Identifier: Apache-2.0 */
/* The file that the truth is written to: neither an input of the link, nor a capture. */
#ifndef WIRETALE_LINK_TRUTH_FILE_H
#define WIRETALE_LINK_TRUTH_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* NULL, or the reason why the path must not be written: it is one of the inputs (some are NULL), or
 * it is a capture and `overwrite` is not set. */
const char *truth_file_problem(const char *path, const char *const *inputs, size_t count,
                               bool overwrite);

/* Opens it for writing. A regular file is replaced whole: who reads the older one keeps it. NULL:
 * errno is set. */
FILE *truth_file_open(const char *path);

#endif
