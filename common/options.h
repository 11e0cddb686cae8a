/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines as tables: each row is one option with its type, bounds and destination. A table
 * and its help are made from a declaration in src/wiretale/cli/programs/ by .ci/option_tables.py.
 * Option names must be given in full, because a prefix that is unique today need not stay so. */
#ifndef WIRETALE_COMMON_OPTIONS_H
#define WIRETALE_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_FLAG,    /* stores true in a bool */
    OPTION_SET,     /* stores `max` in a uint64_t */
    OPTION_SIZE,    /* uint64_t, bytes */
    OPTION_COUNT,   /* uint64_t */
    OPTION_PORT,    /* uint64_t, 1 to 65535 */
    OPTION_TIME,    /* uint64_t, ns */
    OPTION_TEXT,    /* const char *: the argument itself */
    OPTION_WORD,    /* uint64_t: index into `words` */
    OPTION_CUSTOM,  /* parsed by `take` */
    OPTION_HELP,    /* prints the help and exits */
    OPTION_VERSION, /* prints the version and exits */
    OPTION_HINT,    /* letters in `name` that other programs have: refused with `hint` */
};

struct option_row {
    const char *name; /* without "--"; aliases follow after "|"; NULL: a letter only */
    char letter;      /* 0: none */
    enum option_kind kind;
    size_t offset;            /* of the destination in the struct */
    const char *argument;     /* what was expected, of WORD and CUSTOM */
    const char *hint;         /* of HINT */
    uint64_t min, max;        /* of SIZE, COUNT, TIME; a `max` of 0 is no bound */
    const char *unit;         /* of a SIZE without a unit; NULL: bytes */
    const char *const *words; /* ends with NULL */
    /* Stores the value at the destination. Returns false, with the text that was expected, if the
     * value is wrong. */
    bool (*take)(void *into, const char *value, const char **expected);
};

struct command_line {
    const struct option_row *rows;
    size_t count;     /* of rows */
    const char *help; /* "@" stands for the name of the program without its command */
};

/* Reads options into `into` and returns the number of operands, which may stand between options and
 * are stored in `operands`. `argv` begins after the program's name. If an option or a value is
 * wrong, or if there are more than `max_operands`, it exits with EXIT_USAGE and one line. */
size_t options_read(const struct command_line *command, void *into, int argc, char **argv,
                    const char **operands, size_t max_operands);

#endif
