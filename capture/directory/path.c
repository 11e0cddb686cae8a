/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves a path component by component with O_PATH | O_NOFOLLOW, and reads each symbolic link
 * itself. Checks are on open descriptors, so that no component can be exchanged between check and
 * use. The rule for links is that of the kernel's protected_symlinks, for all directories: root's
 * links and the caller's are followed; links of one other user are followed only to what this user
 * owns. */
#include "directory/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/log.h"

#define MAX_LINKS 40 /* as in the kernel */

struct walk {
    struct resolved_path *place;
    const char *named;
    char rest[PATH_MAX]; /* components that remain */
    int links;
};

/* The path is only for messages and for paths that are given to commands; the walk itself uses
 * descriptors. */
bool path_append(char path[PATH_MAX], const char *name) {
    size_t length = strlen(path);
    const char *between = length && path[length - 1] != '/' ? "/" : "";
    return snprintf(path + length, PATH_MAX - length, "%s%s", between, name) <
           (int)(PATH_MAX - length);
}

bool path_ends_with(const char *path, const char *end) {
    size_t length = strlen(path), end_length = strlen(end);
    return length > end_length && !strcmp(path + length - end_length, end);
}

/* A missing permission has another exit code than a missing directory. */
static _Noreturn void refuse(const char *path, int reason) {
    fail(reason == EACCES ? EXIT_MISSING : EXIT_IO, "cannot use directory %s: %s",
         *path ? path : ".", strerror(reason));
}

void path_check_owner(uid_t linker, uid_t owner, const char *path) {
    if (linker && linker != owner)
        fail(EXIT_IO,
             "%s is reached by a symbolic link of another user, to whom it does not belong: name "
             "it without the link",
             path);
}

