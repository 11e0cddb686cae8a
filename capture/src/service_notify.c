/* SPDX-License-Identifier: Apache-2.0 */
#include "service_notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int64_t watchdog_of(void) {
    const char *time = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (!time || (pid && atoll(pid) != getpid()))
        return 0;
    return strtoll(time, NULL, 10) * 1000;
}

/* Connected while the program may still reach the socket. A path that begins with @ is abstract. */
void service_open(struct service *service) {
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *service = (struct service){.fd = -1};
    if (!path || !*path || strlen(path) >= sizeof address.sun_path)
        return;
    strcpy(address.sun_path, path);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    if (*path == '@')
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, size)) {
        close(fd);
        return;
    }
    service->fd = fd;
    service->watchdog_ns = watchdog_of();
}

void service_tell(struct service *service, const char *format, ...) {
    char text[1024];
    va_list arguments;
    if (service->fd < 0)
        return;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length > 0)
        (void)!send(service->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}
