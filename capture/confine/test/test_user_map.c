/* SPDX-License-Identifier: Apache-2.0 */
/* A user is there when a line of the map has their number. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/test/check.h"
#include "confine/confine.h"

static bool has(const char *map, unsigned number) {
    char path[] = "/tmp/wiretale-user-map-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    FILE *file = fdopen(fd, "w");
    CHECK(file);
    fputs(map, file);
    fclose(file);
    bool found = user_map_has(path, number);
    unlink(path);
    return found;
}

int main(void) {
    static const char all[] = "         0          0 4294967295\n";
    static const char one[] = "         0       1000          1\n";
    static const char two[] = "0 1000 1\n1 100000 65536\n";
    CHECK(has(all, 0) && has(all, 65534) && has(all, 4294967294u));
    CHECK(has(one, 0) && !has(one, 1) && !has(one, 1000) && !has(one, 65534));
    CHECK(has(two, 0) && has(two, 1) && has(two, 65534) && has(two, 65536) && !has(two, 65537));
    CHECK(!has("", 0) && !has("nonsense\n", 0));
    CHECK(user_map_has("/nowhere/uid_map", 5)); /* a kernel without user namespaces */
    CHECK(user_map_has("/proc/self/uid_map", getuid()));
    return 0;
}
