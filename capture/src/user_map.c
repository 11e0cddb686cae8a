/* SPDX-License-Identifier: Apache-2.0 */
#include "user_map.h"

#include <stdio.h>
#include <string.h>

bool user_map_has(const char *path, unsigned number) {
    FILE *file = fopen(path, "re");
    if (!file)
        return true;
    unsigned first, outside, count;
    bool has = false;
    while (!has && fscanf(file, "%u %u %u", &first, &outside, &count) == 3)
        has = number >= first && number - first < count;
    fclose(file);
    return has;
}

/* "deny" where an ordinary user made the namespace: groups may be there to keep somebody out. */
static bool may_set_groups(void) {
    char word[8] = "";
    FILE *file = fopen("/proc/self/setgroups", "re");
    if (!file)
        return true;
    bool allowed = !fgets(word, sizeof word, file) || strncmp(word, "deny", 4);
    fclose(file);
    return allowed;
}

bool user_map_may_become(uid_t user, gid_t group) {
    return may_set_groups() && user_map_has("/proc/self/uid_map", user) &&
           user_map_has("/proc/self/gid_map", group);
}
