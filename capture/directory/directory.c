/* SPDX-License-Identifier: Apache-2.0 */
/* Opens what -w names and gives names to files. All calls are relative to the open directory
 * (openat and the like) and refuse symbolic links, because the directory may belong to another user
 * than the process, who could replace any name at any time. For the same reason what was opened is
 * checked after it is open, never before. */
#include "directory/directory.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "directory/lock.h"
#include "directory/path.h"

#define DIRECTORY_MODE 0750
#define TRIES          100 /* for a name that is not taken */

static const char *const capture_suffixes[] = {".pcapng", ".pcap", ".cap", ".pcapng.zst",
                                               ".pcap.zst"};

/* Returns the suffix of a capture in the name, the longest if several match, or NULL. */
static const char *capture_suffix(const char *name) {
    const char *found = NULL;
    for (size_t i = 0; i < sizeof capture_suffixes / sizeof *capture_suffixes; i++)
        if (path_ends_with(name, capture_suffixes[i]))
            found = capture_suffixes[i];
    return found;
}

/* Replaces all but letters, digits and harmless signs, because names of interfaces may contain any
 * byte but a slash. */
static void copy_safe(char *to, size_t size, const char *from) {
    size_t i = 0;
    for (; from[i] && i + 1 < size; i++)
        to[i] = isalnum((unsigned char)from[i]) || strchr("-_.+%", from[i]) ? from[i] : '-';
    to[i] = '\0';
}

/* Connects by the path of the open node, since its name may stand for another socket by now.
 * Returns -1 with errno. */
static int connect_socket(int node) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d", node);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || !connect(fd, (struct sockaddr *)&address, sizeof address))
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

