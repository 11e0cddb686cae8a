/* SPDX-License-Identifier: Apache-2.0 */
/* The reading thread. While no chunk is empty, it leaves packets in the kernel's ring; the one that
 * it has taken out of it is stashed.
 *
 * A round dispatches up to ROUND_PACKETS packets, whose records are written straight into a chunk,
 * and then states how far it has read. A chunk that fills slowly is handed over early if the
 * writing thread is idle. If the interface disappears, the thread reads the rest and waits for it
 * to return. */
#include <errno.h>
#include <linux/filter.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/log.h"
#include "device/device.h"
#include "device/headers.h"

#define ROUND_PACKETS 8192 /* between two reads of the clock */
#define ROUND_MS      100
#define COUNT_NS      (200 * NS_PER_MS)
#define HAND_OVER_NS  (100 * NS_PER_MS) /* for a chunk that fills slowly */
#define BEHIND_MS     5                 /* between two looks for an empty chunk */
/* Older packets have been delivered by then: after TIMEOUT_MS, plus the delay of a busy kernel. */
#define RETIRE_NS    (250 * NS_PER_MS)
#define END_NS       NS_PER_S /* for packets that the kernel still has at the end */
#define SLL_TYPE     1        /* packet type: low byte of the first 16 bits of a LINUX_SLL header */
#define SLL2_TYPE    10       /* offset 10 of a LINUX_SLL2 header, 8 bits */
#define SLL_OUTGOING 4

/* Queues the chunk that is being filled, if it has packets, and the time up to which the device has
 * been read. */
static void hand_over(struct device *device, int64_t complete_ns) {
    struct chunk *chunk = device->chunk;
    if (chunk && chunk->left.packets) {
        chunk->left.size = (size_t)(device->cursor - chunk->memory);
        device->chunk = NULL;
        device->cursor = device->end = NULL;
    } else {
        chunk = NULL;
    }
    chunk_queue_push(&device->capture->queue, device->number, chunk, complete_ns);
}

/* Replaces a full chunk. Returns false if none is empty. */
static bool next_chunk(struct device *device) {
    struct chunk_queue *queue = &device->capture->queue;
    if (device->chunk)
        hand_over(device, 0);
    device->chunk = chunk_queue_acquire(queue);
    if (!device->chunk)
        return false;
    device->cursor = device->chunk->memory;
    device->end = device->chunk->memory + CHUNK_BYTES;
    return true;
}

/* Returns the direction of a packet: from its cooked header if it has one, else the one that the
 * filter selects. */
static inline enum record_direction direction_of(const struct device *device, const uint8_t *data,
                                                 uint32_t captured) {
    int type = device->file_link_type;
    uint32_t at = type == DLT_LINUX_SLL ? SLL_TYPE : SLL2_TYPE;
    if (type != DLT_LINUX_SLL && type != DLT_LINUX_SLL2)
        return device->direction;
    if (captured <= at)
        return RECORD_UNKNOWN;
    return data[at] == SLL_OUTGOING ? RECORD_OUTBOUND : RECORD_INBOUND;
}

/* Takes one packet from the limit of -c, which all devices share. Returns false if none is left. */
static bool within_limit(struct device *device) {
    struct capture *capture = device->capture;
    uint64_t left = atomic_load(&capture->packets_left);
    while (left && !atomic_compare_exchange_weak(&capture->packets_left, &left, left - 1))
        continue;
    if (left <= 1) { /* this packet is the last one, or too many */
        atomic_store(&capture->stopping, true);
        pcap_breakloop(device->handle);
    }
    return left;
}

/* Adds the record at the cursor to the chunk. */
static inline void add_record(struct device *device, size_t size, int64_t time_ns) {
    struct span *filled = &device->chunk->left;
    device->cursor += size;
    filled->last_ns = time_ns;
    if (!filled->packets++) {
        filled->description = device->description;
        filled->first_ns = time_ns;
        device->chunk_since_ns = monotonic_ns();
    }
}

/* Keeps the size of the packet that has just been stashed, and leaves the packets behind it to the
 * kernel. What it has dropped until now is not the disk's fault. */
static __attribute__((noinline)) void stash(struct device *device, size_t size) {
    if (!device->is_behind)
        device_count(device);
    device->is_behind = true;
    device->stash_size = size;
    pcap_breakloop(device->handle);
}

/* Returns where the next record goes if the chunk has no room for it: a new chunk or the stash;
 * NULL if a source of packets does not end with pcap_breakloop() at once. */
static __attribute__((noinline)) uint8_t *next_place(struct device *device) {
    if (!device->stash_size)
        return next_chunk(device) ? device->cursor : device->stash;
    counter_add(&device->counts->dropped_queue, 1);
    return NULL;
}

