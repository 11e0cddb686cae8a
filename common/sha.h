/* SPDX-License-Identifier: Apache-2.0 */
/* The digests of a short message by SHA-1 and SHA-256 (FIPS 180-4): they name something, and
 * protect nothing. */
#ifndef WIRETALE_SHA_H
#define WIRETALE_SHA_H

#include <stddef.h>
#include <stdint.h>

#define SHA_SHORT_MOST 55 /* bytes that fit into one block with their padding */

/* Return the first 32 bits of the digest of `size` bytes, at most SHA_SHORT_MOST. */
uint32_t sha1_begin(const void *bytes, size_t size);
uint32_t sha256_begin(const void *bytes, size_t size);

#endif
