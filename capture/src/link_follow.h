/* SPDX-License-Identifier: Apache-2.0 */
/* Symbolic links that -w names. Those in a folder of captures are never followed. */
#ifndef WIRETALE_LINK_FOLLOW_H
#define WIRETALE_LINK_FOLLOW_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* Replaces a path by the one behind its symbolic links, which need not be there; false when it is
 * no link. A link of a user other than root and whoever runs this program makes that user `owner`:
 * it may lead only to what is that user's, too. Fails with one line. */
bool link_follow(char path[PATH_MAX], uid_t *owner);
/* The number of this process's descriptor that a path stands for, as the one behind /dev/stdout
 * does, and as >(...) becomes in a shell; -1 when it is none. It is not followed. */
int link_descriptor(const char *path);

#endif
