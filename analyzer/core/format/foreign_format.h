/* SPDX-License-Identifier: Apache-2.0 */
/* Capture formats and compressions that this reader does not have, and the programs that do. */
#ifndef WIRETALE_FOREIGN_FORMAT_H
#define WIRETALE_FOREIGN_FORMAT_H

#include <stddef.h>
#include <stdint.h>

struct foreign_format {
    const char *name;    /* "a bzip2 file" */
    const char *command; /* converts a file, whose name replaces %s */
    const char *magic;
    size_t size;
};

/* The format of a file by its first bytes; NULL if it is unknown. */
const struct foreign_format *foreign_format_of(const uint8_t *bytes, size_t size);

#endif
