/* SPDX-License-Identifier: Apache-2.0 */
/* The status for programs: a line of JSON, and text for Prometheus. One table makes both. */
#ifndef WIRETALE_CAPTURE_METRICS_H
#define WIRETALE_CAPTURE_METRICS_H

#include "status/status.h"

#define METRICS_SIZE   65536 /* bytes of either */
#define METRICS_PREFIX "wiretale_capture_"
#define METRICS_END    "# EOF\n"

/* Writes one line of JSON with its newline. Returns its length, or 0 if memory is short. */
size_t metrics_json(const struct status *status, char text[METRICS_SIZE]);

/* Writes Prometheus' text format 0.0.4, with METRICS_END behind it, which it takes for a comment.
 * Returns the length, or 0 if memory is short. */
size_t metrics_prometheus(const struct status *status, char text[METRICS_SIZE]);

#endif
