/* SPDX-License-Identifier: Apache-2.0 */
#include "receive_options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "exit_codes.h"
#include "option_table.h"
#include "port_range.h"
#include "units.h"

#define LONG   (1000000 * NS_PER_S)
#define STRUCT struct receive_options

static bool take_format(void *into, const char *value, const char **wanted) {
    *wanted = UNITS_RATE_LETTERS;
    ((struct receive_options *)into)->format = value[0];
    return units_rate_letter(value);
}

static bool take_ports(void *into, const char *value, const char **wanted) {
    return take_port_range(&((struct receive_options *)into)->local, value, wanted);
}

static const struct option_row rows[] = {
    HEADING("Where"),
    NUMBER_OF("port", 'p', port, "PORT", 1, 65535, "TCP port of control and data [5010]"),
    SET("ipv4", '4', family, AF_INET, "only IPv4"),
    SET("ipv6", '6', family, AF_INET6, "only IPv6"),
    TEXT_OF("bind", 'B', local.bind, "ADDRESS", "only at this address"),
    TEXT_OF("device", 0, local.device, "IF", "only through this interface (SO_BINDTODEVICE)"),
    TAKEN("data-ports", 0, "A-B", take_ports, "UDP ports of data [the system's choice]"),
    HEADING("Which tests"),
    SET("once", '1', tests, 1, "one test, then end"),
    NUMBER_OF("tests", 0, tests, "N", 1, INT64_MAX, "N tests, then end"),
    NUMBER_OF("parallel", 0, parallel, "N", 1, 1024,
              "so many at the same time [1]; others are refused"),
    NUMBER_OF("max-bytes", 0, max_bytes, "BYTES", 1, INT64_MAX, "most that a test may move [1T]"),
    TIME_OF("max-time", 0, max_ns, "TIME", NS_PER_MS, LONG, "longest that a test may take [1h]"),
    NUMBER_OF("max-streams", 0, streams_most, "N", 1, STREAMS_MOST, "most streams of a test [128]"),
    TIME_OF("idle", 0, idle_ns, "TIME", NS_PER_MS, LONG,
            "silence that ends a test [what the sender asks, 1 s]"),
    TEXT_OF("key", 0, key, "FILE", "only senders that have it, too"),
    HEADING("What comes"),
    NUMBER_OF("buffer", 'w', buffer, "BYTES", 1, 1 << 30,
              "of the data sockets, when the sender asks for none"),
    TEXT_OF("output-dir", 'o', output_dir, "DIR", "files are written here; else only compared"),
    FLAG("overwrite", 0, overwrite, "replace files that exist in DIR; else they are refused"),
    FLAG("stdout", 0, to_stdout, "bytes of files go to standard output, reports to standard error"),
    HEADING("What is shown"),
    FLAG("json", 'J', json, "one JSON object a test, on one line"),
    TIME_OF("interval", 'i', interval_ns, "TIME", 10 * NS_PER_MS, LONG,
            "a line so often while a test runs"),
    TAKEN("format", 'f', "k|K|m|M|g|G", take_format,
          "unit of rates as in ttcp: lower case bits, upper case bytes"),
    FLAG("quiet", 'q', quiet, "no tables"),
};
#define ROWS (sizeof rows / sizeof *rows)

static void show_help(void) {
    puts("examples:\n"
         "  wiretale-traffic receive\n"
         "      tests of anybody, until stopped\n"
         "  wiretale-traffic receive --once --json > test.json\n"
         "  wiretale-traffic receive --key ~/wiretale.key --output-dir incoming \\\n"
         "      --max-bytes 10G\n"
         "\n"
         "usage: wiretale-traffic receive [OPTION …]\n"
         "Takes tests of `wiretale-traffic send`, counts what arrives, and reports it to\n"
         "both ends.");
    option_table_help(rows, ROWS);
    puts("\n"
         "Exit codes: 0 done; 2 usage; 3 a test was cut short (--once, --tests); 4 a file\n"
         "or the output is missing;\n"
         "5 a permission or the port is missing; 130 interrupted.");
}

static bool is_folder(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool writable = fd >= 0 && !faccessat(fd, ".", W_OK | X_OK, AT_EACCESS);
    if (!writable)
        fprintf(stderr, "wiretale-traffic: --output-dir %s: %s\n", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return writable;
}

int receive_options_read(struct receive_options *options, int argc, char **argv) {
    bool help = false;
    *options = (struct receive_options){.port = DEFAULT_PORT,
                                        .family = AF_UNSPEC,
                                        .parallel = 1,
                                        .streams_most = 128,
                                        .max_bytes = UINT64_C(1000000000000),
                                        .max_ns = 3600 * NS_PER_S};
    if (!option_table_read(rows, ROWS, options, argc, argv, NULL, 0, &help))
        return EXIT_CODE_USAGE + 1;
    if (help)
        show_help();
    if (!help && options->output_dir && !is_folder(options->output_dir))
        return EXIT_CODE_INPUT + 1;
    if (options->to_stdout && options->parallel > 1) {
        fprintf(stderr, "wiretale-traffic: --stdout has no --parallel: bytes would mix\n");
        return EXIT_CODE_USAGE + 1;
    }
    return help ? 1 : 0;
}
