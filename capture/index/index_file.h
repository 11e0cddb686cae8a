/* SPDX-License-Identifier: Apache-2.0 */
/* The file of an index: written beside the capture, removed with it, and read by `find`. */
#ifndef WIRETALE_CAPTURE_INDEX_FILE_H
#define WIRETALE_CAPTURE_INDEX_FILE_H

#include <sys/stat.h>

#include "index/build.h"

/* Writes the index of a published file, `of`, with its permissions in place of an earlier one.
 * Returns false with errno. */
bool index_file_write(struct file_index *index, int directory_fd, const char *name,
                      const struct stat *of);
/* Returns the checksum of a header. */
uint64_t index_header_sum(const struct index_header *header);
void index_file_remove(int directory_fd, const char *name);
/* Removes indexes whose file is gone. */
void index_file_remove_orphans(int directory_fd);

/* An index that was opened; only its header is in memory. */
struct index_file {
    int fd;
    struct index_header header;
};

/* Opens the index of a file, which is `of` now. Returns false if there is none that belongs to it,
 * or if it is damaged. */
bool index_file_open(struct index_file *index, int directory_fd, const char *name,
                     const struct stat *of);
void index_file_close(struct index_file *index);

/* Return copies, which the caller frees; NULL if the index is damaged or memory is short. */
struct index_place *index_file_places(const struct index_file *index);
struct index_block *index_file_blocks(const struct index_file *index);

/* Keeps in `bits`, one for each block, those that may have a key. Returns false if the index is
 * damaged. */
bool index_file_narrow(const struct index_file *index, uint32_t key, uint8_t *bits);

#endif