/* Returns whether no packet is stashed any more. */
static bool release_stash(struct device *device) {
    if (!device->stash_size)
        return true;
    if (!next_chunk(device))
        return false;
    memcpy(device->cursor, device->stash, device->stash_size);
    struct record_view record = record_view(device->capture->settings->format, device->stash);
    add_record(device, device->stash_size, record.time_ns);
    device->stash_size = 0;
    return true;
}

/* Looks at a packet for --keep-on and --mirror, also at what the file does not get of it. After a
 * match, packets are not compared until the main thread has seen it. */
static __attribute__((noinline)) void
look_at(const struct device *device, const struct pcap_pkthdr *header, const unsigned char *data) {
    struct capture *capture = device->capture;
    if (device->match.bf_insns &&
        !atomic_load_explicit(&capture->is_matched, memory_order_relaxed) &&
        pcap_offline_filter(&device->match, header, data))
        atomic_store(&capture->is_matched, true);
    if (device->repeats)
        repeats_take(device->repeats, device->file_link_type, data, header->caplen);
    if (!capture->mirror)
        return;
    int64_t time_ns = header->ts.tv_sec * NS_PER_S + header->ts.tv_usec * device->time_factor;
    mirror_take(capture->mirror, data, header->caplen, time_ns,
                capture->descriptions.items[device->description].mac);
}

/* Hot path: writes one packet as a record into the chunk. */
static void take_packet(unsigned char *argument, const struct pcap_pkthdr *header,
                        const unsigned char *data) {
    struct device *device = (struct device *)argument;
    const struct settings *settings = device->capture->settings;
    if (settings->stop_packets && !within_limit(device))
        return;
    if (__builtin_expect(device->is_watched, 0))
        look_at(device, header, data);
    uint32_t captured = header->caplen < settings->snaplen ? header->caplen : settings->snaplen;
    if (settings->headers)
        captured = headers_end(device->file_link_type, data, captured);
    bool classic = settings->format == RECORD_PCAP;
    enum record_direction direction = classic ? 0 : direction_of(device, data, captured);
    size_t size = classic ? RECORD_PCAP_HEADER + captured : record_epb_size(captured, direction);
    uint64_t time_ns = (uint64_t)header->ts.tv_sec * RECORD_SECOND_NS +
                       (uint64_t)header->ts.tv_usec * device->time_factor;
    uint8_t *to = device->cursor;
    counter_add(&device->counts->received, 1);
    counter_add(&device->counts->received_bytes, header->len);
    if (__builtin_expect((size_t)(device->end - to) < size, 0) && !(to = next_place(device)))
        return;
    if (classic)
        record_put_pcap(to, time_ns, captured, header->len, data);
    else
        record_put_epb(to, size, device->description, time_ns, captured, header->len, data,
                       direction);
    if (__builtin_expect(to == device->stash, 0))
        stash(device, size);
    else
        add_record(device, size, (int64_t)time_ns);
}

