/* SPDX-License-Identifier: Apache-2.0 */
/* Who the program is while it captures, also for files. It keeps one capability, CAP_NET_RAW,
 * without which an interface that went away could not be opened again. */
#ifndef WIRETALE_PRIVILEGE_H
#define WIRETALE_PRIVILEGE_H

#include <stdbool.h>
#include <sys/types.h>

#include "folder.h"

struct identity {
    bool changes; /* root, to be given up */
    uid_t user;
    gid_t group;
    char name[64];
};

bool privilege_may_capture(void);
/* Fails with the one command that grants it. */
_Noreturn void privilege_refuse(const char *reason);
/* Chooses the user, and sees to it that the folder is one that this user may write to: a folder
 * that this run made is given to the user, and in another one that refuses the user a subfolder is
 * used. Fails with one line. */
void privilege_choose(struct identity *identity, const char *wanted, struct folder *folder);
/* Becomes it: user, groups, capabilities, and nothing that runs from here may get more. */
void privilege_drop(const struct identity *identity);
/* For a process that opens no interfaces: no capability at all. */
void privilege_drop_all(const struct identity *identity);

#endif
