/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the status socket of a capture, for one question. */
#ifndef WIRETALE_CAPTURE_ASK_H
#define WIRETALE_CAPTURE_ASK_H

#include <stddef.h>

#include "status/metrics.h"

enum ask_result {
    ASK_DONE,
    ASK_ABSENT, /* nobody listens */
    ASK_DENIED, /* no permission */
    ASK_SILENT, /* no answer within some seconds */
};

/* Sends the command, or only waits for the status if it is NULL. Writes the answer, without
 * METRICS_END. If there is none, `reason` has the text. */
enum ask_result ask(const char *path, const char *command, char answer[METRICS_SIZE],
                    char reason[256]);

#endif
