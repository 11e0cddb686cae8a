/* SPDX-License-Identifier: Apache-2.0 */
/* Allowances that share a bound: what one gets the other cannot get, and what is not used goes
 * back. */
#include "base/pool.h"

#include <string.h>

#include "common/test/check.h"

#define MEGABYTE ((size_t)1 << 20)

/* Blocks of a megabyte until there are no more. */
static size_t take_all(struct pool *pool, void **blocks, size_t most) {
    size_t count = 0;
    while (count < most && (blocks[count] = pool_alloc(pool, MEGABYTE)))
        memset(blocks[count++], 7, MEGABYTE);
    return count;
}

static void check_bound_is_shared(void) {
    atomic_size_t left = 10 * MEGABYTE;
    struct pool first = {.budget = &left}, second = {.budget = &left};
    void *blocks[16];
    size_t taken = take_all(&first, blocks, 6);
    CHECK_INT(taken, 6);
    CHECK_INT(take_all(&second, blocks + taken, 10), 4);
    CHECK(!pool_alloc(&first, 1));
    for (size_t i = 0; i < 10; i++) /* all are given to the second, which took four */
        pool_free(&second, blocks[i], MEGABYTE);
    CHECK_INT(first.used + second.used, 0);
    pool_return_unused(&first);
    pool_return_unused(&second);
    CHECK_INT(left, 10 * MEGABYTE);
    CHECK_INT(take_all(&first, blocks, 16), 10);
    for (size_t i = 0; i < 10; i++)
        pool_free(&first, blocks[i], MEGABYTE);
    pool_close(&first);
    pool_close(&second);
}

/* A grant may hold more than was asked for; settling gives the rest back. */
static void check_small_blocks_take_grants(void) {
    atomic_size_t left = 3 * MEGABYTE / 2;
    struct pool first = {.budget = &left}, second = {.budget = &left};
    void *block = pool_alloc(&first, 100);
    CHECK(block);
    CHECK_INT(left, MEGABYTE / 2);
    CHECK(!pool_alloc(&second, MEGABYTE));
    pool_return_unused(&first);
    CHECK_INT(left, 3 * MEGABYTE / 2 - 100);
    void *large = pool_alloc(&second, MEGABYTE);
    CHECK(large);
    pool_free(&second, large, MEGABYTE);
    pool_free(&first, block, 100);
    pool_close(&first);
    pool_close(&second);
}

static void check_none_without_a_pool(void) {
    struct pool pool = {.most = 0};
    CHECK(!pool_alloc(&pool, 1));
}

int main(void) {
    check_bound_is_shared();
    check_small_blocks_take_grants();
    check_none_without_a_pool();
    return 0;
}
