/* SPDX-License-Identifier: Apache-2.0 */
/* One interface: its libpcap handle, its reading thread and its counts.
 *
 *   waiting --interface appears--> reading --interface disappears--> waiting
 *                                     |
 *                              stop: read to the end --> ended
 *
 * main() owns a device until its thread starts; then the thread owns all but the counts and the
 * atomics. */
#ifndef WIRETALE_CAPTURE_DEVICE_H
#define WIRETALE_CAPTURE_DEVICE_H

#include <pcap/pcap.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "buffer/chunk_queue.h"
#include "buffer/interfaces.h"
#include "device/repeats.h"
#include "mirror/mirror.h"
#include "settings.h"

enum device_state { DEVICE_WAITING, DEVICE_READING, DEVICE_ENDED };

enum open_result {
    OPEN_DONE,
    OPEN_ABSENT, /* missing, or not up */
    OPEN_DENIED,
    OPEN_WRONG, /* filter, link type or time source do not fit the interface */
};

/* Shared by all devices. */
struct capture {
    const struct settings *settings;
    struct chunk_queue queue;
    struct description_list descriptions;
    struct device *devices;
    uint32_t device_count;
    atomic_bool stopping;
    atomic_bool is_matched;        /* a packet matched --keep-on since the main thread looked */
    int wake_fd;                   /* eventfd that interrupts the wait for packets at the end */
    _Atomic uint64_t packets_left; /* of -c */
    struct mirror *mirror;         /* of --mirror, else NULL */
};

struct device {
    struct capture *capture;
    uint32_t number;
    char name[64];
    _Atomic int state;
    _Atomic int64_t alive_ns; /* CLOCK_MONOTONIC of the last round of the reading thread */
    pthread_t thread;

    pcap_t *handle;
    int fd;
    unsigned index; /* of the interface; 0 for any */
    uint32_t description;
    uint32_t time_factor; /* ns in a unit of its time stamps */
    int file_link_type;
    bool is_watched;                    /* packets are looked at, beside being recorded */
    struct repeats *repeats;            /* for --keep-on retransmissions, or NULL */
    struct bpf_program match;           /* of --keep-on; its bf_insns are NULL without one */
    struct pcap_stat counted;           /* counters of the handle that are in `counts` */
    int64_t counted_ns;                 /* CLOCK_MONOTONIC of the last device_count() */
    char reason[PCAP_ERRBUF_SIZE + 64]; /* why it cannot be opened */
    bool is_warned;                     /* of the reason */

    struct chunk *chunk; /* being filled; NULL if there is none */
    uint8_t *cursor, *end;
    int64_t chunk_since_ns;
    uint8_t *stash; /* of a packet that came when no chunk was empty */
    size_t stash_size;
    bool is_behind; /* no chunk was empty, and the kernel's ring has not been read to its end since
                     */
    enum record_direction direction;
    struct interface_counts *counts; /* of the description; NULL before the first */
};

/* Sets the name of an interface that is given by name or number. Returns false if the number does
 * not exist. */
bool device_name(struct device *device, const char *wanted);
/* Opens the interface with the settings and adds its description. If it cannot, `reason` has the
 * text. */
enum open_result device_open(struct device *device);
void device_close(struct device *device);
/* Adds the counters of the kernel since the last call. */
void device_count(struct device *device);
bool device_is_any(const struct device *device); /* all interfaces at once */

/* Stores the reason. Returns OPEN_WRONG. */
static inline __attribute__((format(printf, 2, 3))) enum open_result
device_refuse(struct device *device, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(device->reason, sizeof device->reason, format, arguments);
    va_end(arguments);
    return OPEN_WRONG;
}

/* Compile and attach the filter and the direction, and compile that of --keep-on (filter.c). */
enum open_result device_set_filter(struct device *device);
enum open_result device_set_match(struct device *device);
enum open_result device_set_direction(struct device *device);
/* Returns the pcap-filter of the direction that is recorded ("inbound"), or NULL for both. */
const char *device_direction_filter(const struct device *device);

/* Starts the reading thread, which ends after capture->stopping is set. */
bool device_start(struct device *device);

/* Fills in hardware, speed, address and facts of an interface. */
void device_describe(const char *name, struct description *description);

/* Prints the interfaces (--list). Returns the exit code. */
int device_list(bool json);

#endif
