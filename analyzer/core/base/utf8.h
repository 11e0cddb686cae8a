/* SPDX-License-Identifier: Apache-2.0 */
/* Text from a file, made safe to hand on: well-formed UTF-8 of a bounded length. */
#ifndef WIRETALE_UTF8_H
#define WIRETALE_UTF8_H

#include <stddef.h>

/* Bytes of the well-formed character at `text`, which is not empty; 0 if there is none. */
size_t utf8_character(const char *text, size_t size);

/* Copies `size` bytes up to the first NUL; each byte that is no part of well-formed UTF-8 becomes
 * U+FFFD, and what does not fit is cut at a character. Writes at most `room` bytes with the final
 * NUL; returns the length without it. */
size_t utf8_copy(char *out, size_t room, const char *bytes, size_t size);

#endif
