/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRETALE_CAPTURE_PLAIN_H
#define WIRETALE_CAPTURE_PLAIN_H

/* Returns a descriptor of the bytes of a file: `fd` itself, or if it is compressed with zstd, an
 * unnamed file with what was decompressed, and `fd` is closed. Damage ends it early. */
int plain_bytes(int fd);

#endif
