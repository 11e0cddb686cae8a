/* SPDX-License-Identifier: Apache-2.0 */
/* Notifications of the service manager, and lines to clients of the status socket. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/test/scratch.h"
#include "status/status.h"
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

/* A client that never reads delays no other, and one that reads gets whole lines only. */
static void test_clients_get_whole_lines(void) {
    char path[SCRATCH_SIZE];
    struct status_socket server;
    static const char line[] = "{\"state\":\"capturing\",\"received\":123456}\n";
    scratch_path(path, "status.sock");
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
        connect_to(path);
        status_socket_accept(&server);
    }
    CHECK_INT(server.count, CLIENTS_MAX);
    status_socket_close(&server);
    CHECK(access(path, F_OK));
}

/* It hears each notification, and its absence is no error. */
static void test_the_service_manager_is_notified(void) {
    struct service service;
    unsetenv("NOTIFY_SOCKET");
    service_open(&service);
    CHECK_INT(service.fd, -1);
    service_notify(&service, "READY=1");

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "wiretale-test-%d", (int)getpid());
    socklen_t size =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address.sun_path + 1));
    int manager = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK(!bind(manager, (struct sockaddr *)&address, size));
    char name[120], text[64] = "";
    snprintf(name, sizeof name, "@%s", address.sun_path + 1);
    setenv("NOTIFY_SOCKET", name, 1);
    setenv("WATCHDOG_USEC", "3000000", 1);
    service_open(&service);
    CHECK(service.fd >= 0);
    CHECK_INT(service.watchdog_ns, 3000000000);
    service_notify(&service, "STATUS=%d packets", 5);
    CHECK(recv(manager, text, sizeof text - 1, MSG_DONTWAIT) > 0);
    CHECK(!strcmp(text, "STATUS=5 packets"));
    setenv("WATCHDOG_PID", "1", 1);
    service_open(&service);
    CHECK_INT(service.watchdog_ns, 0);
}

/* A disk that stands still may hold them for long after the last interface is closed. */
static void test_a_capture_has_not_ended_while_packets_wait(void) {
    static struct capture capture;
    static struct output output;
    static struct device device = {.state = DEVICE_ENDED};
    struct directory directory = {.fd = -1};
    struct jobs jobs = {.directory = &directory};
    struct finisher finisher = {.directory = &directory, .publisher = {.jobs = &jobs}};
    struct status status;
    device.capture = &capture;
    capture.devices = &device;
    capture.device_count = capture.descriptions.count = 1;
    output.finisher = &finisher;
    capture.descriptions.items[0].counts.received = 5;
    status_take(&status, &capture, &output);
    CHECK_INT(status.state, STATUS_STOPPING);
    CHECK_INT(status.all.queued, 5);
    capture.descriptions.items[0].counts.written = 5;
    status_take(&status, &capture, &output);
    CHECK_INT(status.state, STATUS_ENDED);
    CHECK(status.has_finishing);
}

int main(void) {
    test_a_capture_has_not_ended_while_packets_wait();
    test_clients_get_whole_lines();
    test_the_service_manager_is_notified();
    return 0;
}
