/* SPDX-License-Identifier: Apache-2.0 */
/* zstd for a finished file. */
#ifndef WIRETALE_FILE_COMPRESS_H
#define WIRETALE_FILE_COMPRESS_H

#include "file_finish.h"

/* Writes the compressed file beside the temporary one and puts it in its place: its name, its
 * descriptor. False, with errno, and nothing changed when that fails. */
bool file_compress(struct finished *file);

#endif
