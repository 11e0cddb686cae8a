/* SPDX-License-Identifier: Apache-2.0 */
/* zstd for a finished file. */
#ifndef WIRETALE_FILE_COMPRESS_H
#define WIRETALE_FILE_COMPRESS_H

#include "file_finish.h"

/* Writes the compressed file beside the temporary one and puts it in its place: its name, its
 * descriptor. False, with errno, and nothing changed when that fails. */
bool file_compress(struct finished *file);
/* Whether the compressed file has the bytes of the plain one: all of them, or, unless `whole`, as
 * many of its first as were compressed. One of no bytes is such a beginning, too. */
bool file_compress_is_same(int compressed_fd, int plain_fd, bool whole);

#endif
