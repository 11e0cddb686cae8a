/* SPDX-License-Identifier: Apache-2.0 */
#include "session/kernel_drops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two lines begin with "Udp:", the names and their values. */
static int64_t of_ipv4(void) {
    char names[1024], values[1024] = "";
    FILE *file = fopen("/proc/thread-self/net/snmp", "re");
    int64_t found = -1;
    while (file && fgets(names, sizeof names, file))
        if (!strncmp(names, "Udp: ", 5) && fgets(values, sizeof values, file))
            break;
    char *name_rest = names, *value_rest = values, *name, *value;
    while (*values && (name = strsep(&name_rest, " \n")) && (value = strsep(&value_rest, " \n")))
        if (!strcmp(name, "RcvbufErrors"))
            found = atoll(value);
    if (file)
        fclose(file);
    return found;
}

static int64_t of_ipv6(void) {
    char name[64];
    long long value;
    FILE *file = fopen("/proc/thread-self/net/snmp6", "re");
    int64_t found = 0; /* a host without IPv6 has none */
    while (file && fscanf(file, "%63s %lld", name, &value) == 2)
        if (!strcmp(name, "Udp6RcvbufErrors"))
            found = value;
    if (file)
        fclose(file);
    return found;
}

int64_t kernel_udp_drops(void) {
    int64_t four = of_ipv4();
    return four < 0 ? -1 : four + of_ipv6();
}
