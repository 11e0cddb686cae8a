/* SPDX-License-Identifier: Apache-2.0 */
/* Which users there are for a process in a user namespace (user_namespaces(7)): only those that its
 * maps have a number for. Its root may well be an ordinary user outside, who can become nobody
 * else.
 */
#ifndef WIRETALE_USER_MAP_H
#define WIRETALE_USER_MAP_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether a map, as /proc/self/uid_map is, has that number. Without the file there are all. */
bool user_map_has(const char *path, unsigned number);
/* Whether root of this namespace can become that user and give up its groups. */
bool user_map_may_become(uid_t user, gid_t group);

#endif
