/* SPDX-License-Identifier: Apache-2.0 */
/* Begin, stop and end of a transfer. The control block is allocated by the caller; streams are
 * allocated here.
 *
 * A stop is orderly: this end's senders stop at once, but receivers go on until the peer's "end" or
 * a limit of exchange.c, so that blocks under way are counted. Any thread may stop or fail a
 * transfer. */
#include "transfer/transfer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/wait.h"

/* Allocates the streams of a direction if it is active. */
static bool begin_direction(struct transfer *transfer, enum direction_name name) {
    struct direction *direction = &transfer->directions[name];
    direction->transfer = transfer;
    direction->name = name;
    direction->is_active =
        transfer->plan.direction == DIRECTION_BOTH || transfer->plan.direction == name;
    direction->is_sending = (name == DIRECTION_FORWARD) == transfer->is_initiator;
    if (!direction->is_active)
        return true;
    direction->count = (uint32_t)transfer->plan.streams;
    direction->streams = calloc(direction->count, sizeof *direction->streams);
    for (uint32_t i = 0; direction->streams && i < direction->count; i++) {
        direction->streams[i].direction = direction;
        direction->streams[i].number = (uint16_t)i;
        direction->streams[i].fd = -1;
    }
    return direction->streams != NULL;
}

/* Deadlines of `arrived` are on the monotonic clock, which is never set. */
bool transfer_begin(struct transfer *transfer) {
    wait_init(&transfer->arrived);
    pthread_mutex_init(&transfer->lock, NULL);
    transfer->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return transfer->wake >= 0 && begin_direction(transfer, DIRECTION_FORWARD) &&
           begin_direction(transfer, DIRECTION_REVERSE);
}

/* All threads must have been joined. The control connection is closed by its owner. */
void transfer_end(struct transfer *transfer) {
    for (unsigned name = 0; name < DIRECTIONS; name++) {
        struct direction *direction = &transfer->directions[name];
        for (uint32_t i = 0; direction->streams && i < direction->count; i++)
            if (direction->streams[i].fd >= 0)
                close(direction->streams[i].fd);
        free(direction->streams);
        direction->streams = NULL;
    }
    tcp_samples_free(&transfer->samples);
    content_end(&transfer->content);
    transfer_plan_free(&transfer->plan);
    if (transfer->wake >= 0)
        close(transfer->wake);
    pthread_cond_destroy(&transfer->arrived);
    pthread_mutex_destroy(&transfer->lock);
}

static void stop_sending(struct transfer *transfer) {
    for (unsigned name = 0; name < DIRECTIONS; name++)
        if (transfer->directions[name].is_sending)
            transfer->directions[name].stop = true;
}

/* `stop` is atomic, so it is set outside the lock. */
void transfer_stop(struct transfer *transfer, const char *reason, bool here) {
    pthread_mutex_lock(&transfer->lock);
    if (!transfer->stopped_by) {
        transfer->stopped_by = reason;
        transfer->stopped_at = here == transfer->is_initiator ? "sender" : "receiver";
    }
    pthread_mutex_unlock(&transfer->lock);
    stop_sending(transfer);
}

/* Later messages are dropped, because they are consequences of the first. */
void transfer_fail(struct transfer *transfer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&transfer->lock);
    if (!transfer->error_text[0])
        vsnprintf(transfer->error_text, sizeof transfer->error_text, format, arguments);
    pthread_mutex_unlock(&transfer->lock);
    va_end(arguments);
    transfer_stop(transfer, "error", true);
}
