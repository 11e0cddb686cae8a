/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the index of a file (index_format.h) from its records, in bounded memory: 4 MiB of keys
 * that wait, and an index of at most INDEX_MOST bytes of keys. */
#ifndef WIRETALE_CAPTURE_INDEX_BUILD_H
#define WIRETALE_CAPTURE_INDEX_BUILD_H

#include <stdbool.h>

#include "index/index_format.h"
#include "index/records.h"

struct file_index {
    struct index_header header;
    uint8_t *body; /* what follows the header */
    size_t body_size;
};

/* Indexes the file behind the descriptor. Returns false if it has none: it is no capture that
 * records_open() reads, has several sections, or memory is short. */
bool file_index_build(struct file_index *index, int fd);
void file_index_free(struct file_index *index);

#endif
