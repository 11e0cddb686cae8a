/* SPDX-License-Identifier: Apache-2.0 */
/* The first word chooses a command, whose own options follow it. A word that begins with '-' must
 * be an option of the program itself. A wrong or missing word ends with EXIT_USAGE. */
#include <string.h>

#include "commands.h"
#include "common/log.h"
#include "common/options.h"
#include "option_table.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"send", send_main},
    {"receive", receive_main},
    {"ttcp", ttcp_main},
    {"path", path_main},
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
