/* SPDX-License-Identifier: Apache-2.0 */
/* Allowances that share a bound: what one gets the other cannot get, and what is not used goes
 * back. */
#include "base/pool.h"

#include <string.h>

#include "common/check.h"

#define MEGABYTE ((size_t)1 << 20)

/* Blocks of a megabyte until there are no more. */
static size_t take_all(struct allowance *allowance, void **blocks, size_t most) {
    size_t count = 0;
    while (count < most && (blocks[count] = allowance_take(allowance, MEGABYTE)))
        memset(blocks[count++], 7, MEGABYTE);
    return count;
}

static void check_bound_is_shared(void) {
    atomic_size_t left = 10 * MEGABYTE;
    struct allowance first = {.pool = &left}, second = {.pool = &left};
    void *blocks[16];
    size_t taken = take_all(&first, blocks, 6);
    CHECK_INT(taken, 6);
    CHECK_INT(take_all(&second, blocks + taken, 10), 4);
    CHECK(!allowance_take(&first, 1));
    for (size_t i = 0; i < 10; i++) /* all are given to the second, which took four */
        allowance_give(&second, blocks[i], MEGABYTE);
    CHECK_INT(first.used + second.used, 0);
    allowance_settle(&first);
    allowance_settle(&second);
    CHECK_INT(left, 10 * MEGABYTE);
    CHECK_INT(take_all(&first, blocks, 16), 10);
    for (size_t i = 0; i < 10; i++)
        allowance_give(&first, blocks[i], MEGABYTE);
    allowance_close(&first);
    allowance_close(&second);
}

/* A grant may hold more than was asked for; settling gives the rest back. */
static void check_small_blocks_take_grants(void) {
    atomic_size_t left = 3 * MEGABYTE / 2;
    struct allowance first = {.pool = &left}, second = {.pool = &left};
    void *block = allowance_take(&first, 100);
    CHECK(block);
    CHECK_INT(left, MEGABYTE / 2);
    CHECK(!allowance_take(&second, MEGABYTE));
    allowance_settle(&first);
    CHECK_INT(left, 3 * MEGABYTE / 2 - 100);
    void *large = allowance_take(&second, MEGABYTE);
    CHECK(large);
    allowance_give(&second, large, MEGABYTE);
    allowance_give(&first, block, 100);
    allowance_close(&first);
    allowance_close(&second);
}

static void check_none_without_a_pool(void) {
    struct allowance allowance = {.most = 0};
    CHECK(!allowance_take(&allowance, 1));
}

int main(void) {
    check_bound_is_shared();
    check_small_blocks_take_grants();
    check_none_without_a_pool();
    return 0;
}
