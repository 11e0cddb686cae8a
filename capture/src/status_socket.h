/* SPDX-License-Identifier: Apache-2.0 */
/* --status: a Unix socket; each client gets a line at once and then one each interval. A client
 * that does not read misses lines, and is disconnected after some seconds; nobody waits for it. */
#ifndef WIRETALE_STATUS_SOCKET_H
#define WIRETALE_STATUS_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "status.h"

#define CLIENTS_MAX 32

struct status_client {
    int fd;
    bool fresh;      /* has not had a line yet */
    int unread;      /* memory of lines that it has not read, after the last one was sent */
    int64_t read_ns; /* CLOCK_MONOTONIC, when it was last seen to have read */
    size_t left;     /* of a line that was sent in part */
    char line[STATUS_ROOM];
};

struct status_socket {
    int fd;        /* -1: none */
    int folder_fd; /* what it is in: O_PATH, as of the socket's own file */
    int node_fd;
    char name[108]; /* there */
    struct status_client *clients[CLIENTS_MAX];
    unsigned count;
    bool told; /* that there was no room for one */
};

/* Fails with one line. */
void status_socket_open(struct status_socket *socket, const char *path);
/* Gives its file to that user; false, with errno. */
bool status_socket_give(const struct status_socket *socket, uid_t user, gid_t group);
void status_socket_close(struct status_socket *socket);
/* Takes clients that wait; true when there is one without a line. Where there are too many, the one
 * that has not read for the longest time gives its place. */
bool status_socket_accept(struct status_socket *socket);
/* Disconnects who has left a line unread for too long. Many times a second. */
void status_socket_look(struct status_socket *socket, int64_t now);
void status_socket_send(struct status_socket *socket, const char *line, size_t length,
                        bool fresh_only);

#endif
