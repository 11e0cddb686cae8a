/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer/option_table.h"

#include <stdio.h>
#include <string.h>

#include "traffic/option_names.h"
#include "transfer/program_name.h"
#include "transfer/units.h"

struct reading {
    const struct option_row *rows;
    size_t count;
    void *into;
    int argc, at;
    char **argv;
};

static bool is_flag(const struct option_row *row) {
    return row->kind == OPTION_FLAG || row->kind == OPTION_SET;
}

static const struct option_row *find_long(const struct reading *reading, const char *name,
                                          size_t length) {
    for (size_t i = 0; i < reading->count; i++)
        if (reading->rows[i].kind != OPTION_HEADING && strlen(reading->rows[i].name) == length &&
            !strncmp(reading->rows[i].name, name, length))
            return &reading->rows[i];
    return NULL;
}

static const struct option_row *find_letter(const struct reading *reading, char letter) {
    for (size_t i = 0; i < reading->count; i++)
        if (reading->rows[i].letter && reading->rows[i].letter == letter)
            return &reading->rows[i];
    return NULL;
}

static bool take_word(const struct option_row *row, uint64_t *at, const char *value) {
    for (uint64_t i = 0; row->words[i]; i++)
        if (!strcmp(row->words[i], value)) {
            *at = i;
            return true;
        }
    return false;
}

static bool read_bounded(const struct option_row *row, uint64_t *at, const char *value) {
    switch (row->kind) {
    case OPTION_SIZE: return units_size(value, at);
    case OPTION_COUNT: return units_count(value, at);
    case OPTION_PORT: return units_port(value, at);
    default: return units_duration(value, at);
    }
}

static const char *expected_of(const struct option_row *row) {
    switch (row->kind) {
    case OPTION_SIZE: return "bytes as in 1000, 64k or 64KiB";
    case OPTION_COUNT: return "a whole number as in 1000 or 64k";
    case OPTION_PORT: return "1 to 65535";
    default: return "a time as in 10, 1.5s or 200ms";
    }
}

static bool take_bounded(const struct option_row *row, uint64_t *at, const char *value) {
    bool right = read_bounded(row, at, value);
    if (right && *at >= row->min && (!row->max || *at <= row->max))
        return true;
    double unit = row->kind == OPTION_DURATION ? 1e9 : 1;
    char bound[48] = "";
    if (right && *at < row->min)
        snprintf(bound, sizeof bound, ", at least %.12g", (double)row->min / unit);
    else if (right)
        snprintf(bound, sizeof bound, ", at most %.12g", (double)row->max / unit);
    program_say("--%s %s: expected %s%s", row->name, value, expected_of(row), bound);
    return false;
}

static bool take_custom(const struct option_row *row, void *into, const char *value) {
    const char *expected = row->argument;
    if (row->take(into, value, &expected))
        return true;
    program_say("--%s %s: expected %s", row->name, value, expected);
    return false;
}

static bool take(const struct option_row *row, void *into, const char *value) {
    void *at = (char *)into + row->offset;
    switch (row->kind) {
    case OPTION_FLAG: *(bool *)at = true; return true;
    case OPTION_SET: *(uint64_t *)at = row->max; return true;
    case OPTION_TEXT: *(const char **)at = value; return true;
    case OPTION_SIZE:
    case OPTION_COUNT:
    case OPTION_PORT:
    case OPTION_DURATION: return take_bounded(row, at, value);
    case OPTION_WORD:
        if (take_word(row, at, value))
            return true;
        program_say("--%s %s: expected %s", row->name, value, row->argument);
        return false;
    case OPTION_CUSTOM: return take_custom(row, into, value);
    case OPTION_HEADING: break;
    }
    return false;
}

static bool take_with_value(struct reading *reading, const struct option_row *row,
                            const char *attached) {
    if (is_flag(row) && attached) {
        program_say("--%s: expected no value", row->name);
        return false;
    }
    if (!is_flag(row) && !attached && reading->at + 1 >= reading->argc) {
        program_say("--%s: expected %s", row->name, row->argument);
        return false;
    }
    if (is_flag(row))
        attached = "";
    else if (!attached)
        attached = reading->argv[++reading->at];
    return take(row, reading->into, attached);
}

