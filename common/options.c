/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a command line by its table. Options and operands may be mixed, as with getopt_long(); "--"
 * ends the options. A misspelt name is compared with all names by edit distance, and the nearest is
 * suggested if few letters differ. Every error exits, so that no caller has to handle half-read
 * options. */
#include "common/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/units.h"

#define NAME_MAX_LENGTH 32
#define MAX_SLIPS       2 /* letters by which a misspelt name may differ */

struct reader {
    const struct command_line *command;
    void *into;
    int argc, at;
    char **argv;
};

static bool takes_value(const struct option_row *row) {
    return row->kind >= OPTION_SIZE && row->kind <= OPTION_CUSTOM;
}

static bool is_option(const struct option_row *row) {
    return row->kind != OPTION_HINT;
}

/* Copies the next of the names that "|" separates. Returns false if there are no more. */
static bool next_name(const char **names, char name[NAME_MAX_LENGTH + 1]) {
    if (!*names || !**names)
        return false;
    size_t length = strcspn(*names, "|");
    snprintf(name, NAME_MAX_LENGTH + 1, "%.*s", (int)length, *names);
    *names += length + ((*names)[length] == '|');
    return true;
}

/* "@" in the help stands for the name of the program. */
static _Noreturn void print_help(const char *text) {
    for (; *text; text++)
        if (*text == '@')
            fputs(program_base_name(), stdout);
        else
            putchar(*text);
    exit(finish_output(stdout) ? EXIT_DONE : EXIT_IO);
}

static _Noreturn void print_version(void) {
    puts(WIRETALE_PROGRAM " " WIRETALE_VERSION);
    exit(finish_output(stdout) ? EXIT_DONE : EXIT_IO);
}

static unsigned least(unsigned a, unsigned b, unsigned c) {
    unsigned lower = a < b ? a : b;
    return lower < c ? lower : c;
}

/* Letters that are wrong, missing, too many or swapped with their neighbor (optimal string
 * alignment); 1 for a prefix, which people take from programs that complete names. */
static unsigned distance(const char *given, size_t length, const char *name) {
    unsigned lines[3][NAME_MAX_LENGTH + 1], columns = (unsigned)strlen(name);
    if (length >= 2 && !strncmp(given, name, length))
        return 1;
    if (length > NAME_MAX_LENGTH)
        return NAME_MAX_LENGTH;
    for (unsigned i = 0; i <= length; i++) {
        unsigned *line = lines[i % 3], *above = lines[(i + 2) % 3], *two_above = lines[(i + 1) % 3];
        line[0] = i;
        for (unsigned j = 1; j <= columns; j++) {
            line[j] = line[j - 1] + 1;
            if (i)
                line[j] =
                    least(line[j], above[j] + 1, above[j - 1] + (given[i - 1] != name[j - 1]));
            if (i > 1 && j > 1 && given[i - 1] == name[j - 2] && given[i - 2] == name[j - 1])
                line[j] = least(line[j], two_above[j - 2] + 1, line[j]);
        }
    }
    return lines[length % 3][columns];
}

/* Returns the row of a name or alias. If there is none, suggests the nearest name and does not
 * return. A short name must be nearly right, or any would be near. */
static const struct option_row *find_name(const struct reader *reader, const char *given,
                                          size_t length) {
    char name[NAME_MAX_LENGTH + 1], nearest[NAME_MAX_LENGTH + 1] = "";
    size_t slips = (length + 1) / 3;
    unsigned best = (unsigned)(slips < MAX_SLIPS ? slips : MAX_SLIPS) + 1;
    for (size_t i = 0; i < reader->command->count; i++) {
        const struct option_row *row = &reader->command->rows[i];
        for (const char *names = is_option(row) ? row->name : NULL; next_name(&names, name);) {
            if (strlen(name) == length && !strncmp(name, given, length))
                return row;
            unsigned slip = distance(given, length, name);
            if (slip < best) {
                best = slip;
                strcpy(nearest, name);
            }
        }
    }
    fail(EXIT_USAGE, "there is no option --%.*s%s%s%s; see `%s --help`", (int)length, given,
         *nearest ? " (did you mean --" : "", nearest, *nearest ? "?)" : "", program_name());
}

/* Letters that are common in other programs have a hint instead of a suggestion. */
static const struct option_row *find_letter(const struct reader *reader, char letter) {
    const char *hint = NULL;
    for (size_t i = 0; i < reader->command->count; i++) {
        const struct option_row *row = &reader->command->rows[i];
        if (is_option(row) && row->letter == letter)
            return row;
        if (row->kind == OPTION_HINT && strchr(row->name, letter))
            hint = row->hint;
    }
    if (hint)
        fail(EXIT_USAGE, "there is no option -%c: %s", letter, hint);
    fail(EXIT_USAGE, "there is no option -%c; see `%s --help`", letter, program_name());
}

static bool take_word(const struct option_row *row, uint64_t *index, const char *value) {
    for (uint64_t i = 0; row->words[i]; i++)
        if (!strcmp(row->words[i], value)) {
            *index = i;
            return true;
        }
    return false;
}

