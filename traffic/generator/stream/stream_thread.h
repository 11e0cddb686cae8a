/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRETALE_STREAM_THREAD_H
#define WIRETALE_STREAM_THREAD_H

#include "transfer/transfer.h"

/* Starts a thread for each stream of a direction. Returns false, after transfer_fail(), if one
 * could not be started; those that run must still be joined. */
bool direction_start(struct direction *direction);
/* Waits for all threads of a direction. */
void direction_join(struct direction *direction);

#endif
