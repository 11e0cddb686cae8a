/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

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
#include "link_follow.h"

#define FOLDER_MODE 0750
#define TRIES       100 /* for a name that is not taken */

static const char *const capture_suffixes[] = {".pcapng", ".pcap", ".cap", ".pcapng.zst",
                                               ".pcap.zst"};

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), more = strlen(end);
    return length > more && !strcmp(text + length - more, end);
}

static const char *capture_suffix(const char *name) {
    const char *found = NULL;
    for (size_t i = 0; i < sizeof capture_suffixes / sizeof *capture_suffixes; i++)
        if (ends_with(name, capture_suffixes[i]))
            found = capture_suffixes[i];
    return found;
}

static void copy_safe(char *to, size_t size, const char *from) {
    size_t i = 0;
    for (; from[i] && i + 1 < size; i++)
        to[i] = isalnum((unsigned char)from[i]) || strchr("-_.+%", from[i]) ? from[i] : '-';
    to[i] = '\0';
}

static int connect_socket(int node) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    link_own_path(address.sun_path, node);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || !connect(fd, (struct sockaddr *)&address, sizeof address))
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

/* What was looked at, and nothing that has taken its name since. */
static int open_node(struct folder *folder, const struct place *place) {
    struct stat opened;
    if (!link_join(folder->path, place->name))
        fail(EXIT_USAGE, "-w: the path is too long");
    link_check(place->linker, place->told.st_uid, folder->path);
    if (S_ISSOCK(place->told.st_mode))
        return connect_socket(place->node_fd);
    if (S_ISFIFO(place->told.st_mode))
        log_info("%s is a FIFO: waiting for its reader", folder->path);
    int fd = openat(place->fd, place->name, O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -1;
    if (fstat(fd, &opened) || opened.st_dev != place->told.st_dev ||
        opened.st_ino != place->told.st_ino)
        fail(EXIT_IO, "%s has become another file meanwhile", folder->path);
    return fd;
}

/* An open descriptor of this process, or a path: a FIFO, a device or a socket. */
static void open_stream(struct folder *folder, const struct settings *settings,
                        const struct place *place) {
    folder->is_stream = true;
    settings_refuse_files(settings);
    folder->fd = place->descriptor >= 0
                     ? fcntl(place->descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                     : open_node(folder, place);
    if (folder->fd < 0)
        fail(EXIT_IO, "%s cannot be written: %s", settings->output, strerror(errno));
    if (isatty(folder->fd))
        fail(EXIT_USAGE, "-w %s would write packets to the terminal: expected a pipe or a file",
             settings->output);
}

/* The lock of a folder that has become another one is of no use. */
static void unlock_other(struct folder *folder, const struct stat *now) {
    struct stat before;
    if (fstat(folder->fd, &before) || before.st_dev != now->st_dev || before.st_ino != now->st_ino)
        folder_unlock(folder);
}

static bool open_path(struct folder *folder) {
    static const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const char *slash = strrchr(folder->path, '/'), *base = slash ? slash + 1 : folder->path;
    struct stat told;
    int fd = openat(folder->parent_fd, *base ? base : ".", flags);
    if (fd < 0) /* what is around it may be another, too */
        fd = link_free_open(folder->path);
    if (fd < 0 || fstat(fd, &told))
        return false;
    if (folder->fd >= 0) {
        unlock_other(folder, &told);
        close(folder->fd);
    }
    folder->fd = fd;
    folder->owner = told.st_uid;
    folder->group = told.st_gid;
    folder->mode = told.st_mode;
    return true;
}

bool folder_reopen(struct folder *folder) {
    return open_path(folder);
}

static void open_folder(struct folder *folder, int parent_fd) {
    folder->parent_fd = fcntl(parent_fd, F_DUPFD_CLOEXEC, 0);
    if (!open_path(folder))
        fail(errno == EACCES ? EXIT_MISSING : EXIT_IO, "the folder %s cannot be used: %s",
             folder->path, strerror(errno));
    link_check(folder->linker, folder->owner, folder->path);
    if (folder->mode & S_IWOTH)
        log_warning("everybody may write to the folder %s: chmod o-w %s", folder->path,
                    folder->path);
}

/* Only a folder that -w names is made, never one that a file is to be in. */
static void make_folder(struct folder *folder, const struct place *place) {
    struct stat around;
    if (!link_join(folder->path, place->name))
        fail(EXIT_USAGE, "-w: the path is too long");
    if (!place->told.st_mode && !fstat(place->fd, &around))
        link_check(folder->linker, around.st_uid, folder->path);
    folder->made =
        !place->linked && !place->linker && !mkdirat(place->fd, place->name, FOLDER_MODE);
    open_folder(folder, place->fd);
    if (folder->owner != geteuid())
        folder->made = false; /* another one has taken its place */
}

/* `-w FILE`: the folder that it is in, and a prefix. */
static void open_parent(struct folder *folder, const struct place *place) {
    const char *base = place->name, *suffix = capture_suffix(base);
    size_t length = strlen(base) - (suffix ? strlen(suffix) : 0);
    if (length >= sizeof folder->prefix)
        fail(EXIT_USAGE, "-w %s: the name is too long", base);
    snprintf(folder->prefix, sizeof folder->prefix, "%.*s", (int)length, base);
    *folder->suffix = '\0';
    if (suffix)
        snprintf(folder->suffix, sizeof folder->suffix, "%.*s",
                 (int)(strlen(suffix) - (ends_with(suffix, COMPRESSED) ? 4 : 0)), suffix);
    if (!*folder->path)
        strcpy(folder->path, ".");
    open_folder(folder, place->around_fd);
}

/* A capture of hours must not end with the loss of an earlier one, nor under another name. */
static void refuse_existing(struct folder *folder, const struct settings *settings) {
    char name[NAME_ROOM];
    struct stat told;
    folder_next_name(folder, realtime_ns(), name);
    folder->number = 0;
    if (settings->compress && strlen(name) + sizeof COMPRESSED <= sizeof name)
        strcat(name, COMPRESSED);
    if (!fstatat(folder->fd, name, &told, AT_SYMLINK_NOFOLLOW) && told.st_size)
        fail(EXIT_IO, "-w %s: %s is there already: expected another name, a folder, or --overwrite",
             settings->output, name);
}

static void open_file(struct folder *folder, const struct settings *settings,
                      const struct place *place) {
    folder->plain = !settings->file_bytes && !settings->file_ns && !settings->file_packets;
    folder->named = true;
    folder->compressed = settings->compress;
    open_parent(folder, place);
    if (folder->plain && !settings->overwrite)
        refuse_existing(folder, settings);
}

static bool is_stream(const struct stat *told) {
    return told->st_mode && !S_ISREG(told->st_mode) && !S_ISDIR(told->st_mode);
}

static bool is_file_name(const char *path) {
    return capture_suffix(path) || strchr(path, '%');
}

/* True when it ends as folders do. */
static bool find_place(struct place *place, const char *output, char path[PATH_MAX]) {
    if (snprintf(path, PATH_MAX, "%s", output) >= PATH_MAX)
        fail(EXIT_USAGE, "-w: the path is too long");
    size_t length = strlen(path);
    bool slash = length > 1 && path[length - 1] == '/';
    while (length > 1 && path[length - 1] == '/')
        path[--length] = '\0';
    if (strcmp(path, "-"))
        link_follow(place, path);
    else
        *place =
            (struct place){.fd = -1, .around_fd = -1, .node_fd = -1, .descriptor = STDOUT_FILENO};
    return slash;
}

int folder_descriptor(const char *output) {
    char path[PATH_MAX];
    struct place place;
    find_place(&place, output, path);
    link_leave(&place);
    if (place.descriptor >= 0 && fcntl(place.descriptor, F_GETFD) < 0)
        fail(EXIT_IO, "%s cannot be written: %s", output, strerror(errno));
    return place.descriptor;
}

void folder_open(struct folder *folder, const struct settings *settings, const char *interfaces) {
    char path[PATH_MAX];
    struct place place;
    bool slash = find_place(&place, settings->output, path);
    mode_t mode = place.told.st_mode;
    *folder = (struct folder){.fd = -1, .lock_fd = -1, .parent_fd = -1, .linker = place.linker};
    snprintf(folder->suffix, sizeof folder->suffix, "%s",
             settings->format == RECORD_PCAP ? ".pcap" : ".pcapng");
    strcpy(folder->path, place.path);
    if (place.descriptor >= 0 || is_stream(&place.told)) {
        open_stream(folder, settings, &place);
    } else if (!slash && (mode ? S_ISREG(mode) : is_file_name(path) || is_file_name(place.name))) {
        open_file(folder, settings, &place);
    } else { /* or a folder, also one that is still to be made */
        copy_safe(folder->prefix, sizeof folder->prefix, interfaces);
        make_folder(folder, &place);
    }
    link_leave(&place);
}

/* Whoever owns the folder may put another one in its place meanwhile: what was opened is looked at
 * before it is given away or used. */
void folder_enter_own(struct folder *folder, const char *name, uid_t user, gid_t group) {
    struct folder inner = *folder;
    struct stat told;
    folder->sealed = folder->plain && !folder->compressed;
    if (folder->sealed)
        return;
    if (folder->named)
        fail(EXIT_MISSING,
             "%s may not write to the folder %s, and -z or several files need that: expected "
             "another folder, or a new one",
             name, folder->path);
    if (snprintf(inner.path, sizeof inner.path, "%s/%s", folder->path, name) >=
        (int)sizeof inner.path)
        fail(EXIT_USAGE, "-w: the path is too long");
    bool made = !mkdirat(folder->fd, name, FOLDER_MODE);
    inner.fd = openat(folder->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner.fd < 0 || fstat(inner.fd, &told))
        fail(EXIT_MISSING, "%s may not write to %s, and the folder %s cannot be used: %s", name,
             folder->path, inner.path, strerror(errno));
    if (made && !told.st_uid && !fchown(inner.fd, user, group))
        told.st_uid = user;
    if (told.st_uid != user)
        fail(EXIT_MISSING, "%s may not write to %s, and the folder %s is another user's", name,
             folder->path, inner.path);
    log_info("%s may not write to %s: files go to %s", name, folder->path, inner.path);
    close(folder->parent_fd);
    inner.parent_fd = folder->fd;
    *folder = inner;
}

/* "20261121T141500.123456789Z" */
static void put_time(char *text, size_t size, int64_t time_ns) {
    time_t seconds = time_ns / NS_PER_S;
    struct tm parts;
    gmtime_r(&seconds, &parts);
    size_t used = strftime(text, size, "%Y%m%dT%H%M%S", &parts);
    snprintf(text + used, size - used, ".%09dZ", (int)(time_ns % NS_PER_S));
}

static void put_prefix(const struct folder *folder, int64_t time_ns, char *text, size_t size) {
    time_t seconds = time_ns / NS_PER_S;
    struct tm parts;
    gmtime_r(&seconds, &parts);
    if (!strchr(folder->prefix, '%') || !strftime(text, size, folder->prefix, &parts))
        snprintf(text, size, "%s", folder->prefix);
}

void folder_next_name(struct folder *folder, int64_t time_ns, char name[NAME_ROOM]) {
    char prefix[160], time[64];
    put_prefix(folder, time_ns, prefix, sizeof prefix);
    put_time(time, sizeof time, time_ns);
    folder->number++;
    if (folder->plain && folder->number == 1)
        snprintf(name, NAME_ROOM, "%s%s", prefix, folder->suffix);
    else
        snprintf(name, NAME_ROOM, "%s_%s_%05u%s", prefix, time, folder->number, folder->suffix);
}

static int take_sealed(struct folder *folder, char temporary[NAME_ROOM]) {
    int fd = folder->sealed_fd;
    folder->sealed_fd = -1;
    strcpy(temporary, folder->sealed_name);
    if (fd < 0)
        errno = ENOENT;
    return fd;
}

int folder_create(struct folder *folder, const char *name, char temporary[NAME_ROOM]) {
    if (*folder->sealed_name)
        return take_sealed(folder, temporary);
    for (int i = 0; i < TRIES; i++) {
        char more[16] = "";
        if (i)
            snprintf(more, sizeof more, ".%d", i);
        if (snprintf(temporary, NAME_ROOM, ".%s%s" TEMPORARY, name, more) >= NAME_ROOM) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = openat(folder->fd, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                        FOLDER_FILE_MODE);
        if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
            return fd;
        if (fd >= 0)
            close(fd);
        else if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* ".NAME.part" or ".NAME.3.part", where NAME ends as captures do. */
bool folder_final_name(const char *temporary, char name[NAME_ROOM]) {
    if (*temporary != '.' || !ends_with(temporary, TEMPORARY) || strlen(temporary) >= NAME_ROOM)
        return false;
    size_t length = strlen(temporary) - 1 - strlen(TEMPORARY);
    memcpy(name, temporary + 1, length);
    name[length] = '\0';
    char *number = strrchr(name, '.');
    if (number && number[1] && !number[1 + strspn(number + 1, "0123456789")])
        *number = '\0';
    return capture_suffix(name);
}

static bool matches(const char *text, const char *shape) {
    for (; *shape; shape++, text++)
        if (*shape == '0' ? !isdigit((unsigned char)*text) : *text != *shape)
            return false;
    return true;
}

void folder_other_name(const char *name, int number, char other[NAME_ROOM]) {
    const char *suffix = capture_suffix(name);
    size_t stem = strlen(name) - (suffix ? strlen(suffix) : 0);
    snprintf(other, NAME_ROOM, "%.*s-%d%s", (int)stem, name, number, suffix ? suffix : "");
}

/* After "-" and a number, as folder_other_name() puts them; where it began if there is none. */
static const char *after_other_number(const char *text) {
    if (*text != '-' || !isdigit((unsigned char)text[1]))
        return text;
    return text + 1 + strspn(text + 1, "0123456789");
}

bool folder_is_own(const struct folder *folder, const char *name) {
    static const char shape[] = "_00000000T000000.000000000Z_00000";
    size_t length = strlen(folder->prefix);
    if (strncmp(name, folder->prefix, length) || !matches(name + length, shape))
        return false;
    const char *rest = name + length + sizeof shape - 1;
    rest = after_other_number(rest + strspn(rest, "0123456789"));
    size_t suffix = strlen(folder->suffix);
    if (strncmp(rest, folder->suffix, suffix))
        return false;
    return !rest[suffix] || !strcmp(rest + suffix, COMPRESSED);
}