/* Attaches a filter that matches nothing, so that the kernel's queue only shrinks. */
static void refuse_packets(struct device *device) {
    struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog program = {.len = 1, .filter = &nothing};
    setsockopt(device->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

/* Returns whether all packets that the kernel accepted have been read. A block that is not full is
 * delivered late. */
static bool has_all(struct device *device) {
    device_count(device);
    return counter_get(&device->counts->received) >=
           counter_get(&device->counts->kernel_received) -
               counter_get(&device->counts->dropped_kernel);
}

/* For the writing thread, which has all chunks. */
static void wait_chunk(struct device *device) {
    poll(NULL, 0, BEHIND_MS);
    device_count(device);
    atomic_store(&device->alive_ns, monotonic_ns());
}

/* Reads the packets that the kernel accepted before the stop or the removal of the interface, so
 * that received plus dropped equals the number that passed the filter. libpcap reports a removed
 * interface as an error whenever no block is ready, although the open block follows within
 * TIMEOUT_MS. Ends after END_NS at the latest. */
static void read_to_end(struct device *device) {
    int64_t until = monotonic_ns() + END_NS;
    refuse_packets(device);
    for (bool is_late = false; !is_late || device->stash_size;) {
        if (!release_stash(device)) {
            wait_chunk(device);
            until = monotonic_ns() + END_NS;
            continue;
        }
        struct pollfd ready = {.fd = device->fd, .events = POLLIN};
        poll(&ready, 1, 10);
        is_late = monotonic_ns() >= until;
        int count = pcap_dispatch(device->handle, -1, take_packet, (u_char *)device);
        if (!device->stash_size && (count == PCAP_ERROR_BREAK || has_all(device)))
            break;
        atomic_store(&device->alive_ns, monotonic_ns());
    }
}

static void wait_packets(struct device *device) {
    struct pollfd ready[] = {{.fd = device->handle ? device->fd : -1, .events = POLLIN},
                             {.fd = device->capture->wake_fd, .events = POLLIN}};
    poll(ready, 2, ROUND_MS);
}

/* Reads the kernel's counts, and hands over the chunk if it is due and the writing thread is idle;
 * if that is busy, a larger chunk costs less. */
static void end_round(struct device *device, int64_t complete_ns) {
    int64_t now = monotonic_ns();
    struct chunk *chunk = device->chunk;
    if (now - device->counted_ns >= COUNT_NS) {
        device->counted_ns = now;
        device_count(device);
    }
    bool due =
        chunk && chunk->left.packets &&
        (device->capture->settings->immediate || now - device->chunk_since_ns >= HAND_OVER_NS);
    if (due && device->capture->queue.idle && !device->capture->queue.is_held)
        hand_over(device, complete_ns);
    else if (!chunk || !chunk->left.packets)
        chunk_queue_push(&device->capture->queue, device->number, NULL, complete_ns);
    atomic_store(&device->alive_ns, now);
}

/* An interface that is down may come up again with the same socket, so only a new or missing index
 * counts as lost. */
static bool is_lost(const struct device *device) {
    return device->index && if_nametoindex(device->name) != device->index;
}

/* Reads the rest of the old socket before it is closed, and keeps the device waiting. */
static void lose(struct device *device) {
    log_warning("%s disappeared; waiting for it", device->name);
    read_to_end(device);
    hand_over(device, 0); /* the next packets may have another description */
    device_close(device);
    atomic_store(&device->state, DEVICE_WAITING);
}

/* The kernel's ring has been read to its end. */
static void note_caught_up(struct device *device) {
    if (device->is_behind)
        device_count(device);
    device->is_behind = false;
}

/* Reads up to ROUND_PACKETS. If fewer came, all older packets have been read, so that the time up
 * to which the device is complete can be stated. */
static void read_round(struct device *device) {
    int64_t begun = realtime_ns();
    if (!release_stash(device)) {
        wait_chunk(device);
        return;
    }
    int count = pcap_dispatch(device->handle, ROUND_PACKETS, take_packet, (u_char *)device);
    if (count == PCAP_ERROR && is_lost(device)) {
        lose(device);
        end_round(device, begun);
        return;
    }
    if (count == PCAP_ERROR)
        log_warning("%s: %s; waiting for it to come up", device->name, pcap_geterr(device->handle));
    if (count < ROUND_PACKETS && !device->stash_size) {
        note_caught_up(device);
        end_round(device, begun - RETIRE_NS);
        wait_packets(device);
    } else {
        end_round(device, 0);
    }
}

/* Tries to open the interface. An error other than absence is reported once and tried again,
 * because a device may return with a changed link type. */
static void wait_round(struct device *device) {
    enum open_result result = device_open(device);
    if (result == OPEN_DONE) {
        log_info("%s appeared; reading it", device->name);
        atomic_store(&device->state, DEVICE_READING);
        return;
    }
    if (result != OPEN_ABSENT && !device->is_warned) /* it exists, but its properties changed */
        log_warning("cannot open %s: %s; trying again", device->name, device->reason);
    device->is_warned = result != OPEN_ABSENT;
    end_round(device, realtime_ns() - RETIRE_NS);
    wait_packets(device);
}

static void *read_device(void *argument) {
    struct device *device = argument;
    struct capture *capture = device->capture;
    while (!atomic_load_explicit(&capture->stopping, memory_order_relaxed))
        if (device->handle)
            read_round(device);
        else
            wait_round(device);
    if (device->handle)
        read_to_end(device);
    hand_over(device, 0);
    device_close(device);
    atomic_store(&device->state, DEVICE_ENDED);
    chunk_queue_end(&capture->queue, device->number);
    return NULL;
}

bool device_start(struct device *device) {
    atomic_store(&device->alive_ns, monotonic_ns());
    const struct settings *settings = device->capture->settings;
    bool counts_repeats = settings->keep_on & KEEP_ON_REPEATS;
    device->repeats = counts_repeats ? malloc(sizeof *device->repeats) : NULL;
    if (device->repeats)
        repeats_open(device->repeats);
    device->is_watched = counts_repeats || settings->keep_match || device->capture->mirror;
    device->stash = malloc(RECORD_MAX);
    if (!device->stash || (counts_repeats && !device->repeats) ||
        pthread_create(&device->thread, NULL, read_device, device))
        return false;
    pthread_setname_np(device->thread, "read");
    return true;
}
