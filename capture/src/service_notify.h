/* SPDX-License-Identifier: Apache-2.0 */
/* What systemd is told (sd_notify(3)): datagrams to the Unix socket that NOTIFY_SOCKET names. */
#ifndef WIRETALE_SERVICE_NOTIFY_H
#define WIRETALE_SERVICE_NOTIFY_H

#include <stdint.h>

struct service {
    int fd;              /* -1: not started by systemd */
    int64_t watchdog_ns; /* at most so long between two signs of life; 0: none is wanted */
};

void service_open(struct service *service);
__attribute__((format(printf, 2, 3))) void service_tell(struct service *service, const char *format,
                                                        ...);

#endif