/* Opens the file that path_resolve() found. If another file has its name by now, it exits. */
static int open_node(struct directory *directory, const struct resolved_path *place) {
    struct stat opened;
    if (!path_append(directory->path, place->name))
        fail(EXIT_USAGE, "-w: the path is too long");
    path_check_owner(place->linker, place->info.st_uid, directory->path);
    if (S_ISSOCK(place->info.st_mode))
        return connect_socket(place->node_fd);
    if (S_ISFIFO(place->info.st_mode))
        log_info("%s is a FIFO: waiting for its reader", directory->path);
    int fd = openat(place->fd, place->name, O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -1;
    if (fstat(fd, &opened) || !is_same_file(&opened, &place->info))
        fail(EXIT_IO, "%s was replaced by another file", directory->path);
    return fd;
}

/* Opens a stream: a descriptor of this process, a FIFO, a device or a socket. */
static void open_stream(struct directory *directory, const struct settings *settings,
                        const struct resolved_path *place) {
    directory->is_stream = true;
    settings_refuse_files(settings);
    directory->fd = place->descriptor >= 0
                        ? fcntl(place->descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                        : open_node(directory, place);
    if (directory->fd < 0)
        fail(EXIT_IO, "cannot write to %s: %s", settings->output, strerror(errno));
    if (isatty(directory->fd))
        fail(EXIT_USAGE, "-w %s would write packets to the terminal: expected a pipe or a file",
             settings->output);
}

static void lock_name(const struct directory *directory, char name[NAME_SIZE]) {
    snprintf(name, NAME_SIZE, ".%s%s.lock", directory->prefix, directory->suffix);
}

bool directory_lock_is_stuck(const struct directory *directory, char name[NAME_SIZE]) {
    struct stat info;
    lock_name(directory, name);
    return directory->lock_fd < 0 && !fstatat(directory->fd, name, &info, AT_SYMLINK_NOFOLLOW);
}

bool directory_lock(struct directory *directory) {
    char name[NAME_SIZE];
    lock_name(directory, name);
    if (directory->lock_fd < 0)
        directory->lock_fd = lock_file_take(directory->fd, name);
    return directory->lock_fd >= 0;
}

void directory_unlock(struct directory *directory) {
    char name[NAME_SIZE];
    if (directory->lock_fd < 0)
        return;
    lock_name(directory, name);
    lock_file_release(directory->fd, name, directory->lock_fd);
    directory->lock_fd = -1;
}

/* To be called after SIGHUP, or if the directory is missing. It is opened through its parent, so
 * that links on the path above cannot redirect it. On success the old descriptor is closed; the
 * lock is dropped if the path now leads to another directory. */
bool directory_reopen(struct directory *directory) {
    static const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const char *slash = strrchr(directory->path, '/'), *base = slash ? slash + 1 : directory->path;
    struct stat info, before;
    int fd = openat(directory->parent_fd, *base ? base : ".", flags);
    if (fd < 0) /* the directory around it may have changed, too */
        fd = path_open_directory(directory->path);
    if (fd < 0 || fstat(fd, &info))
        return false;
    if (directory->fd >= 0) {
        if (fstat(directory->fd, &before) || !is_same_file(&before, &info))
            directory_unlock(directory);
        close(directory->fd);
    }
    directory->fd = fd;
    directory->owner = info.st_uid;
    directory->group = info.st_gid;
    directory->mode = info.st_mode;
    return true;
}

/* Opens the directory and checks its owner. A directory that all users can write to is allowed,
 * with a warning. */
static void open_directory(struct directory *directory, int parent_fd) {
    directory->parent_fd = fcntl(parent_fd, F_DUPFD_CLOEXEC, 0);
    if (!directory_reopen(directory))
        fail(errno == EACCES ? EXIT_MISSING : EXIT_IO, "cannot use directory %s: %s",
             directory->path, strerror(errno));
    path_check_owner(directory->linker, directory->owner, directory->path);
    if (directory->mode & S_IWOTH)
        log_warning("all users may write to %s: chmod o-w %s", directory->path, directory->path);
}

/* Creates a directory that -w names if it does not exist. A directory that is to contain the named
 * file is never created. */
static void make_directory(struct directory *directory, const struct resolved_path *place) {
    struct stat around;
    if (!path_append(directory->path, place->name))
        fail(EXIT_USAGE, "-w: the path is too long");
    if (!place->info.st_mode && !fstat(place->fd, &around))
        path_check_owner(directory->linker, around.st_uid, directory->path);
    directory->made =
        !place->linked && !place->linker && !mkdirat(place->fd, place->name, DIRECTORY_MODE);
    open_directory(directory, place->fd);
    if (directory->owner != geteuid())
        directory->made = false; /* another directory has taken its place */
}

/* -w FILE: opens the directory that contains the file, and stores its name as the prefix. */
static void open_parent(struct directory *directory, const struct resolved_path *place) {
    const char *base = place->name, *suffix = capture_suffix(base);
    size_t length = strlen(base) - (suffix ? strlen(suffix) : 0);
    if (length >= sizeof directory->prefix)
        fail(EXIT_USAGE, "-w %s: the name is too long", base);
    snprintf(directory->prefix, sizeof directory->prefix, "%.*s", (int)length, base);
    *directory->suffix = '\0';
    if (suffix)
        snprintf(directory->suffix, sizeof directory->suffix, "%.*s",
                 (int)(strlen(suffix) - (path_ends_with(suffix, COMPRESSED) ? 4 : 0)), suffix);
    if (!*directory->path)
        strcpy(directory->path, ".");
    open_directory(directory, place->around_fd);
}

/* A capture of hours must not destroy an earlier one, nor end under another name than the one that
 * was given. */
static void refuse_existing(struct directory *directory, const struct settings *settings) {
    char name[NAME_SIZE];
    struct stat info;
    directory_next_name(directory, realtime_ns(), name);
    directory->number = 0;
    if (settings->compress && strlen(name) + sizeof COMPRESSED <= sizeof name)
        strcat(name, COMPRESSED);
    if (!fstatat(directory->fd, name, &info, AT_SYMLINK_NOFOLLOW) && info.st_size)
        fail(EXIT_IO, "-w %s: %s exists: expected another name, a directory, or --overwrite",
             settings->output, name);
}

/* Without rotation the file gets exactly the name that -w gives; with rotation the name becomes a
 * prefix. */
static void open_file(struct directory *directory, const struct settings *settings,
                      const struct resolved_path *place) {
    directory->plain = !settings_rotate(settings);
    directory->named = true;
    directory->compressed = settings->compress;
    open_parent(directory, place);
    if (directory->plain && !settings->overwrite)
        refuse_existing(directory, settings);
}

static bool is_stream(const struct stat *info) {
    return info->st_mode && !S_ISREG(info->st_mode) && !S_ISDIR(info->st_mode);
}

/* Returns whether a name that does not exist yet stands for a file: it has the suffix of a capture,
 * or a pattern of strftime(). */
static bool is_file_name(const char *path) {
    return capture_suffix(path) || strchr(path, '%');
}

/* Resolves the path. Returns whether it ends with a slash, as only directories do. */
static bool find_place(struct resolved_path *place, const char *output, char path[PATH_MAX]) {
    if (snprintf(path, PATH_MAX, "%s", output) >= PATH_MAX)
        fail(EXIT_USAGE, "-w: the path is too long");
    size_t length = strlen(path);
    bool slash = length > 1 && path[length - 1] == '/';
    while (length > 1 && path[length - 1] == '/')
        path[--length] = '\0';
    if (strcmp(path, "-"))
        path_resolve(place, path);
    else
        *place = (struct resolved_path){
            .fd = -1, .around_fd = -1, .node_fd = -1, .descriptor = STDOUT_FILENO};
    return slash;
}

/* Called before inherited descriptors are closed, of which this one must be kept. directory_open()
 * resolves the path again. */
int directory_descriptor(const char *output) {
    char path[PATH_MAX];
    struct resolved_path place;
    find_place(&place, output, path);
    path_close(&place);
    if (place.descriptor >= 0 && fcntl(place.descriptor, F_GETFD) < 0)
        fail(EXIT_IO, "cannot write to %s: %s", output, strerror(errno));
    return place.descriptor;
}

/* A name with the suffix of a capture or with a % is a file, all others are directories, unless a
 * file or a stream has the name. */
void directory_open(struct directory *directory, const struct settings *settings,
                    const char *interfaces) {
    char path[PATH_MAX];
    struct resolved_path place;
    bool slash = find_place(&place, settings->output, path);
    mode_t mode = place.info.st_mode;
    *directory =
        (struct directory){.fd = -1, .lock_fd = -1, .parent_fd = -1, .linker = place.linker};
    snprintf(directory->suffix, sizeof directory->suffix, "%s",
             settings->format == RECORD_PCAP ? ".pcap" : ".pcapng");
    strcpy(directory->path, place.path);
    if (place.descriptor >= 0 || is_stream(&place.info)) {
        open_stream(directory, settings, &place);
    } else if (!slash && (mode ? S_ISREG(mode) : is_file_name(path) || is_file_name(place.name))) {
        open_file(directory, settings, &place);
    } else { /* a directory, which may not exist yet */
        copy_safe(directory->prefix, sizeof directory->prefix, interfaces);
        make_directory(directory, &place);
    }
    path_close(&place);
}

/* The owner of the directory may exchange the subdirectory between two calls. Therefore it is
 * opened first, and owner and type are checked on the descriptor. */
void directory_enter_subdirectory(struct directory *directory, const char *name, uid_t user,
                                  gid_t group) {
    struct directory inner = *directory;
    struct stat info;
    directory->sealed = directory->plain && !directory->compressed;
    if (directory->sealed)
        return;
    if (directory->named)
        fail(EXIT_MISSING,
             "%s may not write to the directory %s, and -z or several files need that: expected "
             "another directory, or a new one",
             name, directory->path);
    if (snprintf(inner.path, sizeof inner.path, "%s/%s", directory->path, name) >=
        (int)sizeof inner.path)
        fail(EXIT_USAGE, "-w: the path is too long");
    bool made = !mkdirat(directory->fd, name, DIRECTORY_MODE);
    inner.fd = openat(directory->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner.fd < 0 || fstat(inner.fd, &info))
        fail(EXIT_MISSING, "%s may not write to %s, and cannot use directory %s: %s", name,
             directory->path, inner.path, strerror(errno));
    if (made && !info.st_uid && !fchown(inner.fd, user, group))
        info.st_uid = user;
    if (info.st_uid != user)
        fail(EXIT_MISSING, "%s may not write to %s, and the directory %s is another user's", name,
             directory->path, inner.path);
    log_info("%s may not write to %s: files go to %s", name, directory->path, inner.path);
    close(directory->parent_fd);
    inner.parent_fd = directory->fd;
    *directory = inner;
}

/* Conversions of strftime() in the prefix are expanded with the time of the file. The number keeps
 * names unique within one nanosecond, and shows a gap if a file was removed. */
void directory_next_name(struct directory *directory, int64_t time_ns, char name[NAME_SIZE]) {
    char prefix[160], time[32];
    time_t seconds = time_ns / NS_PER_S;
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(time, sizeof time, "%Y%m%dT%H%M%S", &parts);
    if (!strchr(directory->prefix, '%') ||
        !strftime(prefix, sizeof prefix, directory->prefix, &parts))
        snprintf(prefix, sizeof prefix, "%s", directory->prefix);
    directory->number++;
    if (directory->plain && directory->number == 1)
        snprintf(name, NAME_SIZE, "%s%s", prefix, directory->suffix);
    else
        snprintf(name, NAME_SIZE, "%s_%s.%09dZ_%05u%s", prefix, time, (int)(time_ns % NS_PER_S),
                 directory->number, directory->suffix);
}

/* Returns the one file of a sealed directory, and then -1. */
static int take_sealed(struct directory *directory, char temporary[NAME_SIZE]) {
    int fd = directory->sealed_fd;
    directory->sealed_fd = -1;
    strcpy(temporary, directory->sealed_name);
    if (fd < 0)
        errno = ENOENT;
    return fd;
}

/* Temporary files are locked while they are written: a second start recovers only files that it can
 * lock. */
int directory_create(struct directory *directory, const char *name, char temporary[NAME_SIZE]) {
    if (*directory->sealed_name)
        return take_sealed(directory, temporary);
    for (int i = 0; i < TRIES; i++) {
        char more[16] = "";
        if (i)
            snprintf(more, sizeof more, ".%d", i);
        if (snprintf(temporary, NAME_SIZE, ".%s%s" TEMPORARY, name, more) >= NAME_SIZE) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = openat(directory->fd, temporary,
                        O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, DIRECTORY_FILE_MODE);
        if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
            return fd;
        if (fd >= 0)
            close(fd);
        else if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* Parses ".NAME.part" or ".NAME.3.part", if NAME ends as captures do. */
bool directory_final_name(const char *temporary, char name[NAME_SIZE]) {
    if (*temporary != '.' || !path_ends_with(temporary, TEMPORARY) ||
        strlen(temporary) >= NAME_SIZE)
        return false;
    size_t length = strlen(temporary) - 1 - strlen(TEMPORARY);
    memcpy(name, temporary + 1, length);
    name[length] = '\0';
    char *number = strrchr(name, '.');
    if (number && number[1] && !number[1 + strspn(number + 1, "0123456789")])
        *number = '\0';
    return capture_suffix(name);
}

/* The number is placed before the suffix, so that the name still ends as a capture. */
void directory_other_name(const char *name, int number, char other[NAME_SIZE]) {
    const char *suffix = capture_suffix(name);
    size_t stem = strlen(name) - (suffix ? strlen(suffix) : 0);
    snprintf(other, NAME_SIZE, "%.*s-%d%s", (int)stem, name, number, suffix ? suffix : "");
}
