/* SPDX-License-Identifier: Apache-2.0 */
/* Made by .ci/option_tables.py from src/wiretale/cli/programs/status.py. */
/* clang-format off */
static const struct option_row rows[] = {
    {.kind = OPTION_FLAG, .name = "json", .offset = offsetof(struct request, json)},
    {.kind = OPTION_FLAG, .name = "prometheus", .offset = offsetof(struct request, prometheus)},
    {.kind = OPTION_TEXT, .name = "textfile", .offset = offsetof(struct request, textfile)},
    {.kind = OPTION_FLAG, .name = "check", .offset = offsetof(struct request, check)},
    {.kind = OPTION_TIME, .name = "loss-window", .offset = offsetof(struct request, limits.loss_ns), .min = 1, .max = INT64_MAX},
    {.kind = OPTION_TIME, .name = "max-lag", .offset = offsetof(struct request, limits.lag_ns), .min = 1, .max = INT64_MAX},
    {.kind = OPTION_TIME, .name = "min-disk", .offset = offsetof(struct request, limits.disk_ns), .min = 1, .max = INT64_MAX},
    {.kind = OPTION_TIME, .name = "max-silence", .offset = offsetof(struct request, limits.silence_ns), .min = 1, .max = INT64_MAX},
    {.kind = OPTION_TEXT, .name = "keep", .offset = offsetof(struct request, keep)},
    {.kind = OPTION_HELP, .name = "help", .letter = 'h'},
    {.kind = OPTION_VERSION, .name = "version", .letter = 'V'},
};

static const struct command_line command = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .help =
        "Ask a running capture for its counts, metrics for Prometheus, or a health check;\n"
        "or tell it to keep a span of time.\n"
        "\n"
        "usage: @ status [SOCKET] [options]\n"
        "\n"
        "arguments:\n"
        "  SOCKET                --status of the capture (default:\n"
        "                        /run/wiretale-capture/status)\n"
        "\n"
        "output:\n"
        "  --json                the counts as one JSON object\n"
        "  --prometheus          metrics as text for Prometheus\n"
        "  --textfile FILE.prom  write the metrics to FILE.prom, for the textfile\n"
        "                        collector of node_exporter\n"
        "  --check               one line and an exit code, as a plugin of Nagios or\n"
        "                        Icinga\n"
        "\n"
        "limits of --check:\n"
        "  --loss-window TIME    critical if packets were lost in the last TIME (default:\n"
        "                        5min)\n"
        "  --max-lag TIME        warning if packets wait longer than TIME to be written\n"
        "                        (default: 5s)\n"
        "  --min-disk TIME       warning if the disk will be full within TIME, critical\n"
        "                        within a tenth of it (default: 24h)\n"
        "  --max-silence TIME    critical if an interface has had no packet for TIME\n"
        "\n"
        "commands:\n"
        "  --keep REASON         keep a span, as SIGUSR2 does; REASON, of letters a to z,\n"
        "                        becomes part of its name\n"
        "  -h, --help            print this help\n"
        "  -V, --version         print the version\n"
        "\n"
        "examples:\n"
        "  # is it healthy?\n"
        "  @ status --check --max-silence 1min\n"
        "  # metrics for node_exporter\n"
        "  @ status \\\n"
        "      --textfile /var/lib/prometheus/node-exporter/wiretale.prom\n"
        "  # an intrusion detection system saw something\n"
        "  @ status --keep intrusion\n"
        "\n"
        "exit codes:\n"
        "  0  done; with --check: healthy\n"
        "  1  with --check, a warning: packets wait, the disk fills up, an on-close\n"
        "     command fails, or an interface or its carrier is missing\n"
        "  2  wrong usage; with --check, critical: packets were lost, or nobody captures\n"
        "  3  with --check, unknown: wrong usage, or no permission\n"
        "  4  the capture does not answer, or the output cannot be written\n"
        "  5  no permission, or the capture cannot keep a span\n",
};
