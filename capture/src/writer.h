/* SPDX-License-Identifier: Apache-2.0 */
/* The writing thread: takes chunks, writes them, gives them back. It may wait for the disk; nobody
 * waits for it. */
#ifndef WIRETALE_WRITER_H
#define WIRETALE_WRITER_H

#include "merge.h"

struct writer {
    struct merge merge;
    pthread_t thread;
    atomic_bool done;
};

bool writer_start(struct writer *writer, struct output *output);
void writer_join(struct writer *writer);

#endif
