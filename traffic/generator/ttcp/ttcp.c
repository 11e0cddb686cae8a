/* SPDX-License-Identifier: Apache-2.0 */
/* The command `ttcp`: options, and the buffer of the role that they choose. Option letters are
 * those of ttcp and PCATTCP, where k, M and G are powers of 1024.
 *
 * --idle, --pause and --json are additions. As in ttcp, a buffer starts -O bytes after a multiple
 * of -A, so that the cost of unaligned copies can be measured. Combinations that cannot work are
 * refused before a socket is opened. */
#include "ttcp/ttcp_transfer.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "commands.h"
#include "common/log.h"
#include "common/options.h"
#include "common/units.h"
#include "report/report.h"
#include "session/exchange.h"

#define MAX_DATAGRAM   65507u /* of IPv4 (RFC 768, RFC 791) */
#define MIN_INPUT      9u     /* one byte more can be sent as two datagrams that are not marks */
#define MAX_TIME       (UINT64_C(86400) * NS_PER_S)
#define UDP_IDLE_NS    (5 * NS_PER_S)
#define IDLE_NOT_GIVEN UINT64_MAX

/* Defines the parser of a number from `min` to `max`, with k of 1024. */
#define TAKE_BINARY(name, kind, min, max)                                                          \
    static bool take_##name(void *into, const char *value, const char **expected) {                \
        uint64_t *number = into;                                                                   \
        *expected = "a whole number from " #min " to " #max;                                       \
        return units_parse_whole(value, kind, "", number) && *number - min <= max - (uint64_t)min; \
    }
TAKE_BINARY(length, UNIT_BINARY_SIZE, 1, 1073741824)
TAKE_BINARY(offset, UNIT_BINARY_SIZE, 0, 1073741824)
TAKE_BINARY(buffer, UNIT_BINARY_SIZE, 1, 2147483647)
TAKE_BINARY(count, UNIT_BINARY_COUNT, 1, 9223372036854775807)

/* Its rows name the functions, words and members above. */
#include "ttcp/option_table.h"

/* Returns NULL, or the reason why datagrams of this size cannot be used. */
static const char *check_datagrams(const struct ttcp_options *options) {
    if (options->length <= MARK_BYTES)
        return "-u -l: expected more than 4 bytes, because shorter datagrams mark start and end";
    if (options->transmit && !options->pattern && options->length < MIN_INPUT)
        return "-u -l: expected at least 9 bytes, because the end of stdin could be taken for a "
               "mark";
    if (options->transmit && options->length > MAX_DATAGRAM)
        return "-u -l: expected at most 65507 bytes, the largest datagram";
    return NULL;
}

/* Returns NULL, or the reason why these options cannot be used together. */
static const char *find_contradiction(const struct ttcp_options *options) {
    if (options->transmit == options->receive)
        return "expected either -t or -r";
    if (options->transmit && !options->host)
        return "-t: expected the host to send to";
    if (options->receive && options->host)
        return "-r: expected no host";
    if (options->concurrent && !(options->receive && options->pattern))
        return "-R: expected -r -s as well, because several transfers cannot share stdout";
    return options->udp ? check_datagrams(options) : NULL;
}

/* Returns whether there is no data to send, or no place for received data but a terminal. PCATTCP
 * has sink mode by default, ttcp standard input and output; so `ttcp -t HOST` sends data in both. A
 * closed standard input is /dev/null (prepare_stdio()). An empty file or pipe is an input. */
static bool lacks_stream(const struct ttcp_options *options) {
    int fd = options->transmit ? STDIN_FILENO : STDOUT_FILENO;
    struct stat status;
    if (isatty(fd))
        return true;
    return options->transmit && !fstat(fd, &status) && S_ISCHR(status.st_mode) &&
           status.st_rdev == makedev(1, 3); /* null(4) */
}

/* Two operands are read, because a second one needs a message of its own. */
static void read_options(struct ttcp_options *options, int argc, char **argv) {
    const char *operands[2] = {0};
    *options = (struct ttcp_options){.length = 8192,
                                     .count = 2048,
                                     .align = 16384,
                                     .unit = 'K',
                                     .port = 5001,
                                     .idle_ns = IDLE_NOT_GIVEN,
                                     .pause_ns = NS_PER_S / 4};
    if (options_read(&command, options, argc, argv, operands, 2) == 2)
        fail(EXIT_USAGE, "argument %s: expected nothing more", operands[1]);
    options->host = operands[0];
    options->pattern |= lacks_stream(options);
    if (options->idle_ns == IDLE_NOT_GIVEN)
        options->idle_ns = options->udp ? UDP_IDLE_NS : 0;
    const char *error = find_contradiction(options);
    if (error)
        fail(EXIT_USAGE, "%s", error);
}

/* Each of the sizes is at most 1 GiB, so their sum cannot wrap. */
int ttcp_main(int argc, char **argv) {
    struct ttcp_options options;
    bool has_name = argc > 0 && !strcmp(argv[0], "ttcp"); /* `ttcp ttcp -t` is accepted */
    read_options(&options, argc - has_name, argv + has_name);
    /* Transmitting datagrams reads up to MARK_BYTES + 1 ahead; -B collects up to two blocks. */
    uint64_t size = options.length * 2 + options.align + options.offset + MARK_BYTES + 1;
    uint8_t *memory = calloc(1, size);
    if (!memory) {
        ttcp_log(&options, "no memory for -l, -A and -O: %llu bytes", (unsigned long long)size);
        return EXIT_IO;
    }
    uint64_t past = (uintptr_t)memory % options.align;
    uint8_t *data = memory + (past ? options.align - past : 0) + options.offset;
    exchange_watch_signals();
    int code = options.transmit ? ttcp_transmit(&options, data) : ttcp_receive(&options, data);
    free(memory);
    return code;
}
