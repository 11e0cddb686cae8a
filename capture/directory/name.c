/* SPDX-License-Identifier: Apache-2.0 */
/* Names of finished files: whose they are, and in which order they were captured. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "directory/directory.h"
#include "directory/lock.h"

#define MOST_NUMBER 4000000000u /* numbers above it are of nobody's capture */

struct name_parts {
    size_t prefix;   /* its length */
    uint64_t number; /* 0: none */
    char suffix[16]; /* without .zst */
};

/* The form is exact, because a ring deletes files by it. "-1" is of directory_other_name(). */
static bool split_name(const char *name, struct name_parts *parts) {
    static const char form[] = "_[0-9]{8}T[0-9]{6}\\.[0-9]{9}Z_([0-9]{5,10})(-[0-9]+)?"
                               "(\\.p?cap|\\.pcapng)?(\\.zst)?$";
    static regex_t compiled;
    static bool is_compiled;
    regmatch_t part[4];
    if (!is_compiled)
        is_compiled = !regcomp(&compiled, form, REG_EXTENDED);
    if (!is_compiled || regexec(&compiled, name, 4, part, 0))
        return false;
    *parts = (struct name_parts){.prefix = (size_t)part[0].rm_so,
                                 .number = strtoull(name + part[1].rm_so, NULL, 10)};
    if (part[3].rm_so >= 0)
        snprintf(parts->suffix, sizeof parts->suffix, "%.*s", (int)(part[3].rm_eo - part[3].rm_so),
                 name + part[3].rm_so);
    return *name != '.' && parts->number <= MOST_NUMBER;
}

/* Returns whether another running capture holds the lock of the prefix. */
static bool is_in_use(int directory_fd, const char *name, const struct name_parts *parts) {
    char lock[NAME_SIZE];
    return snprintf(lock, sizeof lock, ".%.*s%s.lock", (int)parts->prefix, name, parts->suffix) <
               NAME_SIZE &&
           lock_file_is_held(directory_fd, lock);
}

bool directory_owns_name(const struct directory *directory, const char *name) {
    struct name_parts parts;
    if (!split_name(name, &parts))
        return false;
    if (strlen(directory->prefix) == parts.prefix &&
        !strncmp(name, directory->prefix, parts.prefix) && !strcmp(parts.suffix, directory->suffix))
        return true;
    return !directory->named && parts.prefix && *parts.suffix &&
           !is_in_use(directory->fd, name, &parts);
}

bool directory_begin_ns(const char *name, int64_t *begin_ns) {
    struct name_parts parts;
    struct tm time = {0};
    if (!split_name(name, &parts))
        return false;
    const char *fraction = strptime(name + parts.prefix + 1, "%Y%m%dT%H%M%S", &time);
    if (!fraction)
        return false;
    *begin_ns = timegm(&time) * NS_PER_S + atoll(fraction + 1);
    return true;
}

int directory_compare_names(const char *one, const char *other) {
    struct name_parts first, second;
    if (split_name(one, &first) && split_name(other, &second) && first.number != second.number)
        return first.number < second.number ? -1 : 1;
    return strcmp(one, other);
}

/* Temporary names count, too: they get their final ones later. */
void directory_continue_numbers(struct directory *directory) {
    struct name_parts parts;
    char name[NAME_SIZE];
    int fd = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        const char *final = directory_final_name(entry->d_name, name) ? name : entry->d_name;
        if (split_name(final, &parts) && parts.number > directory->number)
            directory->number = (uint32_t)parts.number;
    }
    if (listing)
        closedir(listing);
    else if (fd >= 0)
        close(fd);
}
