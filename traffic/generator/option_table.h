/* SPDX-License-Identifier: Apache-2.0 */
/* Made by .ci/option_tables.py from src/wiretale/cli/programs/traffic.py. */
/* clang-format off */
static const struct option_row rows[] = {
    {.kind = OPTION_HELP, .name = "help", .letter = 'h'},
    {.kind = OPTION_VERSION, .name = "version", .letter = 'V'},
};

static const struct command_line command = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .help =
        "Send numbered blocks of traffic, and report which of them arrived.\n"
        "\n"
        "usage: @ COMMAND [options]\n"
        "\n"
        "arguments:\n"
        "  send                  send blocks to a receiver and report both ends\n"
        "  receive               receive blocks; count lost, late and corrupt ones\n"
        "  ttcp                  test with a classic ttcp or PCATTCP\n"
        "  path                  list the routers on the way to a host\n"
        "\n"
        "options:\n"
        "  -h, --help            print this help\n"
        "  -V, --version         print the version\n"
        "\n"
        "Each command has its own --help.\n"
        "\n"
        "examples:\n"
        "  # on one host\n"
        "  @ receive\n"
        "  # on another\n"
        "  @ send HOST --udp --count 10000 --rate 10M\n"
        "\n"
        "exit codes:\n"
        "  0    done\n"
        "  2    wrong usage\n"
        "  3    a test was cut short\n"
        "  4    no connection, or a file or the output failed\n"
        "  5    a permission or resource is missing\n"
        "  130  interrupted (143 by SIGTERM)\n",
};
