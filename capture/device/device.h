/* SPDX-License-Identifier: Apache-2.0 */
/* One interface: its libpcap handle, the thread that reads it, and what is counted.
 *
 *   waiting --the interface is there--> reading --it went away--> waiting
 *                                          |
 *                                   stop: read to the end --> ended
 *
 * Before the threads start, main owns a device; then its reading thread does, but for the counts
 * and the atomics. */
#ifndef WIRETALE_CAPTURE_DEVICE_H
#define WIRETALE_CAPTURE_DEVICE_H

#include <pcap/pcap.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "buffer/chunk_queue.h"
#include "buffer/interfaces.h"
#include "settings.h"

enum device_state { DEVICE_WAITING, DEVICE_READING, DEVICE_ENDED };

enum open_result {
    OPEN_DONE,
    OPEN_ABSENT, /* not there, or not up */
    OPEN_DENIED,
    OPEN_WRONG, /* the filter, the link type or the time source does not fit it */
};

/* What the kernel counted: under this description for handles that are closed, and for the open
 * one. */
struct kernel_counts {
    uint64_t received, dropped, dropped_interface;
};

/* Shared by all devices. */
struct capture {
    const struct settings *settings;
    struct chunk_queue queue;
    struct description_list descriptions;
    struct device *devices;
    uint32_t device_count;
    atomic_bool stopping;
    _Atomic uint64_t packets_left; /* of -c */
};

struct device {
    struct capture *capture;
    uint32_t number;
    char name[64];
    _Atomic int state;
    _Atomic int64_t alive_ns; /* CLOCK_MONOTONIC of the reading thread's last round */
    pthread_t thread;
    int wake_fd; /* eventfd: there is something to do besides packets */

    pcap_t *handle;
    int fd;
    unsigned index; /* of the interface, 0 for any */
    uint32_t description;
    uint32_t time_factor; /* ns in a unit of its time stamps */
    int file_link_type;
    struct kernel_counts closed, open;
    int64_t counted_ns;                 /* when the kernel was last asked */
    char reason[PCAP_ERRBUF_SIZE + 64]; /* why it could not be opened */
    bool is_warned;                     /* of it */

    struct chunk *chunk; /* being filled; NULL when none was free */
    uint8_t *cursor, *end;
    int64_t chunk_since_ns;
    enum record_direction direction;
    uint64_t packets, bytes, refused; /* under this description; published in counts once a round */
    struct interface_counts *counts;  /* of its description; NULL before the first */
};

/* Sets the name of what `wanted` names: an interface by name or number. */
bool device_name(struct device *device, const char *wanted);
enum open_result device_open(struct device *device);
void device_close(struct device *device);
/* Asks the kernel; into the counts. */
void device_count(struct device *device);
bool device_exists(const struct device *device);
bool device_is_any(const struct device *device); /* all interfaces at once */

/* Sets OPEN_WRONG's reason: `what` and libpcap's message. Returns OPEN_WRONG. */
static inline enum open_result device_refuse(struct device *device, const char *what) {
    snprintf(device->reason, sizeof device->reason, "%s: %s", what, pcap_geterr(device->handle));
    return OPEN_WRONG;
}

enum open_result device_set_filter(struct device *device);
enum open_result device_set_direction(struct device *device);
const char *device_direction_filter(const struct device *device);

/* The reading thread; `device_start` begins it, the thread ends after `capture->stopping`. */
bool device_start(struct device *device);
void device_wake(struct device *device);
void device_take(unsigned char *device, const struct pcap_pkthdr *header,
                 const unsigned char *data); /* a pcap_handler */
bool device_hand_over(struct device *device, int64_t complete_ns);

/* Name, hardware, offloads and so on of the interface `name`. */
void device_describe(const char *name, struct description *description);

/* --list; the exit code. */
int device_list(bool json);

#endif
