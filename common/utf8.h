/* SPDX-License-Identifier: Apache-2.0 */
/* Well-formed UTF-8 (RFC 3629): names in captures, of files and of interfaces may be any bytes. */
#ifndef WIRETALE_COMMON_UTF8_H
#define WIRETALE_COMMON_UTF8_H

#include <stddef.h>

/* Returns the length in bytes of the well-formed character at `text`, 0 if it is malformed.
 * `size` must be > 0. */
size_t utf8_character(const char *text, size_t size);

/* Copies `size` bytes up to the first NUL. Replaces each malformed byte by U+FFFD and cuts at a
 * character if `room`, which includes the final NUL, is too small. Returns the length without
 * the NUL. */
size_t utf8_copy(char *out, size_t room, const char *bytes, size_t size);

#endif