/* Starts at the root or at the current directory. */
static void start(struct resolved_path *place, const char *path) {
    const char *from = *path == '/' ? "/" : ".";
    place->fd = open(from, O_PATH | O_DIRECTORY | O_CLOEXEC);
    place->around_fd = open(from, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (place->fd < 0 || place->around_fd < 0)
        refuse(from, errno);
    strcpy(place->path, *path == '/' ? "/" : "");
}

static void leave(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void path_close(struct resolved_path *place) {
    leave(&place->fd);
    leave(&place->around_fd);
    leave(&place->node_fd);
}

/* Returns the descriptor if the component is a number in /proc/self/fd, as behind /dev/stdout and
 * shell's >(...); else -1. */
static int own_descriptor(const struct resolved_path *place, const char *name) {
    struct stat own, here;
    char *end;
    if (stat("/proc/self/fd", &own) || fstat(place->fd, &here) || !is_same_file(&own, &here))
        return -1;
    long number = strtol(name, &end, 10);
    return end == name || *end || number < 0 || number > INT_MAX ? -1 : (int)number;
}

/* Applies the rule for links to one link, and remembers its owner. In sticky directories that all
 * may write to, such as /tmp, the kernel does not follow other users' links either (proc(5),
 * protected_symlinks). Two different owners on one path are refused, because the target could
 * belong to only one of them. */
static void check_owner(struct resolved_path *place, const char *path, uid_t linker) {
    struct stat directory;
    if (!linker || linker == geteuid())
        return;
    bool foreign =
        fstat(place->fd, &directory) ||
        (directory.st_mode & S_ISVTX && directory.st_mode & S_IWOTH && directory.st_uid != linker);
    if (foreign || (place->linker && place->linker != linker))
        fail(EXIT_IO,
             "%s is a symbolic link of another user, which is not followed: name its target", path);
    place->linker = linker;
}

/* A magic link in /proc leads to its target without a name, and its text may be another file's name
 * or none. */
static bool is_true(const struct resolved_path *place, const char *name, const char *target) {
    struct statfs system;
    struct stat behind, named;
    if (*target != '/' || fstatfs(place->fd, &system) || system.f_type != PROC_SUPER_MAGIC)
        return true;
    return !fstatat(place->fd, name, &behind, 0) && !stat(target, &named) &&
           is_same_file(&behind, &named);
}

/* Replaces the link by its target: the rest of the walk is the target and the components after it.
 */
static void follow(struct walk *walk, int link, const char *name, uid_t linker, const char *after) {
    struct resolved_path *place = walk->place;
    char target[PATH_MAX], joined[PATH_MAX], path[PATH_MAX];
    strcpy(path, place->path);
    path_append(path, name);
    if (++walk->links > MAX_LINKS)
        fail(EXIT_IO, "%s: too many symbolic links", walk->named);
    check_owner(place, path, linker);
    ssize_t length = readlinkat(link, "", target, sizeof target - 1);
    if (length <= 0)
        fail(EXIT_IO, "%s is a symbolic link that cannot be read", path);
    target[length] = '\0';
    if (!is_true(place, name, target))
        fail(EXIT_IO, "%s leads to a file without a name: name another directory", path);
    if (snprintf(joined, sizeof joined, "%s%s%s", target, *after ? "/" : "", after) >=
        (int)sizeof joined)
        fail(EXIT_IO, "%s is a symbolic link to a path that is too long", path);
    strcpy(walk->rest, joined);
    if (*target != '/')
        return;
    path_close(place);
    start(place, target);
}

/* Opens a component, which may be a link, and stores the status of the open file. */
static int open_part(const struct resolved_path *place, const char *name, bool last,
                     struct stat *info) {
    char path[PATH_MAX];
    int node = openat(place->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int reason = node < 0 || fstat(node, info) ? errno : 0;
    if (!reason && !last && !S_ISDIR(info->st_mode) && !S_ISLNK(info->st_mode))
        reason = ENOTDIR;
    if (!reason || (last && reason == ENOENT))
        return node;
    strcpy(path, place->path);
    if (reason != EACCES) /* else the directory itself is not searchable */
        path_append(path, name);
    refuse(path, reason);
}

/* Walks one component. Returns false if it is the last. */
static bool walk_part(struct walk *walk) {
    struct resolved_path *place = walk->place;
    char name[NAME_MAX + 1] = ".";
    struct stat info;
    const char *part = walk->rest + strspn(walk->rest, "/");
    size_t length = strcspn(part, "/");
    const char *after = part + length + strspn(part + length, "/");
    bool last = !*after;
    if (length >= sizeof name)
        fail(EXIT_USAGE, "%s: the name is too long", walk->named);
    if (length)
        snprintf(name, sizeof name, "%.*s", (int)length, part);
    if (last)
        strcpy(place->name, name);
    if (last && (place->descriptor = own_descriptor(place, name)) >= 0)
        return false;
    int node = open_part(place, name, last, &info);
    if (node >= 0 && S_ISLNK(info.st_mode)) {
        place->linked |= last;
        follow(walk, node, name, info.st_uid, after);
        close(node);
        return true;
    }
    if (last) {
        place->node_fd = node; /* -1 if it does not exist */
        if (node >= 0)
            place->info = info;
        return false;
    }
    leave(&place->around_fd);
    place->around_fd = place->fd;
    place->fd = node;
    if (!path_append(place->path, name))
        refuse(place->path, ENAMETOOLONG);
    memmove(walk->rest, after, strlen(after) + 1);
    return true;
}

/* Walks component by component, and into the targets of links, until the last component is reached.
 */
void path_resolve(struct resolved_path *place, const char *path) {
    struct walk walk = {.place = place, .named = path};
    *place = (struct resolved_path){.node_fd = -1, .descriptor = -1};
    if (snprintf(walk.rest, sizeof walk.rest, "%s", path) >= (int)sizeof walk.rest)
        fail(EXIT_USAGE, "%s: the path is too long", path);
    if (!*path)
        refuse("''", ENOENT);
    start(place, path);
    while (walk_part(&walk))
        continue;
}

/* For a directory whose parent was replaced. No link is followed at all, because no one checks
 * owners any more. */
int path_open_directory(const char *path) {
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS};
    return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}
