/* SPDX-License-Identifier: Apache-2.0 */
#include "find/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "directory/directory.h"
#include "directory/path.h"

static void add_file(struct file_list *list, const struct folder *folder, const char *name,
                     bool open_capture) {
    if (list->count == list->room) {
        list->room = 2 * list->room + 256;
        list->files = reallocarray(list->files, list->room, sizeof *list->files);
    }
    char *copy = strdup(name);
    if (!list->files || !copy)
        fail(EXIT_IO, "out of memory");
    list->files[list->count++] =
        (struct found_file){.folder = folder, .name = copy, .open_capture = open_capture, .fd = -1};
}

/* A compressed file is written beside the plain one, which is complete and is read instead. */
static bool is_wanted(const char *name, bool *open_capture) {
    char final[NAME_SIZE];
    *open_capture =
        *name == '.' && directory_final_name(name, final) && !path_ends_with(final, COMPRESSED);
    return *open_capture || *name != '.';
}

/* A name that is renamed meanwhile may be in neither place, but then it is in the second reading.
 */
static void read_folder(struct file_list *list, struct folder *folder) {
    DIR *directory = fdopendir(dup(folder->fd));
    bool open_capture;
    if (!directory)
        fail(EXIT_MISSING, "%s: %s", folder->path, strerror(errno));
    for (int reading = 0; reading < 2; reading++, rewinddir(directory))
        for (struct dirent *entry; (entry = readdir(directory));)
            if (is_wanted(entry->d_name, &open_capture))
                add_file(list, folder, entry->d_name, open_capture);
    closedir(directory);
}

static void add_operand(struct file_list *list, struct folder *folder, const char *path) {
    const char *slash = strrchr(path, '/');
    folder->path = path;
    folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd >= 0) {
        read_folder(list, folder);
        return;
    }
    int reason = errno;
    if (reason == ENOTDIR) { /* a file */
        folder->path = slash ? strndup(path, (size_t)(slash - path) + 1) : ".";
        folder->fd = folder->path ? open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        reason = errno;
    }
    if (folder->fd < 0)
        fail(EXIT_MISSING, "%s: %s", path, strerror(reason));
    add_file(list, folder, slash ? slash + 1 : path, false);
    list->files[list->count - 1].is_operand = true;
}

static int compare_names(const void *one, const void *other) {
    const struct found_file *a = one, *b = other;
    int order = (a->folder > b->folder) - (a->folder < b->folder);
    return order ? order : strcmp(a->name, b->name);
}

static bool has_name(const struct file_list *list, size_t count, const struct folder *folder,
                     char *name) {
    const struct found_file wanted = {.folder = folder, .name = name};
    return bsearch(&wanted, list->files, count, sizeof wanted, compare_names) != NULL;
}

/* Returns whether the file of a temporary name is listed by its final name, too. */
static bool is_published(const struct file_list *list, size_t count,
                         const struct found_file *file) {
    char final[NAME_SIZE + sizeof COMPRESSED];
    if (!file->open_capture || !directory_final_name(file->name, final))
        return false;
    bool is_listed = has_name(list, count, file->folder, final);
    strcat(final, COMPRESSED);
    return is_listed || has_name(list, count, file->folder, final);
}

/* Removes copies, in a sorted list. */
static void remove_copies(struct file_list *list) {
    size_t kept = 0, count = list->count;
    for (size_t i = 0; i < count; i++)
        if (!kept || compare_names(&list->files[i], &list->files[kept - 1]))
            list->files[kept++] = list->files[i];
        else
            free(list->files[i].name);
    list->count = kept;
}

void file_list_read(struct file_list *list, const struct query *query) {
    *list = (struct file_list){0};
    for (uint64_t i = 0; i < query->folder_count; i++)
        add_operand(list, &list->folders[i], query->folders[i]);
    if (!list->count)
        return;
    qsort(list->files, list->count, sizeof *list->files, compare_names);
    remove_copies(list);
    for (size_t i = 0; i < list->count; i++)
        list->files[i].is_copy = is_published(list, list->count, &list->files[i]);
}
