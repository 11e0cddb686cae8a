/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets are non-blocking. The kernel takes a line as a whole or not at all, because it puts up to
 * half of a socket's buffer into one message; lines that do not fit are skipped. SIOCOUTQ returns
 * the unread memory of a client, whose decrease indicates that it reads. */
#include "status/status_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "directory/path.h"

#define MAX_WAITING 16
#define SILENT_NS   (5 * NS_PER_S) /* without reading */

/* Opens the directory of the socket and stores its name there. */
static void find_directory(struct status_socket *to, const char *path) {
    struct resolved_path place;
    struct stat directory;
    char around[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    snprintf(around, sizeof around, "%.*s.", (int)(name - path), path);
    snprintf(to->name, sizeof to->name, "%s", name);
    path_resolve(&place, around);
    to->directory_fd = fcntl(place.fd, F_DUPFD_CLOEXEC, 0);
    if (to->directory_fd < 0 || fstat(to->directory_fd, &directory))
        fail(EXIT_IO, "--status %s: %s", path, strerror(errno));
    path_check_owner(place.linker, directory.st_uid, path);
    path_close(&place);
}

/* The address goes through the open directory, since its path may lead elsewhere by now. */
static struct sockaddr_un address_of(const struct status_socket *of, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", of->directory_fd,
                 of->name) >= (int)sizeof address.sun_path)
        fail(EXIT_USAGE, "--status %s: expected a shorter name", path);
    return address;
}

