/* SPDX-License-Identifier: Apache-2.0 */
/* The option letters of ttcp. Each is a row of a table: a switch, or a number with its bounds. */
#include "ttcp/ttcp_transfer.h"

#include "traffic/option_names.h"
#include "traffic/quantity.h"
#include "transfer/command_help.h"
#include "transfer/option_table.h"
#include "transfer/program_name.h"
#include "transfer/units.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_MOST   (UINT64_C(1) << 30)
#define DATAGRAM_MOST 65507u /* of IPv4 (RFC 768, RFC 791) */
#define INPUT_LEAST   9u /* what is longer by 1 can be sent as two datagrams that are no marks */
#define TIME_MOST     (UINT64_C(86400) * TTCP_NS)
#define IDLE_SECONDS  5
#define PAUSE_SECONDS 0.25

enum { OPTION_IDLE = 256, OPTION_PAUSE, OPTION_JSON, OPTION_HELP, OPTION_VERSION };

static const struct option long_options[] = {
    {"idle", required_argument, NULL, OPTION_IDLE},
    {"pause", required_argument, NULL, OPTION_PAUSE},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

struct ttcp_switch {
    int letter;
    size_t place;
};

#define SWITCH(letter, member)                                                                     \
    { letter, offsetof(struct ttcp_options, member) }
static const struct ttcp_switch switches[] = {
    SWITCH('t', transmit),    SWITCH('r', receive),
    SWITCH('u', udp),         SWITCH('s', pattern),
    SWITCH('D', no_delay),    SWITCH('d', debug),
    SWITCH('B', full_blocks), SWITCH('T', touch),
    SWITCH('R', concurrent),  SWITCH('c', continuous),
    SWITCH('v', verbose),     SWITCH(OPTION_JSON, json),
    SWITCH('h', help),        SWITCH(OPTION_HELP, help),
    SWITCH('V', version),     SWITCH(OPTION_VERSION, version),
};

struct ttcp_number {
    int letter;
    size_t place;
    uint64_t least, most;
};

#define NUMBER(letter, member, least, most)                                                        \
    { letter, offsetof(struct ttcp_options, member), least, most }
static const struct ttcp_number numbers[] = {
    NUMBER('l', length, 1, LENGTH_MOST), NUMBER('n', count, 1, INT64_MAX),
    NUMBER('A', align, 1, LENGTH_MOST),  NUMBER('O', offset, 0, LENGTH_MOST),
    NUMBER('b', buffer, 1, INT32_MAX),
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Rows of the help alone: getopt_long() reads the options. */
#define LETTER(short_name, value, text)                                                            \
    { .letter = short_name, .kind = OPTION_FLAG, .argument = value, .help = text }
#define LONG_NAME(long_name, value, text)                                                          \
    { .name = long_name, .kind = OPTION_FLAG, .argument = value, .help = text }

static const struct option_row rows[] = {
    HEADING("transfer"),
    LETTER('t', NULL, "transmit"),
    LETTER('r', NULL, "receive"),
    LETTER('u', NULL, "UDP instead of TCP"),
    LETTER('s', NULL, "send a pattern and drop what is received, instead of stdin and stdout"),
    LETTER('l', "BYTES",
           "length of each buffer and datagram: 1400, 8k; k is 1024 as in ttcp [8192]"),
    LETTER('n', "COUNT", "number of buffers to send with -s [2048]"),
    LETTER('c', NULL, "transmit until stopped; receive one transfer after the other"),
    LETTER('R', NULL, "receive from several senders at once until stopped; with -s"),
    HEADING("sockets and buffers"),
    LETTER('p', "PORT", "port [5001]"),
    LETTER('4', NULL, "IPv4 only"),
    LETTER('6', NULL, "IPv6 only"),
    LETTER('b', "BYTES", "size of the socket buffer"),
    LETTER('D', NULL, "TCP_NODELAY: do not wait for more data to send"),
    LETTER('d', NULL, "SO_DEBUG"),
    LETTER('A', "BYTES", "align buffers to a multiple of this [16384]"),
    LETTER('O', "BYTES", "start buffers this far behind the alignment [0]"),
    LETTER('B', NULL, "write blocks of -l bytes to stdout"),
    LETTER('T', NULL, "read every byte that is received"),
    LONG_NAME("idle", "TIME", "silence that ends receiving: 5, 1.5s, 200ms [UDP 5, TCP never]"),
    LONG_NAME("pause", "TIME", "wait before the marks that end a transfer over UDP [0.25]"),
    HEADING("output"),
    LETTER('f', "UNIT", "rates in k, m, g bits or K, M, G bytes, of 1024 as in ttcp [K]"),
    LETTER('v', NULL, "print more figures"),
    LONG_NAME("json", NULL, "print one JSON object per transfer"),
    {.name = "version", .letter = 'V', .kind = OPTION_FLAG, .help = "print the version"},
    {.name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "show this help"},
};

static const struct command_help help = {
    .description = "Transfers data to or from ttcp, PCATTCP or wiretale; over TCP, any program.\n",
    .usage = "@ ttcp -t [options] HOST\n       @ ttcp -r [options]\n",
    .arguments = "  HOST                  the host to transmit to\n",
    .examples = "  # receive 1 transfer over TCP at port 5001\n"
                "  @ ttcp -r -s\n"
                "  # send it 4096 buffers of 8192 bytes\n"
                "  @ ttcp -t -s -n 4096 host\n"
                "  # receive over UDP until stopped\n"
                "  @ ttcp -r -s -u -c --json\n"
                "  # a pipe over the network\n"
                "  tar c . | @ ttcp -t host\n",
    .exit_codes = "  0    done\n"
                  "  2    wrong usage\n"
                  "  3    cut short\n"
                  "  4    no connection, or the output failed\n"
                  "  5    not permitted\n"
                  "  130  interrupted (143 by SIGTERM)\n",
};

int ttcp_print_help(void) {
    return command_help_print(&help, rows, COUNT(rows));
}

static bool wrong(const char *what, const char *given, const char *expected) {
    program_say("%s %s: expected %s", what, given, expected);
    return false;
}

/* As everywhere, but k, M and G are powers of 1024, as in ttcp, with or without the i of Ki. */
static bool read_number(const char *text, bool is_size, uint64_t *value) {
    char binary[QUANTITY_TEXT_MOST + 2];
    size_t number = quantity_number_length(text), length = strlen(text);
    size_t prefix = number + strspn(text + number, " \t");
    bool is_prefix = text[prefix] && strchr("kKmMgGtT", text[prefix]);
    const char *rest = text + prefix + is_prefix;
    if (!number || length > QUANTITY_TEXT_MOST)
        return false;
    snprintf(binary, sizeof binary, "%.*s%s%s", (int)(rest - text), text,
             is_prefix && (*rest | 0x20) != 'i' ? "i" : "", rest);
    return is_size ? units_size(binary, value) : units_count(binary, value);
}

static bool take_number(struct ttcp_options *options, const struct ttcp_number *number,
                        const char *text) {
    uint64_t *value = (uint64_t *)((char *)options + number->place);
    if (read_number(text, number->letter != 'n', value) && *value >= number->least &&
        *value <= number->most)
        return true;
    char name[] = {'-', (char)number->letter, '\0'}, bounds[80];
    snprintf(bounds, sizeof bounds, "a whole number from %llu to %llu",
             (unsigned long long)number->least, (unsigned long long)number->most);
    return wrong(name, text, bounds);
}

static bool take_time(const char *name, const char *text, uint64_t *ns) {
    return (units_duration(text, ns) && *ns <= TIME_MOST) ||
           wrong(name, text, "a time as in 10, 1.5s or 200ms, at most 86400");
}

static bool take_port(struct ttcp_options *options, const char *text) {
    uint64_t port;
    if (!units_port(text, &port))
        return wrong("-p", text, "1 to 65535");
    snprintf(options->port, sizeof options->port, "%u", (unsigned)port);
    return true;
}

static bool take_unit(struct ttcp_options *options, const char *text) {
    if (strlen(text) != 1 || !strchr("kKmMgG", *text))
        return wrong("-f", text, "one of k, K, m, M, g, G");
    options->unit = *text;
    return true;
}

static bool take_option(struct ttcp_options *options, int letter, const char *text,
                        const char *given) {
    for (size_t i = 0; i < COUNT(switches); i++)
        if (switches[i].letter == letter) {
            *((char *)options + switches[i].place) = true;
            return true;
        }
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (numbers[i].letter == letter)
            return take_number(options, &numbers[i], text);
    switch (letter) {
    case '4': options->family = AF_INET; return true;
    case '6': options->family = AF_INET6; return true;
    case 'p': return take_port(options, text);
    case 'f': return take_unit(options, text);
    case OPTION_IDLE: return take_time("--idle", text, &options->idle_ns);
    case OPTION_PAUSE: return take_time("--pause", text, &options->pause_ns);
    default:
        program_say("%s: no such option, or its value is missing; see --help", given);
        return false;
    }
}

/* Sizes that cannot be told from marks, or sent at all. */
static const char *wrong_size(const struct ttcp_options *options) {
    if (options->length <= TTCP_MARK_BYTES)
        return "-u -l: expected more than 4 bytes, because shorter datagrams mark start and end";
    if (options->receive)
        return NULL;
    if (!options->pattern && options->length < INPUT_LEAST)
        return "-u -l: expected at least 9 bytes, because the end of stdin could be taken for a "
               "mark";
    if (options->length > DATAGRAM_MOST)
        return "-u -l: expected at most 65507 bytes, the largest datagram";
    return NULL;
}

static const char *contradiction(const struct ttcp_options *options) {
    if (options->transmit == options->receive)
        return "expected either -t or -r";
    if (options->transmit && !options->host)
        return "-t: expected the host to send to";
    if (options->receive && options->host)
        return "-r: expected no host";
    if (options->concurrent && !(options->receive && options->pattern))
        return "-R: expected -r -s as well, because several transfers cannot share stdout";
    return options->udp ? wrong_size(options) : NULL;
}

bool ttcp_read_options(struct ttcp_options *options, int argc, char **argv) {
    *options = (struct ttcp_options){
        .length = 8192,
        .count = 2048,
        .align = 16384,
        .unit = 'K',
        .port = "5001",
        .idle_ns = UINT64_MAX,
        .pause_ns = (uint64_t)(PAUSE_SECONDS * 1e9),
    };
    int letter;
    const char *near, *wrong_name = option_not_exact(argc, argv, long_options, &near);
    if (wrong_name) {
        if (near)
            program_say("%s: no such option: did you mean --%s?", wrong_name, near);
        else
            program_say("%s: no such option; see --help", wrong_name);
        return false;
    }
    opterr = 0; /* one line says it, ours */
    optind = 0; /* the caller may have used it: start anew (getopt(3), glibc) */
    while ((letter =
                getopt_long(argc, argv, "trusDdBTRcvhV46l:n:p:b:A:O:f:", long_options, NULL)) != -1)
        if (!take_option(options, letter, optarg, argv[optind > 1 ? optind - 1 : 1]))
            return false;
    if (options->help || options->version)
        return true;
    if (optind < argc)
        options->host = argv[optind++];
    if (optind < argc)
        return wrong("argument", argv[optind], "nothing more");
    if (options->idle_ns == UINT64_MAX)
        options->idle_ns = options->udp ? IDLE_SECONDS * TTCP_NS : 0;
    const char *why = contradiction(options);
    if (why)
        program_say("%s", why);
    return !why;
}
