/* SPDX-License-Identifier: Apache-2.0 */
/* The pcapng file format (draft-ietf-opsawg-pcapng): a sequence of blocks.
 *
 *   Block                       Packet body (enhanced; obsolete packet blocks differ in the first
 *   OFFSET SIZE                 word: 2 bytes interface, 2 bytes drops)
 *   0      4   type             OFFSET SIZE
 *   4      4   total length     0      4   interface, counted from the section's first
 *   8      ..  body             4      8   time in the interface's units, high word first
 *   -4     4   total length     12     4   captured length
 *                               16     4   length on wire
 *                               20     ..  data, padded to 4 bytes, then options
 *
 * All fields are in the byte order of their section.
 */
#ifndef WIRETALE_PCAPNG_READ_H
#define WIRETALE_PCAPNG_READ_H

#include "format/capture_file.h"

extern const struct capture_format pcapng_format;

#endif
