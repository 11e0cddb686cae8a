/* SPDX-License-Identifier: Apache-2.0 */
/* `-w FILE` in a folder that the capture's user may not write to, root's mostly. The capture gets
 * that one file, made before it gives up its privileges, and no access to the folder. A small
 * process of the folder's owner waits to be asked, in one byte, to give the finished file the name
 * that was asked for. It can do that and nothing else, and reads nothing of what was captured. */
#ifndef WIRETALE_FILE_KEEPER_H
#define WIRETALE_FILE_KEEPER_H

#include "file_finish.h"
#include "privilege.h"

struct file_keeper {
    int fd; /* a socket */
};

/* Makes the file for that user, and begins the process. Fails with one line. */
void file_keeper_start(struct file_keeper *keeper, struct finisher *finisher, struct folder *folder,
                       const struct identity *identity);
/* Asks it to publish the file; its name is then in `file`. False with errno. */
bool file_keeper_publish(const struct file_keeper *keeper, struct finished *file);

#endif