static bool unknown(const char *argument) {
    program_say("%s: no such option; see --help", argument);
    return false;
}

static bool misspelt(const struct reading *reading, const char *argument, size_t length) {
    const char *near = NULL;
    for (size_t i = 0; i < reading->count; i++)
        if (reading->rows[i].kind != OPTION_HEADING)
            near = option_nearer(argument + 2, length - 2, near, reading->rows[i].name);
    if (!near)
        return unknown(argument);
    program_say("%.*s: no such option: did you mean --%s?", (int)length, argument, near);
    return false;
}

static bool take_long(struct reading *reading, const char *argument) {
    const char *equals = strchr(argument, '=');
    size_t length = equals ? (size_t)(equals - argument) : strlen(argument);
    const struct option_row *row = find_long(reading, argument + 2, length - 2);
    return row ? take_with_value(reading, row, equals ? equals + 1 : NULL)
               : misspelt(reading, argument, length);
}

/* "-u", "-s 64", "-s64", "-u4". */
static bool take_letters(struct reading *reading, const char *argument) {
    for (const char *letter = argument + 1; *letter; letter++) {
        const struct option_row *row = find_letter(reading, *letter);
        if (!row)
            return unknown(argument);
        if (!is_flag(row))
            return take_with_value(reading, row, letter[1] ? letter + 1 : NULL);
        if (!take(row, reading->into, ""))
            return false;
    }
    return true;
}

bool option_table_read(const struct option_row *rows, size_t count, void *into, int argc,
                       char **argv, const char **operands, size_t operands_most) {
    struct reading reading = {rows, count, into, argc, 0, argv};
    size_t have = 0;
    bool only_operands = false;
    for (; reading.at < argc; reading.at++) {
        const char *argument = argv[reading.at];
        bool right = true;
        if (!only_operands && !strcmp(argument, "--"))
            only_operands = true;
        else if (!only_operands && argument[0] == '-' && argument[1] == '-')
            right = take_long(&reading, argument);
        else if (!only_operands && argument[0] == '-' && argument[1])
            right = take_letters(&reading, argument);
        else if (have < operands_most)
            operands[have++] = argument;
        else
            right = (program_say("%s: expected no further argument", argument), false);
        if (!right)
            return false;
    }
    return true;
}

#define HELP_COLUMN  24
#define HELP_COLUMNS 80

/* Words of UTF-8 take a column for each byte that does not continue another. */
static size_t columns_of(const char *word, size_t length) {
    size_t columns = 0;
    for (size_t i = 0; i < length; i++)
        columns += ((unsigned char)word[i] & 0xC0) != 0x80;
    return columns;
}

static void print_filled(const char *text) {
    size_t column = HELP_COLUMN;
    while (*text) {
        size_t blanks = strspn(text, " "), length = strcspn(text + blanks, " "),
               columns = columns_of(text + blanks, length);
        if (column + blanks + columns > HELP_COLUMNS && column > HELP_COLUMN) {
            printf("\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
            blanks = (text += blanks, 0);
        }
        printf("%.*s", (int)(blanks + length), text);
        column += blanks + columns;
        text += blanks + length;
    }
    putchar('\n');
}

/* "  -f, --filter BPF", without the letter or the name that it has not. */
static int write_names(char *text, size_t room, const struct option_row *row) {
    char letter[] = {'-', row->letter, 0};
    return snprintf(text, room, "  %s%s%s%s%s%s", row->letter ? letter : "",
                    row->letter && row->name ? ", " : "", row->name ? "--" : "",
                    row->name ? row->name : "", row->argument ? " " : "",
                    row->argument ? row->argument : "");
}

void option_table_help(const struct option_row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char left[96];
        if (rows[i].kind == OPTION_HEADING) {
            printf("\n%s:\n", rows[i].help);
            continue;
        }
        int length = write_names(left, sizeof left, &rows[i]);
        printf("%s%*s", left, length + 2 <= HELP_COLUMN ? HELP_COLUMN - length : 0, "");
        if (length + 2 > HELP_COLUMN)
            printf("\n%*s", HELP_COLUMN, "");
        print_filled(rows[i].help);
    }
}
