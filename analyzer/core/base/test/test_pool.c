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
    struct pool_memory memory;
    struct allowance allowances[2] = {{.memory = &memory}, {.memory = &memory}};
    struct pool first = {.charged = &allowances[0]}, second = {.charged = &allowances[1]};
    pool_memory_open(&memory, 10 * MEGABYTE, true);
    void *blocks[16];
    size_t taken = take_all(&first, blocks, 6);
    CHECK_INT(taken, 6);
    CHECK_INT(take_all(&second, blocks + taken, 10), 4);
    CHECK(!pool_alloc(&first, 1));
    for (size_t i = 0; i < 10; i++) /* all are given to the second, which took four */
        pool_free(&second, blocks[i], MEGABYTE);
    CHECK_INT(allowances[0].used + allowances[1].used, 0);
    allowance_return_unused(&allowances[0]);
    allowance_return_unused(&allowances[1]);
    CHECK_INT(memory.left, 10 * MEGABYTE);
    CHECK_INT(take_all(&first, blocks, 16), 10);
    for (size_t i = 0; i < 10; i++)
        pool_free(&first, blocks[i], MEGABYTE);
    pool_memory_close(&memory);
}

/* A grant may hold more than was asked for; settling gives the rest back. */
static void check_small_blocks_take_grants(void) {
    struct pool_memory memory;
    struct allowance allowances[2] = {{.memory = &memory}, {.memory = &memory}};
    struct pool first = {.charged = &allowances[0]}, second = {.charged = &allowances[1]};
    pool_memory_open(&memory, 3 * MEGABYTE / 2, true);
    void *block = pool_alloc(&first, 100);
    CHECK(block);
    CHECK_INT(memory.left, MEGABYTE / 2);
    CHECK(!pool_alloc(&second, MEGABYTE));
    allowance_return_unused(&allowances[0]);
    CHECK_INT(memory.left, 3 * MEGABYTE / 2 - 100);
    void *large = pool_alloc(&second, MEGABYTE);
    CHECK(large);
    pool_free(&second, large, MEGABYTE);
    pool_free(&first, block, 100);
    pool_memory_close(&memory);
}

static void check_none_without_a_pool(void) {
    struct pool pool = {.own.most = 0};
    CHECK(!pool_alloc(&pool, 1));
}

int main(void) {
    check_bound_is_shared();
    check_small_blocks_take_grants();
    check_none_without_a_pool();
    return 0;
}
