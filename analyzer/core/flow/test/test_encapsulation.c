/* SPDX-License-Identifier: Apache-2.0 */
/* Chains are numbered in the order in which they come, and all are found again. */
#include "flow/flow.h"

#include <string.h>

#include "common/test/check.h"

static uint32_t number_of(struct encapsulation_table *table, uint32_t id) {
    struct path_step step = {.kind = PATH_VXLAN, .id = id};
    return encapsulation_table_number(table, &step, 1);
}

static bool finds(const struct encapsulation_table *table, uint32_t id, uint32_t expected) {
    struct path_step step = {PATH_VXLAN, id};
    uint32_t number;
    return encapsulation_table_find(table, &step, 1, &number) && number == expected;
}

static void check_numbers(void) {
    struct encapsulation_table *table = encapsulation_table_open();
    char text[PATH_TEXT_MAX];
    CHECK_INT(encapsulation_table_number(table, NULL, 0), 0);
    CHECK_INT(number_of(table, 7), 1);
    CHECK(finds(table, 7, 1) && !finds(table, 14, 2)); /* another thread must add it */
    for (uint32_t i = 0; i < 2 * (PATHS_MOST - 1); i++)
        CHECK_INT(number_of(table, (i % (PATHS_MOST - 1) + 1) * 7), i % (PATHS_MOST - 1) + 1);
    encapsulation_table_text(table, 300, text);
    CHECK(!strcmp(text, "vxlan 2100"));
    encapsulation_table_text(table, 0, text);
    CHECK(!strcmp(text, ""));
    /* Full: further chains share the last number, and those of before keep theirs. */
    CHECK_INT(number_of(table, 1), PATHS_MOST - 1);
    CHECK_INT(number_of(table, 2), PATHS_MOST - 1);
    CHECK_INT(number_of(table, 7), 1);
    CHECK(finds(table, 7, 1) && finds(table, 3, PATHS_MOST - 1));
    encapsulation_table_close(table);
}

static void check_chains(void) {
    struct encapsulation_table *table = encapsulation_table_open();
    struct path_step steps[] = {{PATH_VLAN, 10}, {PATH_VXLAN, 7}, {PATH_IPIP, 0}};
    struct path_step service[] = {{PATH_PBB, 256}, {PATH_GTP_U, 0}, {PATH_CAPWAP, 0}};
    char text[PATH_TEXT_MAX];
    for (unsigned i = 0; i < 6; i++)
        CHECK_INT(encapsulation_table_number(table, steps, i % 3 + 1), i % 3 + 1);
    encapsulation_table_text(table, 3, text);
    CHECK(!strcmp(text, "vlan 10 / vxlan 7 / ipip"));
    encapsulation_table_text(table, encapsulation_table_number(table, service, 3), text);
    CHECK(!strcmp(text, "pbb 256 / gtp-u / capwap"));
    encapsulation_table_close(table);
}

int main(void) {
    check_numbers();
    check_chains();
    return 0;
}
