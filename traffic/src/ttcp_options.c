/* SPDX-License-Identifier: Apache-2.0 */
/* The option letters of ttcp. Each is a row of a table: a switch, or a number with its bounds. */
#include "ttcp_transfer.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_MOST   (UINT64_C(1) << 30)
#define DATAGRAM_MOST 65507u /* of IPv4 (RFC 768, RFC 791) */
#define INPUT_LEAST   9u /* what is longer by 1 can be sent as two datagrams that are no marks */
#define SECONDS_MOST  86400.0
#define IDLE_SECONDS  5
#define PAUSE_SECONDS 0.25

enum { OPTION_IDLE = 256, OPTION_PAUSE, OPTION_JSON, OPTION_HELP };

static const struct option long_options[] = {
    {"idle", required_argument, NULL, OPTION_IDLE},
    {"pause", required_argument, NULL, OPTION_PAUSE},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

struct ttcp_switch {
    int letter;
    size_t place;
};

#define SWITCH(letter, member)                                                                     \
    { letter, offsetof(struct ttcp_options, member) }
static const struct ttcp_switch switches[] = {
    SWITCH('t', transmit),    SWITCH('r', receive),      SWITCH('u', udp),
    SWITCH('s', pattern),     SWITCH('D', no_delay),     SWITCH('d', debug),
    SWITCH('B', full_blocks), SWITCH('T', touch),        SWITCH('R', concurrent),
    SWITCH('c', continuous),  SWITCH('v', verbose),      SWITCH(OPTION_JSON, json),
    SWITCH('h', help),        SWITCH(OPTION_HELP, help),
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

void ttcp_print_help(void) {
    fputs("examples:\n"
          "  wiretale-traffic ttcp -r -s\n"
          "      receive 1 transfer over TCP at port 5001\n"
          "  wiretale-traffic ttcp -t -s -n 4096 host\n"
          "      send it 4096 buffers of 8192 bytes\n"
          "  wiretale-traffic ttcp -r -s -u -c --json\n"
          "      receive over UDP until stopped\n"
          "  tar c . | wiretale-traffic ttcp -t host           a pipe over the network\n"
          "\n"
          "The other end may be ttcp, PCATTCP or wiretale; over TCP any program.\n"
          "\n"
          "  -t, -r     transmit, receive\n"
          "  -s         send a pattern, drop what comes; else stdin and stdout\n"
          "  -u         UDP instead of TCP\n"
          "  -l BYTES   of each buffer, and datagram (8192)\n"
          "  -n COUNT   buffers sent with -s (2048)\n"
          "  -p PORT    (5001)\n"
          "  -b BYTES   socket buffer\n"
          "  -D         TCP_NODELAY: no waiting for more to send\n"
          "  -A BYTES   buffers begin at a multiple of it (16384); -O BYTES: and so far\n"
          "             beyond (0)\n"
          "  -c         transmit until stopped; receive one transfer after the other\n"
          "  -R         receive from several at the same time, until stopped; with -s\n"
          "  -B         write blocks of -l bytes to stdout\n"
          "  -T         read every byte that comes\n"
          "  -f UNIT    of rates: k m g bits, K M G bytes, with 1 K = 1024 as in ttcp (K)\n"
          "  -v         more figures;  -d  SO_DEBUG;  -4, -6  IPv4, IPv6 alone\n"
          "  --idle SECONDS   silence that ends receiving (UDP 5, TCP never)\n"
          "  --pause SECONDS  before the marks that end a transfer over UDP (0.25)\n"
          "  --json     one object for each transfer\n"
          "\n"
          "exit codes: 0 done, 2 wrong usage, 3 cut short, 4 no connection, 5 not\n"
          "permitted, 130 interrupted\n",
          stdout);
}

static bool wrong(const char *what, const char *given, const char *expected) {
    fprintf(stderr, "wiretale-traffic ttcp: %s %s: %s expected\n", what, given, expected);
    return false;
}

/* `8192`, or with K, M or G for powers of 1024. */
static bool read_number(const char *text, uint64_t *value) {
    static const char prefixes[] = "KMG";
    char *end;
    errno = 0;
    unsigned long long found = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || errno)
        return false;
    const char *prefix = *end ? strchr(prefixes, *end == 'k' ? 'K' : *end) : NULL;
    unsigned shift = prefix ? 10 * (unsigned)(prefix - prefixes + 1) : 0;
    if (end[prefix ? 1 : 0] || found > UINT64_MAX >> shift)
        return false;
    *value = (uint64_t)found << shift;
    return true;
}

static bool take_number(struct ttcp_options *options, const struct ttcp_number *number,
                        const char *text) {
    uint64_t *value = (uint64_t *)((char *)options + number->place);
    if (read_number(text, value) && *value >= number->least && *value <= number->most)
        return true;
    char name[] = {'-', (char)number->letter, '\0'}, bounds[80];
    snprintf(bounds, sizeof bounds, "a whole number from %llu to %llu was",
             (unsigned long long)number->least, (unsigned long long)number->most);
    return wrong(name, text, bounds);
}

static bool take_seconds(const char *name, const char *text, uint64_t *ns) {
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end || !(seconds >= 0 && seconds <= SECONDS_MOST))
        return wrong(name, text, "seconds from 0 to 86400 were");
    *ns = (uint64_t)(seconds * 1e9);
    return true;
}

