/* SPDX-License-Identifier: Apache-2.0 */
/* A client that never reads holds nobody up, and one that reads gets whole lines only. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/test/check.h"
#include "status/status_socket.h"

#define LINES 20000

static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(!connect(fd, (struct sockaddr *)&address, sizeof address));
    return fd;
}

static void send_lines(struct status_socket *server, const char *line) {
    for (int i = 0; i < LINES; i++)
        status_socket_send(server, line, strlen(line), false);
}

static void check_lines_are_whole(int fd, const char *line) {
    static char text[1 << 22];
    size_t size = 0, length = strlen(line);
    for (ssize_t more; (more = recv(fd, text + size, sizeof text - size, MSG_DONTWAIT)) > 0;)
        size += (size_t)more;
    CHECK(size > length);
    for (size_t at = 0; at + length <= size; at += length)
        CHECK(!memcmp(text + at, line, length));
}

int main(void) {
    char path[64];
    struct status_socket server;
    static const char line[] = "{\"state\":\"capturing\",\"received\":123456}\n";
    snprintf(path, sizeof path, "/tmp/wiretale-test-%d.sock", (int)getpid());
    status_socket_open(&server, path);
    int silent = connect_to(path), gone = connect_to(path);
    CHECK(status_socket_accept(&server));
    CHECK_INT(server.count, 2);
    close(gone);
    int64_t before = monotonic_ns();
    send_lines(&server, line);
    CHECK(monotonic_ns() - before < 20 * NS_PER_S);
    CHECK_INT(server.count, 1);
    check_lines_are_whole(silent, line);
    for (int i = 0; i < 2 * CLIENTS_MAX; i++) {
        int fd = connect_to(path);
        status_socket_accept(&server);
        (void)fd;
    }
    CHECK_INT(server.count, CLIENTS_MAX);
    status_socket_close(&server);
    CHECK(access(path, F_OK));
    return 0;
}
