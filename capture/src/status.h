/* SPDX-License-Identifier: Apache-2.0 */
/* The counts as text: for people, and as JSON. */
#ifndef WIRETALE_STATUS_H
#define WIRETALE_STATUS_H

#include "device.h"
#include "output.h"

#define STATUS_ROOM 16384

enum status_state {
    STATUS_STARTING,
    STATUS_WAITING,
    STATUS_CAPTURING,
    STATUS_DROPPING,
    STATUS_STOPPING,
    STATUS_ENDED
};

struct status {
    enum status_state state;
    struct counts all;
    uint64_t bytes, files;
    char file[NAME_ROOM];
};

void status_take(struct status *status, struct capture *capture, struct output *output);
/* One line of JSON with its newline; the length. */
size_t status_json(const struct status *status, const struct capture *capture,
                   char text[STATUS_ROOM]);
/* "12 received, 12 written, dropped: 0 by the kernel, ..." */
void status_text(const struct status *status, char *text, size_t size);

#endif
