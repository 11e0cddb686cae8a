/* SPDX-License-Identifier: Apache-2.0 */
/* Command-line options as tables: what is read, where to, within which bounds, and the help. */
#ifndef WIRETALE_OPTION_TABLE_H
#define WIRETALE_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_FLAG,     /* bool */
    OPTION_SET,      /* uint64_t becomes `most` */
    OPTION_SIZE,     /* uint64_t bytes: 1000, 64k, 64KiB */
    OPTION_COUNT,    /* uint64_t: 1000, 64k */
    OPTION_PORT,     /* uint64_t: 1 to 65535 */
    OPTION_DURATION, /* uint64_t ns: 10, 1.5s, 200ms */
    OPTION_TEXT,     /* const char * */
    OPTION_WORD,     /* uint64_t: its number in `words` */
    OPTION_CUSTOM,   /* read by `take` */
    OPTION_HEADING,  /* of the help */
};

struct option_row {
    const char *name; /* without "--" */
    char letter;      /* 0: none */
    enum option_kind kind;
    size_t offset;
    const char *argument; /* as the help shows it */
    const char *help;
    uint64_t min, max;
    const char *const *words; /* ends with NULL */
    bool (*take)(void *into, const char *value, const char **expected);
};

/* Rows of a table; STRUCT is what they are read into. */
#define OPTION_AT(member) .offset = offsetof(STRUCT, member)
#define HEADING(text)                                                                              \
    { .kind = OPTION_HEADING, .help = text }
#define FLAG(long_name, short_name, member, text)                                                  \
    {                                                                                              \
        .name = long_name, .letter = short_name, .kind = OPTION_FLAG, OPTION_AT(member),           \
        .help = text                                                                               \
    }
#define SET(long_name, short_name, member, value, text)                                            \
    {                                                                                              \
        .name = long_name, .letter = short_name, .kind = OPTION_SET, OPTION_AT(member),            \
        .max = value, .help = text                                                                 \
    }
#define BOUNDED(kind_of, long_name, short_name, member, value, low, high, text)                    \
    {                                                                                              \
        .name = long_name, .letter = short_name, .kind = kind_of, OPTION_AT(member),               \
        .argument = value, .min = low, .max = high, .help = text                                   \
    }
#define SIZE_OF(...)  BOUNDED(OPTION_SIZE, __VA_ARGS__)
#define COUNT_OF(...) BOUNDED(OPTION_COUNT, __VA_ARGS__)
#define TIME_OF(...)  BOUNDED(OPTION_DURATION, __VA_ARGS__)
#define PORT_OF(long_name, short_name, member, text)                                               \
    BOUNDED(OPTION_PORT, long_name, short_name, member, "PORT", 1, 65535, text)
#define TEXT_OF(long_name, short_name, member, value, text)                                        \
    {                                                                                              \
        .name = long_name, .letter = short_name, .kind = OPTION_TEXT, OPTION_AT(member),           \
        .argument = value, .help = text                                                            \
    }
#define WORD_OF(long_name, short_name, member, value, list, text)                                  \
    {                                                                                              \
        .name = long_name, .letter = short_name, .kind = OPTION_WORD, OPTION_AT(member),           \
        .argument = value, .words = list, .help = text                                             \
    }
#define TAKEN(long_name, short_name, value, function, text)                                        \
    {                                                                                              \
        .name = long_name, .letter = short_name, .kind = OPTION_CUSTOM, .argument = value,         \
        .take = function, .help = text                                                             \
    }

/* Reads all arguments. Those that are no options go to `operands`, of which there may be
 * `operands_most`. False: said on stderr. */
bool option_table_read(const struct option_row *rows, size_t count, void *into, int argc,
                       char **argv, const char **operands, size_t operands_most);

void option_table_help(const struct option_row *rows, size_t count);

#endif
