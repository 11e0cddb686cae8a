/* SPDX-License-Identifier: Apache-2.0 */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "json_text.h"
#include "moment.h"

static const char *const states[] = {"starting", "waiting",  "capturing",
                                     "dropping", "stopping", "ended"};

static enum status_state state_of(struct capture *capture, const struct output *output) {
    unsigned reading = 0, ended = 0;
    for (uint32_t i = 0; i < capture->device_count; i++) {
        int state = atomic_load(&capture->devices[i].state);
        reading += state == DEVICE_READING;
        ended += state == DEVICE_ENDED;
    }
    if (ended == capture->device_count)
        return STATUS_ENDED;
    if (atomic_load(&capture->stopping))
        return STATUS_STOPPING;
    if (!reading)
        return STATUS_WAITING;
    return atomic_load(&output->refusing) ? STATUS_DROPPING : STATUS_CAPTURING;
}

void status_take(struct status *status, struct capture *capture, struct output *output) {
    *status = (struct status){.state = state_of(capture, output),
                              .bytes = atomic_load(&output->total_bytes),
                              .files = atomic_load(&output->files)};
    for (uint32_t i = 0; i < capture->device_count; i++) {
        struct counts counts = description_counts(&capture->descriptions, i);
        counts_sum(&status->all, &counts);
    }
    output_name(output, status->file);
}

static void put_counts(struct json_text *json, const struct counts *counts) {
    json_number(json, "received", (int64_t)counts->received);
    json_number(json, "written", (int64_t)counts->written);
    json_number(json, "queued", (int64_t)counts->queued);
    json_number(json, "dropped_kernel", (int64_t)counts->dropped_kernel);
    json_number(json, "dropped_interface", (int64_t)counts->dropped_interface);
    json_number(json, "dropped_queue", (int64_t)counts->dropped_queue);
    json_number(json, "dropped_disk", (int64_t)counts->dropped_disk);
}

static void put_device(struct json_text *json, struct device *device) {
    static const char *const names[] = {"waiting", "reading", "ended"};
    struct counts counts = description_counts(&device->capture->descriptions, device->number);
    json_begin(json, NULL, '{');
    json_string(json, "name", device->name);
    json_string(json, "state", names[atomic_load(&device->state)]);
    put_counts(json, &counts);
    json_number(json, "received_bytes", (int64_t)counts.received_bytes);
    json_number(json, "kernel_received", (int64_t)counts.kernel_received);
    json_end(json, '}');
}

size_t status_json(const struct status *status, const struct capture *capture,
                   char text[STATUS_ROOM]) {
    struct json_text json = {.text = text, .room = STATUS_ROOM - 2};
    json_begin(&json, NULL, '{');
    json_string(&json, "schema", "wiretale.capture/1");
    json_string(&json, "wiretale", WIRETALE_VERSION);
    json_string(&json, "state", states[status->state]);
    json_number(&json, "time_ns", wall_ns());
    put_counts(&json, &status->all);
    json_number(&json, "bytes", (int64_t)status->bytes);
    json_number(&json, "files", (int64_t)status->files);
    if (*status->file)
        json_string(&json, "file", status->file);
    else
        json_null(&json, "file");
    json_begin(&json, "interfaces", '[');
    for (uint32_t i = 0; i < capture->device_count; i++)
        put_device(&json, &capture->devices[i]);
    json_end(&json, ']');
    json_end(&json, '}');
    text[json.used++] = '\n';
    return json.used;
}

void status_text(const struct status *status, char *text, size_t size) {
    const struct counts *all = &status->all;
    int used = snprintf(
        text, size,
        "%llu packets received, %llu written in %llu bytes; dropped: %llu by the kernel, %llu by "
        "the interface, %llu by the queue, %llu by the disk",
        (unsigned long long)all->received, (unsigned long long)all->written,
        (unsigned long long)status->bytes, (unsigned long long)all->dropped_kernel,
        (unsigned long long)all->dropped_interface, (unsigned long long)all->dropped_queue,
        (unsigned long long)all->dropped_disk);
    if (all->queued && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, "; %llu wait", (unsigned long long)all->queued);
}
