/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a running test. */
#ifndef WIRETALE_EXCHANGE_LINES_H
#define WIRETALE_EXCHANGE_LINES_H

#include "transfer/transfer.h"

/* Takes what the other end said: NULL, or what is wrong with it. */
const char *exchange_take_line(struct transfer *transfer, const char *line);

/* Says what each stream of a way sent or received, then that this was all. */
bool exchange_send_reports(struct transfer *transfer, struct direction *direction);
bool exchange_send_stop(struct transfer *transfer, const char *reason);

/* Ports of UDP sockets, before the start. */
bool exchange_send_ports(struct transfer *transfer, struct direction *direction, const int *ports);

#endif
