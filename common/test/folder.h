/* SPDX-License-Identifier: Apache-2.0 */
/* The captures of a folder, for tests that check each of them. */
#ifndef WIRETALE_FOLDER_H
#define WIRETALE_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <string.h>

/* Calls `check` with the path of each capture in a folder, in the order of the file system. Returns
 * the number of captures: 0 if the folder is missing, as those beside the repository may be. */
static inline unsigned each_capture(const char *folder, void (*check)(const char *path)) {
    unsigned captures = 0;
    char path[4096];
    DIR *opened = opendir(folder);
    for (struct dirent *entry; opened && (entry = readdir(opened));)
        if ((strstr(entry->d_name, ".pcap") || strstr(entry->d_name, ".cap")) &&
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path) {
            check(path);
            captures++;
        }
    if (opened)
        closedir(opened);
    return captures;
}

#endif
