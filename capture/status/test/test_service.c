/* SPDX-License-Identifier: Apache-2.0 */
/* The service manager hears what it is told, and its absence is no error. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/test/check.h"
#include "status/status.h"

int main(void) {
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
    return 0;
}