static bool take_port(struct ttcp_options *options, const char *text) {
    uint64_t port;
    if (!read_number(text, &port) || port < 1 || port > 65535)
        return wrong("-p", text, "a port from 1 to 65535 was");
    snprintf(options->port, sizeof options->port, "%u", (unsigned)port);
    return true;
}

static bool take_unit(struct ttcp_options *options, const char *text) {
    if (strlen(text) != 1 || !strchr("kKmMgG", *text))
        return wrong("-f", text, "one of k, K, m, M, g, G was");
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
    case OPTION_IDLE: return take_seconds("--idle", text, &options->idle_ns);
    case OPTION_PAUSE: return take_seconds("--pause", text, &options->pause_ns);
    default:
        fprintf(stderr,
                "wiretale-traffic ttcp: %s: no such option, or its value is missing; see --help\n",
                given);
        return false;
    }
}

/* Sizes that cannot be told from marks, or sent at all. */
static const char *wrong_size(const struct ttcp_options *options) {
    if (options->length <= TTCP_MARK_BYTES)
        return "-u -l: more than 4 bytes were expected, since shorter datagrams mark start and end";
    if (options->receive)
        return NULL;
    if (!options->pattern && options->length < INPUT_LEAST)
        return "-u -l: at least 9 bytes were expected, lest the end of stdin be taken for a mark";
    if (options->length > DATAGRAM_MOST)
        return "-u -l: at most 65507 bytes were expected, the largest datagram";
    return NULL;
}

static const char *contradiction(const struct ttcp_options *options) {
    if (options->transmit == options->receive)
        return "either -t or -r was expected";
    if (options->transmit && !options->host)
        return "-t: the host to send to was expected";
    if (options->receive && options->host)
        return "-r: no host was expected";
    if (options->concurrent && !(options->receive && options->pattern))
        return "-R receives from several at once and has no stdout for them: -r -s was expected "
               "with it";
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
    opterr = 0; /* one line says it, ours */
    optind = 0; /* the caller may have used it: start anew (getopt(3), glibc) */
    while ((letter = getopt_long(argc, argv, "trusDdBTRcvh46l:n:p:b:A:O:f:", long_options, NULL)) !=
           -1)
        if (!take_option(options, letter, optarg, argv[optind > 1 ? optind - 1 : 1]))
            return false;
    if (options->help)
        return true;
    if (optind < argc)
        options->host = argv[optind++];
    if (optind < argc)
        return wrong("argument", argv[optind], "nothing more was");
    if (options->idle_ns == UINT64_MAX)
        options->idle_ns = options->udp ? IDLE_SECONDS * TTCP_NS : 0;
    const char *why = contradiction(options);
    if (why)
        fprintf(stderr, "wiretale-traffic ttcp: %s\n", why);
    return !why;
}
