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
#include "common/json.h"
#include "common/units_text.h"

/* Words of enum status_state in the JSON lines; programs depend on them. */
static const char *const states[] = {"starting", "waiting",  "capturing", "holding",
                                     "dropping", "stopping", "ended"};

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
    const struct jobs *jobs = finisher->jobs;
    status->uncompressed = finisher->uncompressed;
    status->removed = finisher->ring ? finisher->ring->removed : 0;
    status->removed_pending = finisher->ring ? finisher->ring->removed_pending : 0;
    status->has_commands = jobs;
    if (!jobs)
        return;
    status->commands_waiting = jobs->waiting;
    status->commands_done = jobs->done;
    status->commands_failed = jobs->failed;
    status->commands_given_up = jobs->given_up;
}

/* Takes the counts of all devices and their sum. */
void status_take(struct status *status, struct capture *capture, struct output *output) {
    *status = (struct status){.bytes = atomic_load(&output->total_bytes),
                              .files = atomic_load(&output->files),
                              .unreadable = atomic_load(&output->finisher->left.unreadable)};
    for (uint32_t i = 0; i < capture->device_count; i++) {
        struct counts counts = description_counts(&capture->descriptions, i);
        counts_add(&status->all, &counts);
    }
    status->state = state_of(capture, output, status->all.queued);
    take_finishing(status, output->finisher);
    output_name(output, status->file);
}

/* Writes the counts that the sums and each interface have in common. */
static void put_counts(struct json *json, const struct counts *counts) {
    json_count(json, "received", (int64_t)counts->received);
    json_count(json, "written", (int64_t)counts->written);
    json_count(json, "queued", (int64_t)counts->queued);
    json_count(json, "dropped_kernel", (int64_t)counts->dropped_kernel);
    json_count(json, "dropped_interface", (int64_t)counts->dropped_interface);
    json_count(json, "dropped_queue", (int64_t)counts->dropped_queue);
    json_count(json, "dropped_disk", (int64_t)counts->dropped_disk);
}

static void put_truth(struct json *json, const char *name, bool is_known, bool truth) {
    if (is_known)
        json_bool(json, name, truth);
    else
        json_text(json, name, NULL);
}

static void put_clock(struct json *json, const struct clock_watch *clock) {
    const struct clock_state *state = &clock->state;
    json_open(json, "clock", '{');
    put_truth(json, "synchronized", state->is_known, state->is_synchronized);
    json_count(json, "error_ns", state->error_ns);
    json_decimal(json, "offset_ns", (double)state->offset_ns, state->is_known);
    json_count(json, "steps", (int64_t)clock->steps);
    json_decimal(json, "last_step_ns", (double)clock->last_step_ns, clock->steps);
    json_close(json, '}');
}

static void put_link(struct json *json, const struct link_seen *link) {
    put_truth(json, "carrier", link->is_known, link->has_carrier);
    json_count(json, "carrier_losses", (int64_t)link->losses);
    put_truth(json, "promiscuous", link->is_known, link->is_promiscuous);
    json_count(json, "mtu", link->is_known ? (int64_t)link->mtu : -1);
    json_count(json, "speed_bps",
               link->described.speed_bps ? (int64_t)link->described.speed_bps : -1);
}

/* Writes one interface with the counts of all its descriptions, so that its numbers do not restart
 * if it is opened again. */
static void put_device(struct json *json, struct device *device, const struct link_watch *links) {
    static const char *const names[] = {"waiting", "reading", "ended"};
    struct counts counts = description_counts(&device->capture->descriptions, device->number);
    json_open(json, NULL, '{');
    json_text(json, "name", device->name);
    json_text(json, "state", names[atomic_load(&device->state)]);
    put_counts(json, &counts);
    json_count(json, "received_bytes", (int64_t)counts.received_bytes);
    json_count(json, "kernel_received", (int64_t)counts.kernel_received);
    if (links)
        put_link(json, &links->seen[device->number]);
    json_close(json, '}');
}

/* Writes how far --on-close is, if it is given, and what the bounds of the ring removed. */
static void put_finishing(struct json *json, const struct status *status) {
    json_count(json, "removed_files", (int64_t)status->removed);
    json_count(json, "uncompressed_files", (int64_t)status->uncompressed);
    if (!status->has_commands)
        return;
    json_open(json, "commands", '{');
    json_count(json, "done", (int64_t)status->commands_done);
    json_count(json, "waiting", (int64_t)status->commands_waiting);
    json_count(json, "failed", (int64_t)status->commands_failed);
    json_count(json, "given_up", (int64_t)status->commands_given_up);
    json_count(json, "removed_early", (int64_t)status->removed_pending);
    json_close(json, '}');
}

/* Written through a stream into memory, so that it cannot exceed the buffer. */
size_t status_json(const struct status *status, const struct capture *capture,
                   char text[STATUS_SIZE]) {
    struct json json = {.out = fmemopen(text, STATUS_SIZE, "w")};
    if (!json.out)
        return 0;
    json_open(&json, NULL, '{');
    json_text(&json, "schema", "wiretale.capture/1");
    json_text(&json, "wiretale", WIRETALE_VERSION);
    json_text(&json, "state", states[status->state]);
    json_count(&json, "time_ns", realtime_ns());
    put_counts(&json, &status->all);
    json_count(&json, "bytes", (int64_t)status->bytes);
    json_count(&json, "files", (int64_t)status->files);
    json_text(&json, "file", *status->file ? status->file : NULL);
    json_count(&json, "unreadable_leftovers", (int64_t)status->unreadable);
    put_finishing(&json, status);
    if (status->clock)
        put_clock(&json, status->clock);
    json_open(&json, "interfaces", '[');
    for (uint32_t i = 0; i < capture->device_count; i++)
        put_device(&json, &capture->devices[i], status->links);
    json_close(&json, ']');
    json_close(&json, '}');
    fputc('\n', json.out);
    long length = ftell(json.out);
    return fclose(json.out) || length < 0 ? 0 : (size_t)length;
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
