/* SPDX-License-Identifier: Apache-2.0 */
/* --status: a Unix socket that sends each client a line of JSON when it connects, and then one at
 * each interval. A client that does not read misses lines and is disconnected after some seconds;
 * the capture never waits for one. A client may send commands, a line each. */
#ifndef WIRETALE_CAPTURE_STATUS_SOCKET_H
#define WIRETALE_CAPTURE_STATUS_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CLIENTS_MAX  32
#define COMMAND_SIZE 64 /* bytes of a command with its newline, and a 0 */

struct status_client {
    int fd;
    bool fresh;      /* has not been sent a line yet */
    int unread;      /* bytes of memory of unread lines, after the last line was sent */
    int64_t read_ns; /* CLOCK_MONOTONIC: the last time that it was seen to have read */
    char command[COMMAND_SIZE];
    size_t command_size; /* bytes of it that have come */
    bool is_mute;        /* sends no more */
};

struct status_socket {
    int fd;           /* -1: no --status */
    int directory_fd; /* O_PATH of the directory that the socket is in */
    int node_fd;      /* O_PATH of the socket */
    char name[108];   /* in the directory */
    struct status_client clients[CLIENTS_MAX];
    unsigned count;
    bool is_warned; /* that a client was refused */
};

/* Makes the socket; `path` may be NULL. Exits with one line if it cannot. */
void status_socket_open(struct status_socket *socket, const char *path);

/* Changes the owner of the socket. Returns false with errno. */
bool status_socket_give(const struct status_socket *socket, uid_t user, gid_t group);
void status_socket_close(struct status_socket *socket);

/* Accepts clients. Returns true if one has not been sent a line. If there are too many, the one
 * that has not read for the longest time is disconnected. */
bool status_socket_accept(struct status_socket *socket);

/* Disconnects clients that left a line unread for too long. To be called several times a second. */
void status_socket_poll(struct status_socket *socket, int64_t now);

/* Takes a command of a client, without its newline, and writes the answer. Returns its length. */
typedef size_t status_command(void *context, const char *command, char *answer);

/* Reads what clients have sent, and answers up to one command of each. `answer` has room for each
 * answer. */
void status_socket_answer(struct status_socket *socket, status_command *take, void *context,
                          char *answer);

/* Sends a line to all clients, or to fresh ones only. */
void status_socket_send(struct status_socket *socket, const char *line, size_t length,
                        bool fresh_only);

#endif
