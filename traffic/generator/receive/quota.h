/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of blocks that each address may move in a time. */
#ifndef WIRETALE_QUOTA_H
#define WIRETALE_QUOTA_H

#include "common/clock.h"
#include "control/control.h"
#include "transfer/endpoint.h"

#define MAX_QUOTA_ADDRESSES 4096u

struct quota_address;

struct quota {
    uint64_t bytes, ns;         /* 0: no quota */
    struct quota_address *list; /* made with the first test */
    uint32_t count;
};

/* Parses "10G/24h" into a struct quota (common/options.h). */
bool quota_take(void *quota, const char *text, const char **expected);

/* Takes `wanted` bytes (0: all that are left) for a test and returns their number. Returns 0 with
 * `error` set if the address has not so many. */
uint64_t quota_grant(struct quota *quota, const union endpoint *peer, uint64_t wanted,
                     uint64_t now_ns, char error[ERROR_SIZE]);
/* Returns the bytes of a grant that the test did not move. */
void quota_return(struct quota *quota, const union endpoint *peer, uint64_t granted,
                  uint64_t moved);

#endif
