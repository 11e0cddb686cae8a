/* SPDX-License-Identifier: Apache-2.0 */
#include "status_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "say.h"

#define WAITING_MOST 16

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
        fail(EXIT_USAGE, "--status %s: a path of at most %zu bytes was expected", path,
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

bool status_socket_accept(struct status_socket *from) {
    bool fresh = false;
    int fd;
    while (from->fd >= 0 &&
           (fd = accept4(from->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        struct status_client *client = from->count < CLIENTS_MAX ? calloc(1, sizeof *client) : NULL;
        if (!client) {
            close(fd);
            continue;
        }
        client->fd = fd;
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
    for (unsigned i = to->count; i--;) {
        struct status_client *client = to->clients[i];
        if ((!fresh_only || client->fresh) && !send_line(client, line, length))
            drop_client(to, i);
    }
}
