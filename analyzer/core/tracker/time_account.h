/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a flow's time account (tcp/time_account.h); its steps are in tracker/steps.h. */
#ifndef WIRETALE_TRACKER_TIME_ACCOUNT_H
#define WIRETALE_TRACKER_TIME_ACCOUNT_H

#include "tcp/connection.h"

/* Closes the account at the end of the flow, whose first and last packet had these times. */
void finish_time(struct tcp_connection *connection, struct pool *pool, int64_t first_ns,
                 int64_t last_ns);

/* Returns the part of PART_PATH in which a sender's congestion window was below its level before
 * its last loss. */
int64_t reduced_path_ns(const struct time_account *account);

void time_account_free(struct time_account *account, struct pool *pool);

#endif
