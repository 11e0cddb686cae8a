/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of a running capture as text and JSON, and notifications to systemd (sd_notify(3)). */
#ifndef WIRETALE_CAPTURE_STATUS_H
#define WIRETALE_CAPTURE_STATUS_H

#include <stdint.h>

#include "device/device.h"
#include "output/file.h"
#include "watch/clock_watch.h"
#include "watch/link_watch.h"

#define STATUS_SIZE 32768 /* bytes of a line of JSON */

enum status_state {
    STATUS_STARTING,
    STATUS_WAITING, /* for an interface */
    STATUS_CAPTURING,
    STATUS_HOLDING,  /* the disk takes no packets, which wait in memory */
    STATUS_DROPPING, /* and the memory is full */
    STATUS_STOPPING,
    STATUS_ENDED
};

struct status {
    enum status_state state;
    struct counts all;
    uint64_t bytes, files;
    uint64_t unreadable;               /* files of earlier runs with a read error */
    uint64_t uncompressed;             /* files that should be compressed */
    uint64_t removed, removed_pending; /* files, by the bounds of the ring; before their command */
    bool has_commands;
    uint64_t commands_waiting, commands_done, commands_failed, commands_given_up;
    char file[NAME_SIZE];
    const struct clock_watch *clock; /* for status_json(); NULL: not watched */
    const struct link_watch *links;
};

void status_take(struct status *status, struct capture *capture, struct output *output);

/* Writes one line of JSON with its newline. Returns its length, or 0 if memory is short. */
size_t status_json(const struct status *status, const struct capture *capture,
                   char text[STATUS_SIZE]);

/* Writes "12 packets received, all written (840 B); none lost", or "...; lost 2 of 14 (14.3%): 2 by
 * the kernel". */
void status_text(const struct status *status, char *text, size_t size);

struct service {
    int fd;              /* socket to systemd; -1: not started by systemd */
    int64_t watchdog_ns; /* longest time between two WATCHDOG=1; 0: no watchdog */
};

/* Connects to NOTIFY_SOCKET, which the sandbox would forbid later. */
void service_open(struct service *service);

/* Sends a datagram such as READY=1. */
void service_notify(struct service *service, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
