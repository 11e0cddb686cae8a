/* SPDX-License-Identifier: Apache-2.0 */
/* Well-formed UTF-8 (RFC 3629): names in captures, of files and of interfaces, and texts of a peer
 * may be any bytes. A terminal gets them with a replacement for all that could steer it. */
#ifndef WIRETALE_COMMON_UTF8_H
#define WIRETALE_COMMON_UTF8_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Returns the length in bytes of the well-formed character at `text`, 0 if it is malformed.
 * `size` must be > 0. */
size_t utf8_character(const char *text, size_t size);
/* Returns the code point of a well-formed character of `length` bytes. */
uint32_t utf8_code_point(const char *text, size_t length);

#define UTF8_CUT "\xE2\x80\xA6" /* U+2026: ends a text that is longer */

/* Copies `size` bytes up to the first NUL. Replaces each malformed byte by U+FFFD. If `room`, which
 * includes the final NUL, is too small, it cuts at a character and ends in UTF8_CUT, unless even
 * that has no room. Returns the length without the NUL. */
size_t utf8_copy(char *out, size_t room, const char *bytes, size_t size);

/* The same for terminals, logs and tables: also replaces each character that is not printable
 * (controls, line feeds, controls of bidirectional text, invisible ones) by U+FFFD, as
 * analyzer/printable.py does. */
size_t utf8_copy_printable(char *out, size_t room, const char *bytes, size_t size);
/* Writes a text in this form. */
void utf8_put_printable(FILE *out, const char *text);

#endif
