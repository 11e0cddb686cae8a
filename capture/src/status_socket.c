/* SPDX-License-Identifier: Apache-2.0 */
#include "status_socket.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "moment.h"
#include "say.h"

#define WAITING_MOST 16
#define SILENT_NS    (5 * SECOND_NS) /* that a line may be left unread */

/* A socket that nobody answers was left by an earlier run. */
static void remove_stale(const struct sockaddr_un *address) {
    struct stat told;
    if (lstat(address->sun_path, &told))
        return;
    if (!S_ISSOCK(told.st_mode))
        fail(EXIT_UNREADABLE, "--status %s: something else is there", address->sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answered = !connect(fd, (const struct sockaddr *)address, sizeof *address);
    int reason = errno;
    close(fd);
    if (answered || reason != ECONNREFUSED)
        fail(EXIT_UNREADABLE, "--status %s: another program uses it", address->sun_path);
    unlink(address->sun_path);
}

void status_socket_open(struct status_socket *to, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *to = (struct status_socket){.fd = -1};
    if (!path)
        return;
    if (strlen(path) >= sizeof address.sun_path)
        fail(EXIT_USAGE, "--status %s: expected a path of at most %zu bytes", path,
             sizeof address.sun_path - 1);
    strcpy(address.sun_path, path);
    strcpy(to->path, path);
    remove_stale(&address);
    to->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(0117); /* the owner and the group */
    if (to->fd < 0 || bind(to->fd, (struct sockaddr *)&address, sizeof address) ||
        listen(to->fd, WAITING_MOST))
        fail(errno == EACCES ? EXIT_MISSING : EXIT_UNREADABLE, "--status %s: %s", path,
             strerror(errno));
    umask(before);
}

static void drop_client(struct status_socket *from, unsigned i) {
    close(from->clients[i]->fd);
    free(from->clients[i]);
    from->clients[i] = from->clients[--from->count];
}

void status_socket_close(struct status_socket *from) {
    while (from->count)
        drop_client(from, from->count - 1);
    if (from->fd < 0)
        return;
    close(from->fd);
    unlink(from->path);
    from->fd = -1;
}

/* Sees whether it has read since the last line. */
static void look_at(struct status_client *client, int64_t now) {
    int unread;
    if (ioctl(client->fd, SIOCOUTQ, &unread))
        unread = 0; /* not known: nobody is disconnected for it */
    if (!unread || unread < client->unread)
        client->read_ns = now;
    client->unread = unread;
}

void status_socket_look(struct status_socket *socket, int64_t now) {
    for (unsigned i = socket->count; i--;) {
        look_at(socket->clients[i], now);
        if (now - socket->clients[i]->read_ns < SILENT_NS)
            continue;
        say("--status: a client that has not read for 5 s is disconnected");
        drop_client(socket, i);
    }
}

/* For a new client. */
static bool make_room(struct status_socket *from, int64_t now) {
    int silent = -1;
    if (from->count < CLIENTS_MAX)
        return true;
    for (unsigned i = 0; i < from->count; i++) {
        struct status_client *client = from->clients[i];
        look_at(client, now);
        if ((client->unread || client->fresh) &&
            (silent < 0 || client->read_ns < from->clients[silent]->read_ns))
            silent = (int)i;
    }
    if (silent >= 0)
        drop_client(from, (unsigned)silent);
    else if (!from->told)
        warn_of("--status has %d clients, which all read: more are refused", CLIENTS_MAX);
    from->told |= silent < 0;
    return silent >= 0;
}

bool status_socket_accept(struct status_socket *from) {
    bool fresh = false;
    int64_t now = steady_ns();
    int fd;
    while (from->fd >= 0 &&
           (fd = accept4(from->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        struct status_client *client = make_room(from, now) ? calloc(1, sizeof *client) : NULL;
        if (!client) {
            close(fd);
            continue;
        }
        client->fd = fd;
        client->read_ns = now;
        client->fresh = fresh = true;
        from->clients[from->count++] = client;
    }
    return fresh;
}

/* What is left of its line. False when the client is gone. */
static bool send_left(struct status_client *client, const char *line) {
    ssize_t sent = send(client->fd, line, client->left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        return false;
    if (sent < 0)
        sent = 0;
    client->left -= (size_t)sent;
    memmove(client->line, line + sent, client->left);
    return true;
}

static bool send_line(struct status_client *client, const char *line, size_t length) {
    if (client->left && !send_left(client, client->line))
        return false;
    if (client->left)
        return true; /* it misses this line */
    client->left = length;
    client->fresh = false;
    if (!send_left(client, line))
        return false;
    if (client->left == length)
        client->left = 0; /* not begun: it is missed as a whole */
    return true;
}

void status_socket_send(struct status_socket *to, const char *line, size_t length,
                        bool fresh_only) {
    int64_t now = steady_ns();
    for (unsigned i = to->count; i--;) {
        struct status_client *client = to->clients[i];
        if (fresh_only && !client->fresh)
            continue;
        look_at(client, now); /* what comes now is not counted as unread before */
        if (!send_line(client, line, length))
            drop_client(to, i);
        else if (ioctl(client->fd, SIOCOUTQ, &client->unread))
            client->unread = 0;
    }
}
