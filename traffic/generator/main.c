/* SPDX-License-Identifier: Apache-2.0 */
/* The first word chooses a command, whose own options follow it. A word that begins with '-' must
 * be an option of the program itself. A wrong or missing word ends with EXIT_USAGE. */
#include <string.h>

#include "commands.h"
#include "common/log.h"
#include "common/options.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"send", send_main},
    {"receive", receive_main},
    {"ttcp", ttcp_main},
    {"path", path_main},
};

static const struct option_row rows[] = {
    HEADING("options"),
    HELP_AND_VERSION,
};

static const struct command_line command = {
    .description = "Send numbered blocks of traffic, and report which of them arrived.\n",
    .usage = "@ COMMAND [options]\n",
    .arguments = "  send                  send blocks to a receiver and report both ends\n"
                 "  receive               receive blocks; count lost, late and corrupt ones\n"
                 "  ttcp                  test with a classic ttcp or PCATTCP\n"
                 "  path                  list the routers on the way to a host\n"
                 "\n"
                 "Each command has its own --help.\n",
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .examples = "  # on one host\n"
                "  @ receive\n"
                "  # on another\n"
                "  @ send HOST --udp --count 10000 --rate 10M\n",
    .exit_codes = "  0    done\n"
                  "  2    wrong usage\n"
                  "  3    a test was cut short\n"
                  "  4    no connection, or a file or the output failed\n"
                  "  5    a permission or resource is missing\n"
                  "  130  interrupted (143 by SIGTERM)\n",
};

int main(int argc, char **argv) {
    prepare_stdio();
    const char *word = argc > 1 ? argv[1] : "";
    log_set_program(argv[0], "");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(word, commands[i].name)) {
            log_set_program(argv[0], word);
            return commands[i].run(argc - 2, argv + 2);
        }
    if (word[0] == '-')
        options_read(&command, NULL, argc - 1, argv + 1, NULL, 0);
    fail(EXIT_USAGE, "expected send, receive, ttcp or path; see `%s --help`", program_name());
}
