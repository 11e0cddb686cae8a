/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exit_codes.h"
#include "receive/receive.h"
#include "send/send.h"
#include "transfer/command_help.h"
#include "transfer/option_table.h"
#include "transfer/program_name.h"
#include "ttcp/ttcp.h"

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
};

#pragma weak ttcp_main /* of a build without it */

static const struct command commands[] = {
    {"send", send_main},
    {"receive", receive_main},
    {"ttcp", ttcp_main},
};

static const struct command_help help = {
    .description = "Generates numbered blocks of traffic and reports what became of each.\n",
    .usage = "@ COMMAND [options]\n",
    .arguments = "  send                  send blocks to a receiver and report both ends\n"
                 "  receive               receive blocks; count lost, late and corrupt ones\n"
                 "  ttcp                  test with a classic ttcp or PCATTCP\n"
                 "\n"
                 "Each command has its own --help.\n",
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

static const struct option_row rows[] = {
    HEADING("options"),
    {.name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "show this help"},
    {.name = "version", .letter = 'V', .kind = OPTION_FLAG, .help = "print the version"},
};

/* Closed ones would become sockets, into which reports would be written. */
static void hold_standard_streams(void) {
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

int main(int argc, char **argv) {
    hold_standard_streams();
    const char *word = argc > 1 ? argv[1] : "";
    program_name_set(argv[0], "");
    if (!strcmp(word, "--version") || !strcmp(word, "-V"))
        return version_print();
    if (!strcmp(word, "--help") || !strcmp(word, "-h"))
        return command_help_print(&help, rows, sizeof rows / sizeof *rows);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].run && !strcmp(word, commands[i].name)) {
            program_name_set(argv[0], word);
            return commands[i].run(argc - 2, argv + 2);
        }
    program_say("expected send, receive or ttcp; see --help");
    return EXIT_CODE_USAGE;
}
