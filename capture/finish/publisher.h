/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to each file before others see it: index, compression, and a name. */
#ifndef WIRETALE_CAPTURE_PUBLISHER_H
#define WIRETALE_CAPTURE_PUBLISHER_H

#include <stdatomic.h>

#include "command/jobs.h"
#include "common/clock.h"
#include "finish/finished_file.h"

#define FINISH_LIMIT_NS (3600 * NS_PER_S) /* for an attempt to compress a file */

struct publisher {
    bool compress;
    _Atomic uint64_t plain_bytes, compressed_bytes; /* of compressed files */
    struct replacement replacement;
    struct jobs *jobs;
    const struct keeper *keeper; /* or NULL */
};

/* Make the index and the compressed copy, and publish the file with them. For the finishing thread
 * alone; return false with errno. */
bool publisher_complete(struct publisher *publisher, struct finished_file *file,
                        const _Atomic int64_t *until_ns);
bool publisher_publish(const struct publisher *publisher, struct finished_file *file);

/* Removes a published file with what is beside it. */
void publisher_withdraw(const struct finished_file *file);

#endif
