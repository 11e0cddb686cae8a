/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities as text: the rows of tests/analyzer/units.tsv for the quantities that C programs
 * show. */
#include "common/units_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/test/check.h"

#define LINE_SIZE  256
#define ROWS_LEAST 400

static const struct {
    const char *name;
    enum shown_unit unit;
} quantities[] = {{"duration", SHOWN_DURATION}, {"bytes", SHOWN_BYTES}, {"rate", SHOWN_RATE}};

static void check_text(const char *text, const char *expected) {
    if (strcmp(text, expected))
        fprintf(stderr, "%s is not %s\n", text, expected);
    CHECK(!strcmp(text, expected));
}

/* The table is beside this file, whatever the current directory is. */
static FILE *open_table(void) {
    char path[4096];
    const char *source = __FILE__, *folder = strstr(source, "common/test/");
    snprintf(path, sizeof path, "%.*stests/analyzer/units.tsv", (int)(folder - source), source);
    FILE *file = fopen(path, "r");
    CHECK(file);
    return file;
}

/* Returns whether a row is one of a C program. */
static bool check_row(const char *quantity, const char *value, const char *expected) {
    char text[UNITS_TEXT_SIZE];
    for (size_t i = 0; i < sizeof quantities / sizeof *quantities; i++)
        if (!strcmp(quantity, quantities[i].name) && strcmp(value, "null")) {
            check_text(units_show(quantities[i].unit, strtod(value, NULL), text), expected);
            return true;
        }
    const char *total = strchr(value, '/');
    if (total)
        check_text(units_show_share(strtod(value, NULL), strtod(total + 1, NULL), text), expected);
    return total;
}

static void test_quantities_have_the_texts_of_the_table(void) {
    char line[LINE_SIZE];
    unsigned rows = 0;
    FILE *file = open_table();
    CHECK(fgets(line, sizeof line, file));
    check_text(line, "quantity\tvalue\ttext\n");
    while (fgets(line, sizeof line, file)) {
        char *quantity = strtok(line, "\t\n"), *value = strtok(NULL, "\t\n");
        rows += check_row(quantity, value, strtok(NULL, "\t\n"));
    }
    CHECK(rows >= ROWS_LEAST);
    fclose(file);
}

static void test_a_value_without_bound_is_a_dash(void) {
    check_text(UNITS_SHOW(SHOWN_DURATION, 1e300), "\xe2\x80\x93");
    check_text(UNITS_SHOW(SHOWN_BYTES, 9.99e35), "999,000,000,000,000,000 EB");
}

int main(void) {
    test_quantities_have_the_texts_of_the_table();
    test_a_value_without_bound_is_a_dash();
    return 0;
}