/* Removes the socket of an earlier run, which refuses connections. */
static void remove_stale(const struct status_socket *of, const struct sockaddr_un *address,
                         const char *path) {
    struct stat info;
    if (fstatat(of->directory_fd, of->name, &info, AT_SYMLINK_NOFOLLOW))
        return;
    if (!S_ISSOCK(info.st_mode))
        fail(EXIT_IO, "--status %s: it exists and is not a socket", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answered = !connect(fd, (const struct sockaddr *)address, sizeof *address);
    int reason = errno;
    close(fd);
    if (answered || reason != ECONNREFUSED)
        fail(EXIT_IO, "--status %s: another program uses it", path);
    unlinkat(of->directory_fd, of->name, 0);
}

/* Users who may write to the directory may have replaced the socket, so it is checked after it is
 * open. */
static void open_own(struct status_socket *of, const char *path) {
    struct stat info;
    of->node_fd = openat(of->directory_fd, of->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (of->node_fd < 0 || fstat(of->node_fd, &info) || !S_ISSOCK(info.st_mode) ||
        info.st_uid != geteuid() || info.st_nlink != 1)
        fail(EXIT_IO, "--status %s: it was replaced by another file", path);
}

/* The socket is bound with the umask of its final mode, so that it never has another one. */
void status_socket_open(struct status_socket *to, const char *path) {
    *to = (struct status_socket){.fd = -1, .directory_fd = -1, .node_fd = -1};
    if (!path)
        return;
    if (strlen(path) >= sizeof to->name)
        fail(EXIT_USAGE, "--status %s: expected a path of at most %zu bytes", path,
             sizeof to->name - 1);
    find_directory(to, path);
    struct sockaddr_un address = address_of(to, path);
    remove_stale(to, &address, path);
    to->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(0117); /* owner and group */
    if (to->fd < 0 || bind(to->fd, (struct sockaddr *)&address, sizeof address) ||
        listen(to->fd, MAX_WAITING))
        fail(errno == EACCES ? EXIT_MISSING : EXIT_IO, "--status %s: %s", path, strerror(errno));
    umask(before);
    open_own(to, path);
}

/* Works on the open node (AT_EMPTY_PATH), since the name may belong to another file by now. */
bool status_socket_give(const struct status_socket *socket, uid_t user, gid_t group) {
    return socket->node_fd < 0 || !fchownat(socket->node_fd, "", user, group, AT_EMPTY_PATH);
}

/* The last client takes the place of the removed one, so callers must iterate backwards. */
static void drop_client(struct status_socket *from, unsigned i) {
    close(from->clients[i].fd);
    from->clients[i] = from->clients[--from->count];
}

/* In the sandbox the socket cannot be removed, because Landlock allows only the output directory:
 * then the command process does it. */
void status_socket_close(struct status_socket *from) {
    while (from->count)
        drop_client(from, from->count - 1);
    if (from->fd < 0)
        return;
    close(from->fd);
    unlinkat(from->directory_fd, from->name, 0);
    close(from->directory_fd);
    close(from->node_fd);
    from->fd = -1;
}

/* Updates the time at which the client was seen to have read. */
static void update_read_time(struct status_client *client, int64_t now) {
    int unread;
    if (ioctl(client->fd, SIOCOUTQ, &unread))
        unread = 0; /* unknown: it is not disconnected for that */
    if (!unread || unread < client->unread)
        client->read_ns = now;
    client->unread = unread;
}

/* A client without progress for SILENT_NS is disconnected. */
void status_socket_poll(struct status_socket *socket, int64_t now) {
    for (unsigned i = socket->count; i--;) {
        update_read_time(&socket->clients[i], now);
        if (now - socket->clients[i].read_ns < SILENT_NS)
            continue;
        log_info("--status: a client that has not read for 5 s is disconnected");
        drop_client(socket, i);
    }
}

/* Disconnects the client that has not read for the longest time, if there are too many. */
static bool make_room(struct status_socket *from, int64_t now) {
    int silent = -1;
    if (from->count < CLIENTS_MAX)
        return true;
    for (unsigned i = 0; i < from->count; i++) {
        struct status_client *client = &from->clients[i];
        update_read_time(client, now);
        if ((client->unread || client->fresh) &&
            (silent < 0 || client->read_ns < from->clients[silent].read_ns))
            silent = (int)i;
    }
    if (silent >= 0)
        drop_client(from, (unsigned)silent);
    else if (!from->is_warned)
        log_warning("--status has %d clients, which all read: more are refused", CLIENTS_MAX);
    from->is_warned |= silent < 0;
    return silent >= 0;
}

/* Accepts all waiting clients. One that cannot be served is closed at once. */
bool status_socket_accept(struct status_socket *from) {
    bool fresh = false;
    int64_t now = monotonic_ns();
    int fd;
    while (from->fd >= 0 &&
           (fd = accept4(from->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        if (make_room(from, now)) {
            fresh = true;
            from->clients[from->count++] =
                (struct status_client){.fd = fd, .fresh = true, .read_ns = now};
        } else {
            close(fd);
        }
    }
    return fresh;
}

/* A client that has no room for the line misses it. Returns false if the client is gone, or if it
 * took a part: then no later line would be whole. */
static bool send_line(struct status_client *client, const char *line, size_t length) {
    ssize_t sent = send(client->fd, line, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? errno == EAGAIN || errno == EINTR : (size_t)sent == length;
}

/* Reads up to the next command. Returns false if the client sends something else: it is
 * disconnected. */
static bool read_command(struct status_client *client) {
    size_t room = COMMAND_SIZE - 1 - client->command_size;
    if (client->is_mute || !room)
        return true;
    ssize_t size = recv(client->fd, client->command + client->command_size, room, MSG_DONTWAIT);
    client->is_mute = !size; /* it may have closed one direction only */
    if (size < 0)
        return errno == EAGAIN || errno == EINTR;
    client->command_size += (size_t)size;
    return client->command_size < COMMAND_SIZE - 1 ||
           memchr(client->command, '\n', COMMAND_SIZE - 1);
}

/* Takes the first command out of the buffer. Returns false if it is not complete. */
static bool take_command(struct status_client *client, char command[COMMAND_SIZE]) {
    char *end = memchr(client->command, '\n', client->command_size);
    if (!end)
        return false;
    size_t length = (size_t)(end - client->command);
    memcpy(command, client->command, length);
    command[length] = '\0';
    client->command_size -= length + 1;
    memmove(client->command, end + 1, client->command_size);
    return true;
}

void status_socket_answer(struct status_socket *from, status_command *take, void *context,
                          char *answer) {
    char command[COMMAND_SIZE];
    for (unsigned i = from->count; i--;) {
        struct status_client *client = &from->clients[i];
        if (!read_command(client))
            drop_client(from, i);
        else if (take_command(client, command) &&
                 !send_line(client, answer, take(context, command, answer)))
            drop_client(from, i);
    }
}

/* Sends to all clients, or only to those without a line. The unread memory is stored after the line
 * is sent, so that its decrease shows that the client reads. */
void status_socket_send(struct status_socket *to, const char *line, size_t length,
                        bool fresh_only) {
    int64_t now = monotonic_ns();
    for (unsigned i = to->count; i--;) {
        struct status_client *client = &to->clients[i];
        if (fresh_only && !client->fresh)
            continue;
        update_read_time(client, now); /* before the line that is sent now makes bytes unread */
        client->fresh = false;
        if (!send_line(client, line, length))
            drop_client(to, i);
        else if (ioctl(client->fd, SIOCOUTQ, &client->unread))
            client->unread = 0;
    }
}
