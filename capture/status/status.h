/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of a running capture, as text; and notifications to systemd (sd_notify(3)). metrics.h has
 * them for programs. */
#ifndef WIRETALE_CAPTURE_STATUS_H
#define WIRETALE_CAPTURE_STATUS_H

#include <stdint.h>

#include "device/device.h"
#include "output/file.h"

#define NEVER_NS INT64_MAX

enum status_state {
    STATUS_STARTING,
    STATUS_WAITING, /* for an interface */
    STATUS_CAPTURING,
    STATUS_HOLDING,  /* the disk takes no packets, which wait in memory */
    STATUS_DROPPING, /* and the memory is full */
    STATUS_STOPPING,
    STATUS_ENDED
};

struct interface_status {
    const char *name;
    int state; /* enum device_state */
    int64_t is_read, last_packet_ns;
    int64_t has_carrier, carrier_losses, is_promiscuous, mtu, speed_bps; /* of the link */
    struct counts counts; /* of all its descriptions, so that they do not restart */
};

/* Numbers are int64_t or uint64_t, as metrics.c reads them; -1 is unknown (of an offset,
 * INT64_MIN), NEVER_NS a time that does not come. Times of events are of CLOCK_REALTIME. */
struct status {
    enum status_state state;
    int64_t started_ns, last_loss_ns;
    struct counts all;
    int64_t lag_ns; /* how long the oldest packet has waited to be written */
    uint64_t buffer_bytes, buffer_used_bytes;
    uint64_t bytes, files;
    uint64_t unreadable;               /* files of earlier runs with a read error */
    uint64_t removed, removed_pending; /* files, by the bounds of the ring; before their command */
    uint64_t kept_spans;
    bool has_finishing; /* a stream has none */
    uint64_t finishing_waiting, finishing_done, finishing_failed, finishing_given_up;
    bool has_commands;
    uint64_t commands_waiting, commands_done, commands_failed, commands_given_up, commands_failing;
    int64_t disk_bytes, disk_free_bytes; /* -1 for a stream */
    int64_t disk_full_ns;                /* until then, unless a bound of the ring comes first */
    bool has_ring;
    uint64_t ring_files, ring_bytes;
    int64_t ring_oldest_ns; /* begin of its oldest file */
    int64_t ring_age_ns;    /* since the end of that file */
    int64_t ring_full_ns;   /* until a bound removes a file */
    int64_t clock_is_synchronized, clock_error_ns, clock_offset_ns, clock_steps, clock_step_ns;
    bool has_tcp; /* --keep-on retransmissions */
    uint64_t tcp_segments, tcp_repeated;
    bool has_mirror; /* --mirror */
    int64_t mirror_is_good;
    const char *mirror_fault; /* NULL: unknown */
    struct mirror_counts mirror;
    char file[NAME_SIZE];
    uint32_t interface_count;
    struct interface_status interfaces[DEVICES_MAX];
};

/* Takes the counts; trend_tell() has the others. */
void status_take(struct status *status, struct capture *capture, struct output *output);

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
