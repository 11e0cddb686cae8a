/* SPDX-License-Identifier: Apache-2.0 */
/* Text from a file, made safe to hand on: well-formed UTF-8 of a bounded length. */
#ifndef WIRETALE_VALID_TEXT_H
#define WIRETALE_VALID_TEXT_H

#include <stddef.h>

/* Bytes of the well-formed character at `text`, which is not empty; 0 if there is none. */
size_t valid_text_character(const char *text, size_t size);

/* Copies `size` bytes up to the first NUL; each byte that is no part of well-formed UTF-8 becomes
 * U+FFFD, and what does not fit is cut at a character. Writes at most `room` bytes with the final
 * NUL; returns the length without it. */
size_t valid_text_copy(char *out, size_t room, const char *bytes, size_t size);

#endif
