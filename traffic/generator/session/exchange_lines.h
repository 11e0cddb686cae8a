/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a running test. */
#ifndef WIRETALE_EXCHANGE_LINES_H
#define WIRETALE_EXCHANGE_LINES_H

#include "transfer/transfer.h"

/* Takes what the other end said: NULL, or what is wrong with it. */
const char *exchange_take_line(struct test *test, const char *line);

/* Says what each stream of a way sent or received, then that this was all. */
bool exchange_say_reports(struct test *test, struct way *way);
bool exchange_say_stop(struct test *test, const char *reason);

/* Ports of UDP sockets, before the start. */
bool exchange_say_ports(struct test *test, struct way *way, const int *ports);

#endif
