/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary files that a killed run left behind. What is in them is trusted in nothing. */
#ifndef WIRETALE_FILE_RECOVER_H
#define WIRETALE_FILE_RECOVER_H

#include "description.h"
#include "file_finish.h"

struct recovered_interface {
    uint64_t packets;
    int64_t first_ns, last_ns;
};

/* What a walk over a file found. */
struct recovered {
    uint64_t whole; /* bytes up to the end of the last whole block or record */
    uint64_t packets;
    bool classic;
    bool closed; /* counts follow its last packet: nothing is missing */
    bool ours;   /* it begins as this program's files do */
    uint32_t interfaces;
    struct recovered_interface of[DESCRIPTIONS_MAX];
};

/* Lists those in the folder by name, the oldest first: a kill may leave more of them than a process
 * may have open files. */
void file_recover_find(struct leftovers *left, const struct folder *folder);
bool file_recover_is_done(const struct leftovers *left);
/* Opens the next one, cuts it after its last whole block and says in it that it was cut. NULL when
 * there is nothing in it to keep (it is removed), or it is not ours, or in use. */
struct finished *file_recover_next(struct leftovers *left);
/* Walks bytes of a file; exposed for tests. */
void file_recover_walk(struct recovered *found, const uint8_t *data, size_t size);

#endif
