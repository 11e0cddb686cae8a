/* SPDX-License-Identifier: Apache-2.0 */
/* -w FILE in a directory that the capture's user must not write to, such as root's. The file is
 * made before privileges are dropped, and the capture gets its descriptor but no access to the
 * directory. A second process, of the directory's owner, renames the file when the capture sends it
 * one byte. It can do nothing else, and it reads no byte of a packet. */
#ifndef WIRETALE_CAPTURE_KEEPER_H
#define WIRETALE_CAPTURE_KEEPER_H

#include "confine/confine.h"
#include "finish/finished_file.h"

struct keeper {
    int fd; /* socket to the process */
};

/* Makes the file for `identity`, starts the process and seals the directory. Exits with one line if
 * it cannot. */
void keeper_start(struct keeper *keeper, struct directory *directory,
                  const struct identity *identity, bool overwrite);

/* Has the file published, whose name is then in `file`. Returns false with errno; EPIPE if the
 * process has ended. */
bool keeper_publish(const struct keeper *keeper, struct finished_file *file);

#endif
