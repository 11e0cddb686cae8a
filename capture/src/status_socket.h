/* SPDX-License-Identifier: Apache-2.0 */
/* --status: a Unix socket; each client gets a line at once and then one each interval. A client
 * that does not read misses lines; nobody waits for it. */
#ifndef WIRETALE_STATUS_SOCKET_H
#define WIRETALE_STATUS_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "status.h"

#define CLIENTS_MAX 32

struct status_client {
    int fd;
    bool fresh;  /* has not had a line yet */
    size_t left; /* of a line that was sent in part */
    char line[STATUS_ROOM];
};

struct status_socket {
    int fd; /* -1: none */
    char path[108];
    struct status_client *clients[CLIENTS_MAX];
    unsigned count;
};

/* Fails with one line. */
void status_socket_open(struct status_socket *socket, const char *path);
void status_socket_close(struct status_socket *socket);
/* Takes clients that wait; true when there is one without a line. */
bool status_socket_accept(struct status_socket *socket);
void status_socket_send(struct status_socket *socket, const char *line, size_t length,
                        bool fresh_only);

#endif
