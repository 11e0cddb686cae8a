/* SPDX-License-Identifier: Apache-2.0 */
/* The help of a command, in the one layout of all programs. */
#ifndef WIRETALE_COMMAND_HELP_H
#define WIRETALE_COMMAND_HELP_H

#include <stddef.h>

struct option_row;

/* Each text is lines of at most 80 columns; "@" stands for the program's name without its command.
 * NULL: there is no such part. */
struct command_help {
    const char *description;
    const char *usage; /* behind "usage: " */
    const char *arguments;
    const char *examples;
    const char *exit_codes;
};

/* Writes it to standard output, with the options between arguments and examples. Returns the exit
 * code: that it could be written, or not. */
int command_help_print(const struct command_help *help, const struct option_row *rows,
                       size_t count);

/* Prints the version, and returns the exit code likewise. */
int version_print(void);

/* The exit code after what standard output was given. */
int finish_output(void);

#endif
