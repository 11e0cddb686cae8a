/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces as files describe them, and counts of their packets.
 *
 * A device that is opened with another link type, address or speed than before gets a new
 * description; its index is the interface number in packet records. The list only grows, so readers
 * need no lock. Each counter has one writer, named below, and any thread may read it:
 *
 *   received = written + dropped_queue + dropped_disk + packets that are still in the queue
 *   kernel_received = received + dropped_kernel, once the device has been read to its end
 *
 * Packets that the kernel dropped because the queue was full count as received, since it is the
 * disk that lost them.
 */
#ifndef WIRETALE_CAPTURE_INTERFACES_H
#define WIRETALE_CAPTURE_INTERFACES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic uint64_t counter;

struct interface_counts {
    /* Written by the reading thread: */
    _Alignas(64) counter received; /* packets from libpcap */
    counter received_bytes;        /* length on the wire */
    counter dropped_queue;         /* ring buffer full, because no chunk was empty */
    counter dropped_held;          /* the same while writes failed: by the disk */
    counter kernel_received;       /* packets that passed the filter (PACKET_STATISTICS) */
    counter dropped_kernel;        /* ring buffer full, although chunks were empty */
    counter dropped_interface;     /* by the adapter or its driver */
    /* Written by the writing thread: */
    _Alignas(64) counter written;
    counter dropped_disk; /* writes failed */
};

/* All members are uint64_t: counts_add() and counts_subtract() go over them. */
struct counts {
    uint64_t received, written, queued;
    uint64_t dropped_kernel, dropped_interface, dropped_queue, dropped_disk;
    uint64_t received_bytes, kernel_received;
};

static inline uint64_t counter_get(const counter *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static inline void counter_set(counter *counter, uint64_t value) {
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* Adds without a locked instruction, because there is one writer. */
static inline void counter_add(counter *counter, uint64_t more) {
    counter_set(counter, counter_get(counter) + more);
}

/* Returns the packets that were dropped at any stage, and all that could have been recorded. */
static inline uint64_t counts_lost(const struct counts *counts) {
    return counts->dropped_kernel + counts->dropped_interface + counts->dropped_queue +
           counts->dropped_disk;
}
static inline uint64_t counts_offered(const struct counts *counts) {
    return counts->received + counts->dropped_kernel + counts->dropped_interface;
}

/* Returns the counts at this moment; of a file, the difference from those at its start. */
struct counts counts_of(const struct interface_counts *of);
void counts_add(struct counts *sum, const struct counts *more);
void counts_subtract(struct counts *from, const struct counts *less);

#define DESCRIPTIONS_MAX 256

struct description {
    uint32_t device;
    char name[64];
    char hardware[96];  /* driver, firmware, bus */
    char comment[512];  /* for people: what is recorded */
    char facts[320];    /* for programs: " mtu=1500 gro=on" */
    const char *filter; /* of the settings, or NULL */
    uint32_t link_type; /* LINKTYPE_ value */
    uint32_t snaplen;
    uint64_t speed_bps; /* 0: unknown */
    uint8_t mac[6];
    bool has_mac;
    struct interface_counts counts; /* of packets under this description */
};

struct description_list {
    struct description items[DESCRIPTIONS_MAX];
    _Atomic uint32_t count;
};

/* Returns the index of an equal description, or of a copy that is added; -1 if the list is full. */
int description_add(struct description_list *list, const struct description *description);
/* Returns the counts of a device summed over all its descriptions. */
struct counts description_counts(const struct description_list *list, uint32_t device);

#endif
