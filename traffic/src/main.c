/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exit_codes.h"
#include "receive.h"
#include "send.h"
#include "ttcp.h"

struct command {
    const char *name, *what;
    int (*run)(int argc, char **argv);
};

#pragma weak ttcp_main /* of a build without it */

static const struct command commands[] = {
    {"send", "sends blocks to a receiver and reports what both ends saw", send_main},
    {"receive", "waits for tests, until stopped", receive_main},
    {"ttcp", "talks to a classic ttcp or PCATTCP", ttcp_main},
};

static void show_help(void) {
    puts("examples:\n"
         "  wiretale-traffic receive                                     on one host\n"
         "  wiretale-traffic send HOST --udp --count 10000 --rate 10M    on another\n"
         "\n"
         "usage: wiretale-traffic COMMAND … (each has --help)\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].run)
            printf("  %-9s %s\n", commands[i].name, commands[i].what);
    puts("\n  --version");
}

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
    if (!strcmp(word, "--version")) {
        puts("wiretale-traffic " WIRETALE_VERSION);
        return 0;
    }
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
        show_help();
        return 0;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].run && !strcmp(word, commands[i].name))
            return commands[i].run(argc - 2, argv + 2);
    fprintf(stderr, "wiretale-traffic: wanted send, receive or ttcp; see --help\n");
    return EXIT_CODE_USAGE;
}
