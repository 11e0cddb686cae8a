/* SPDX-License-Identifier: Apache-2.0 */
/* The counts are taken without stopping any thread. Each sum is consistent in itself
 * (buffer/interfaces.h), but interfaces are read one after the other. */
#include "status/status.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/units_text.h"

/* The worst state wins: a disk that refuses packets hides that interfaces are read. A capture has
 * not ended while packets wait for the disk. */
static enum status_state state_of(struct capture *capture, const struct output *output,
                                  uint64_t queued) {
    unsigned reading = 0, ended = 0;
    for (uint32_t i = 0; i < capture->device_count; i++) {
        int state = atomic_load(&capture->devices[i].state);
        reading += state == DEVICE_READING;
        ended += state == DEVICE_ENDED;
    }
    if (ended == capture->device_count && !queued)
        return STATUS_ENDED;
    if (ended == capture->device_count || atomic_load(&capture->stopping))
        return STATUS_STOPPING;
    if (!reading)
        return STATUS_WAITING;
    if (!atomic_load(&output->failing))
        return STATUS_CAPTURING;
    return capture->queue.empty_count ? STATUS_HOLDING : STATUS_DROPPING;
}

/* A stream has neither ring nor commands. */
static void take_finishing(struct status *status, const struct finisher *finisher) {
    const struct jobs *jobs = finisher->publisher.jobs;
    const struct ring *ring = finisher->ring;
    status->unreadable = finisher->left.unreadable;
    status->has_finishing = finisher->directory && !finisher->directory->is_stream;
    status->finishing_waiting = jobs->finishing.waiting;
    status->finishing_done = jobs->finishing.done;
    status->finishing_failed = jobs->finishing.failed;
    status->finishing_given_up = jobs->finishing.given_up;
    status->has_commands = jobs->command;
    status->commands_waiting = jobs->commands.waiting;
    status->commands_done = jobs->commands.done;
    status->commands_failed = jobs->commands.failed;
    status->commands_given_up = jobs->commands.given_up;
    status->commands_failing = jobs->is_failing;
    status->has_ring = ring && ring_is_bounded(ring);
    if (!status->has_ring)
        return;
    status->removed = ring->removed;
    status->removed_pending = ring->removed_pending;
    status->ring_files = ring->file_count;
    status->ring_bytes = ring->byte_count;
    status->ring_oldest_ns = ring->oldest_begun_ns;
    status->ring_age_ns = clock_ns(CLOCK_BOOTTIME) - ring->oldest_closed_ns;
}

static void take_interface(struct status *status, struct device *device) {
    struct interface_status *interface = &status->interfaces[device->number];
    interface->name = device->name;
    interface->state = atomic_load(&device->state);
    interface->is_read = interface->state == DEVICE_READING;
    interface->counts = description_counts(&device->capture->descriptions, device->number);
    counts_add(&status->all, &interface->counts);
    if (!device->repeats)
        return;
    status->has_tcp = true;
    status->tcp_segments += device->repeats->segments;
    status->tcp_repeated += device->repeats->repeated;
}

void status_take(struct status *status, struct capture *capture, struct output *output) {
    const struct chunk_queue *queue = &capture->queue;
    int64_t waiting_ns = atomic_load(&output->waiting_ns);
    *status =
        (struct status){.bytes = atomic_load(&output->total_bytes),
                        .files = atomic_load(&output->files),
                        .kept_spans = atomic_load(&output->kept_spans),
                        .disk_bytes = atomic_load(&output->disk_bytes),
                        .disk_free_bytes = atomic_load(&output->disk_free_bytes),
                        .buffer_bytes = queue->chunks * CHUNK_BYTES,
                        .buffer_used_bytes = (queue->chunks - queue->empty_count) * CHUNK_BYTES,
                        .lag_ns = waiting_ns ? monotonic_ns() - waiting_ns : 0,
                        .interface_count = capture->device_count};
    for (uint32_t i = 0; i < capture->device_count; i++)
        take_interface(status, &capture->devices[i]);
    status->state = state_of(capture, output, status->all.queued);
    take_finishing(status, output->finisher);
    output_name(output, status->file);
}

/* Appends to the text in a buffer of `size` bytes. */
static __attribute__((format(printf, 3, 4))) void append(char *text, size_t size,
                                                         const char *format, ...) {
    va_list arguments;
    size_t used = strlen(text);
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

/* Appends who dropped packets, if it did. */
static void append_drops(char *text, size_t size, uint64_t packets, const char *who,
                         const char **separator) {
    if (!packets)
        return;
    append(text, size, "%s%s by the %s", *separator, UNITS_SHOW(SHOWN_COUNT, packets), who);
    *separator = ", ";
}

/* Packets in the queue are only mentioned if there are any: at the end there are none. */
void status_text(const struct status *status, char *text, size_t size) {
    const struct counts *all = &status->all;
    uint64_t lost = counts_lost(all), offered = counts_offered(all);
    const char *separator = ": ";
    snprintf(text, size, "%s packet%s received", UNITS_SHOW(SHOWN_COUNT, all->received),
             all->received == 1 ? "" : "s");
    if (all->written)
        append(text, size, ", %s written (%s)",
               all->written == all->received ? "all" : UNITS_SHOW(SHOWN_COUNT, all->written),
               UNITS_SHOW(SHOWN_BYTES, status->bytes));
    if (lost)
        append(text, size, "; lost %s of %s (%s)", UNITS_SHOW(SHOWN_COUNT, lost),
               UNITS_SHOW(SHOWN_COUNT, offered), UNITS_SHOW_SHARE(lost, offered));
    else
        append(text, size, "; none lost");
    append_drops(text, size, all->dropped_kernel, "kernel", &separator);
    append_drops(text, size, all->dropped_interface, "interface", &separator);
    append_drops(text, size, all->dropped_queue, "queue", &separator);
    append_drops(text, size, all->dropped_disk, "disk", &separator);
    if (all->queued)
        append(text, size, "; %s wait", UNITS_SHOW(SHOWN_COUNT, all->queued));
}

/* An address that begins with @ is abstract. WATCHDOG_PID guards against a value that a parent
 * process inherited. */
void service_open(struct service *service) {
    const char *path = getenv("NOTIFY_SOCKET");
    const char *watchdog = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
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
    if (watchdog && (!pid || atoll(pid) == getpid()))
        service->watchdog_ns = strtoll(watchdog, NULL, 10) * 1000;
}

/* A datagram that cannot be sent is dropped: systemd must not delay the capture. */
void service_notify(struct service *service, const char *format, ...) {
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
