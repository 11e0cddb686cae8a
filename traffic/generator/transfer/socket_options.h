/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a plan, as setsockopt() takes them. */
#ifndef WIRETALE_SOCKET_OPTIONS_H
#define WIRETALE_SOCKET_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "transfer/transfer_plan.h"

#define UDP_BUFFER_DEFAULT (8 << 20) /* bytes; what a busy receiver needs to be woken in time */

/* 0, or -1 with one line in `why`. */
int socket_options_set(int fd, int family, bool udp, const struct socket_plan *plan, char *error,
                       size_t room);

#endif