/* Sets `expected` to the text for errors, whether or not the value is valid. */
static bool parse_number(const struct option_row *row, uint64_t *number, const char *value,
                         const char **expected) {
    uint16_t port = 0;
    bool is_valid;
    switch (row->kind) {
    case OPTION_SIZE:
        *expected = "a size as in 1000, 64k or 64KiB";
        return units_parse_whole(value, UNIT_SIZE, row->unit ? row->unit : "", number);
    case OPTION_COUNT:
        *expected = "a whole number as in 1000 or 64k";
        return units_parse_whole(value, UNIT_COUNT, "", number);
    case OPTION_PORT:
        *expected = "1 to 65535";
        is_valid = units_parse_port(value, &port);
        *number = port;
        return is_valid;
    default:
        *expected = "a time as in 10, 1.5s or 200ms";
        return units_parse_whole(value, UNIT_TIME, "", number);
    }
}

/* Stores the number if it is within the bounds of the row. */
static void take_number(const struct option_row *row, uint64_t *at, const char *value,
                        const char *option) {
    const char *expected;
    uint64_t number;
    char bound[48] = "";
    double unit = row->kind == OPTION_TIME ? 1e9 : 1;
    bool is_valid = parse_number(row, &number, value, &expected);
    uint64_t max = row->max ? row->max : INT64_MAX;
    if (is_valid && number >= row->min && number <= max) {
        *at = number;
        return;
    }
    if (is_valid && !number && row->kind == OPTION_TIME && row->min == 1)
        strcpy(bound, ", above 0");
    else if (is_valid && number < row->min)
        snprintf(bound, sizeof bound, ", at least %.12g", (double)row->min / unit);
    else if (is_valid)
        snprintf(bound, sizeof bound, ", at most %.12g", (double)max / unit);
    fail(EXIT_USAGE, "%s '%s': expected %s%s", option, value, expected, bound);
}

/* Stores the value; `option` is the option as it was given, for errors. */
static void take(const struct reader *reader, const struct option_row *row, const char *option,
                 const char *value) {
    void *at = (char *)reader->into + row->offset;
    const char *expected = row->argument;
    bool is_valid = true;
    switch (row->kind) {
    case OPTION_FLAG: *(bool *)at = true; break;
    case OPTION_SET: *(uint64_t *)at = row->max; break;
    case OPTION_TEXT: *(const char **)at = value; break;
    case OPTION_WORD: is_valid = take_word(row, at, value); break;
    case OPTION_CUSTOM: is_valid = row->take(at, value, &expected); break;
    case OPTION_HELP: print_help(reader->command->help);
    case OPTION_VERSION: print_version();
    default: take_number(row, at, value, option);
    }
    if (!is_valid)
        fail(EXIT_USAGE, "%s '%s': expected %s", option, value, expected);
}

/* `value` is the rest of the argument, or NULL if it ends with the option. */
static void take_option(struct reader *reader, const struct option_row *row, const char *option,
                        const char *value) {
    if (!takes_value(row)) {
        if (value)
            fail(EXIT_USAGE, "%s: expected no value", option);
        value = "";
    } else if (!value) {
        if (++reader->at >= reader->argc)
            fail(EXIT_USAGE, "%s: expected a value; see `%s --help`", option, program_name());
        value = reader->argv[reader->at];
    }
    take(reader, row, option, value);
}

static void take_name(struct reader *reader, const char *argument) {
    size_t length = strcspn(argument, "=");
    char option[NAME_MAX_LENGTH + 3];
    const struct option_row *row = find_name(reader, argument + 2, length - 2);
    snprintf(option, sizeof option, "%.*s", (int)length, argument);
    take_option(reader, row, option, argument[length] ? argument + length + 1 : NULL);
}

/* One or more letters: "-u", "-qz", "-s 64", "-s64". */
static void take_letters(struct reader *reader, const char *argument) {
    for (const char *letter = argument + 1; *letter; letter++) {
        const struct option_row *row = find_letter(reader, *letter);
        const char option[] = {'-', *letter, '\0'};
        bool is_last = takes_value(row);
        take_option(reader, row, option, is_last && letter[1] ? letter + 1 : NULL);
        if (is_last)
            break;
    }
}

size_t options_read(const struct command_line *command, void *into, int argc, char **argv,
                    const char **operands, size_t max_operands) {
    struct reader reader = {.command = command, .into = into, .argc = argc, .argv = argv};
    size_t count = 0;
    bool is_after_dashes = false;
    for (; reader.at < argc; reader.at++) {
        const char *argument = argv[reader.at];
        if (is_after_dashes || argument[0] != '-' || !argument[1]) {
            if (count == max_operands)
                fail(EXIT_USAGE, "%s: expected no further argument; see `%s --help`", argument,
                     program_name());
            operands[count++] = argument;
        } else if (argument[1] != '-') {
            take_letters(&reader, argument);
        } else if (argument[2]) {
            take_name(&reader, argument);
        } else {
            is_after_dashes = true;
        }
    }
    return count;
}
