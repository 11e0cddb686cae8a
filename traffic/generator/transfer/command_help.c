/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer/command_help.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exit_codes.h"
#include "transfer/option_table.h"
#include "transfer/program_name.h"

static void put_named(const char *text) {
    for (; *text; text++)
        if (*text == '@')
            fputs(program_base(), stdout);
        else
            putchar(*text);
}

static void put_part(const char *heading, const char *text) {
    if (!text)
        return;
    printf("\n%s:\n", heading);
    put_named(text);
}

int command_help_print(const struct command_help *help, const struct option_row *rows,
                       size_t count) {
    put_named(help->description);
    fputs("\nusage: ", stdout);
    put_named(help->usage);
    put_part("arguments", help->arguments);
    if (rows)
        option_table_help(rows, count);
    put_part("examples", help->examples);
    put_part("exit codes", help->exit_codes);
    return finish_output();
}

int version_print(void) {
    puts("wiretale-traffic " WIRETALE_VERSION);
    return finish_output();
}

int finish_output(void) {
    errno = 0;
    if ((!fflush(stdout) && !ferror(stdout)) || errno == EPIPE)
        return 0;
    program_say("cannot write to standard output: %s", strerror(errno ? errno : EIO));
    return EXIT_CODE_INPUT;
}
