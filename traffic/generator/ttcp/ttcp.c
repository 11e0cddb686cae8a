/* SPDX-License-Identifier: Apache-2.0 */
/* ttcp: options, a buffer where it is asked for, one role. */
#include "ttcp/ttcp.h"

#include "transfer/command_help.h"
#include "ttcp/ttcp_transfer.h"

#include <stdlib.h>
#include <string.h>

volatile sig_atomic_t ttcp_stopped;      /* of one thread */
static volatile sig_atomic_t stopped_by; /* the signal */

static void stop(int number) {
    stopped_by = number;
    ttcp_stopped = 1;
}

/* No SA_RESTART: what waits is to look up. */
static void catch_signals(void) {
    struct sigaction action = {.sa_handler = stop}, before;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN) /* nohup(1) */
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* The first multiple of the alignment in the memory, and the offset beyond. */
static uint8_t *aligned(uint8_t *memory, const struct ttcp_options *options) {
    uint64_t past = (uintptr_t)memory % options->align;
    return memory + (past ? options->align - past : 0) + options->offset;
}

/* The arguments behind the name of the command, which callers may leave out: getopt wants one. The
 * array is the caller's to free. */
static char **with_name(int *argc, char **argv) {
    static char name[] = "ttcp";
    bool has_name = *argc > 0 && strcmp(argv[0], name) == 0;
    char **named = calloc((size_t)*argc + 2, sizeof *named);
    if (!named)
        return NULL;
    named[0] = name;
    *argc -= has_name;
    memcpy(named + 1, argv + has_name, (size_t)*argc * sizeof *named);
    ++*argc;
    return named;
}

static int run(const struct ttcp_options *options) {
    /* Room to read a mark's worth ahead (ttcp_transmit.c). */
    uint64_t room = options->length + options->align + options->offset + TTCP_MARK_BYTES + 1;
    uint8_t *memory = calloc(1, room);
    if (!memory) {
        ttcp_say(options, "no memory for -l, -A and -O: %llu bytes", (unsigned long long)room);
        return TTCP_UNREACHABLE;
    }
    ttcp_stopped = 0;
    catch_signals();
    uint8_t *data = aligned(memory, options);
    int code = options->transmit ? ttcp_transmit(options, data) : ttcp_receive(options, data);
    free(memory);
    return code == TTCP_INTERRUPTED && stopped_by == SIGTERM ? TTCP_TERMINATED : code;
}

int ttcp_main(int argc, char **argv) {
    struct ttcp_options options;
    char **named = with_name(&argc, argv);
    int code = TTCP_USAGE;
    if (!named || !ttcp_read_options(&options, argc, named))
        goto end;
    code = options.help ? ttcp_print_help() : options.version ? version_print() : run(&options);
end:
    free(named);
    return code;
}
