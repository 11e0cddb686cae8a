/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines as tables: each row is one option with its type, bounds, destination and help.
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
    OPTION_HEADING, /* only in the help: begins a section */
    OPTION_NOTE,    /* only in the help: `argument` stands in the place of names */
    OPTION_HINT,    /* letters in `name` that other programs have: refused with `help` */
};

struct option_row {
    const char *name; /* without "--"; aliases follow after "|"; NULL: a letter only */
    char letter;      /* 0: none */
    enum option_kind kind;
    size_t offset;            /* of the destination in the struct */
    const char *argument;     /* placeholder in the help */
    const char *help;         /* NULL: not in the help */
    uint64_t min, max;        /* of SIZE, COUNT, TIME; a `max` of 0 is no bound */
    const char *unit;         /* of a SIZE without a unit; NULL: bytes */
    const char *const *words; /* ends with NULL */
    /* Stores the value at the destination. Returns false, with the text that was expected, if the
     * value is wrong. */
    bool (*take)(void *into, const char *value, const char **expected);
};

/* Rows of a table whose destination is STRUCT, which the user defines. */
#define OPTION_AT(member) .offset = offsetof(STRUCT, member)
#define OPTION_ROW(kind_of, long_name, short_name, text, ...)                                      \
    { .kind = kind_of, .name = long_name, .letter = short_name, .help = text, __VA_ARGS__ }
#define HEADING(text)       OPTION_ROW(OPTION_HEADING, NULL, 0, text)
#define NOTE(left, text)    OPTION_ROW(OPTION_NOTE, NULL, 0, text, .argument = left)
#define HINT(letters, text) OPTION_ROW(OPTION_HINT, letters, 0, text)
#define FLAG(long_name, short_name, member, text)                                                  \
    OPTION_ROW(OPTION_FLAG, long_name, short_name, text, OPTION_AT(member))
#define SET(long_name, short_name, member, value, text)                                            \
    OPTION_ROW(OPTION_SET, long_name, short_name, text, OPTION_AT(member), .max = value)
#define BOUNDED(kind_of, long_name, short_name, member, value, low, high, text)                    \
    OPTION_ROW(kind_of, long_name, short_name, text, OPTION_AT(member), .argument = value,         \
               .min = low, .max = high)
#define SIZE_OF(...) BOUNDED(OPTION_SIZE, __VA_ARGS__)
#define SIZE_IN(long_name, short_name, member, value, default_unit, low, high, text)               \
    OPTION_ROW(OPTION_SIZE, long_name, short_name, text, OPTION_AT(member), .argument = value,     \
               .unit = default_unit, .min = low, .max = high)
#define COUNT_OF(...) BOUNDED(OPTION_COUNT, __VA_ARGS__)
#define TIME_OF(...)  BOUNDED(OPTION_TIME, __VA_ARGS__)
#define PORT_OF(long_name, short_name, member, text)                                               \
    BOUNDED(OPTION_PORT, long_name, short_name, member, "PORT", 1, 65535, text)
#define TEXT_OF(long_name, short_name, member, value, text)                                        \
    OPTION_ROW(OPTION_TEXT, long_name, short_name, text, OPTION_AT(member), .argument = value)
#define WORD_OF(long_name, short_name, member, value, list, text)                                  \
    OPTION_ROW(OPTION_WORD, long_name, short_name, text, OPTION_AT(member), .argument = value,     \
               .words = list)
/* `function` gets the whole struct, or with TAKEN_AT the member. */
#define TAKEN(long_name, short_name, value, function, text)                                        \
    OPTION_ROW(OPTION_CUSTOM, long_name, short_name, text, .argument = value, .take = function)
#define TAKEN_AT(long_name, short_name, member, value, function, text)                             \
    OPTION_ROW(OPTION_CUSTOM, long_name, short_name, text, OPTION_AT(member), .argument = value,   \
               .take = function)
#define HELP_AND_VERSION                                                                           \
    OPTION_ROW(OPTION_HELP, "help", 'h', "show this help"),                                        \
        OPTION_ROW(OPTION_VERSION, "version", 'V', "print the version")

/* A command with its help. Texts are lines of at most 80 columns; "@" stands for the program's name
 * without its command. A part that is NULL is left out. */
struct command_line {
    const char *description;
    const char *usage;     /* after "usage: " */
    const char *arguments; /* lines under "arguments:" */
    const struct option_row *rows;
    size_t count;         /* of rows */
    const char *sections; /* further sections with their headings */
    const char *examples;
    const char *exit_codes;
};

/* Reads options into `into` and returns the number of operands, which may stand between options and
 * are stored in `operands`. `argv` begins after the program's name. If an option or a value is
 * wrong, or if there are more than `max_operands`, it exits with EXIT_USAGE and one line. */
size_t options_read(const struct command_line *command, void *into, int argc, char **argv,
                    const char **operands, size_t max_operands);

#endif
