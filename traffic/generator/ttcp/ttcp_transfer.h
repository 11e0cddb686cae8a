/* SPDX-License-Identifier: Apache-2.0 */
/* ttcp: one transfer over TCP or UDP with a peer that speaks as ttcp and PCATTCP do.
 *
 * TCP carries the bytes and nothing else; the end is the end of the stream. Over UDP a datagram of
 * at most 4 bytes is a mark: one before the data starts the receiver's clock, several after the
 * data end the transfer. A receiver that waits for a mark alone hangs when all of them are lost;
 * this one also ends after `--idle` seconds of silence. */
#ifndef WIRETALE_TTCP_TRANSFER_H
#define WIRETALE_TTCP_TRANSFER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#define TTCP_MARK_BYTES 4u /* datagrams up to this size are marks */
#define TTCP_NS         UINT64_C(1000000000)

enum ttcp_exit {
    TTCP_DONE = 0,
    TTCP_USAGE = 2,
    TTCP_CUT_SHORT = 3,   /* reported, but not to its end */
    TTCP_UNREACHABLE = 4, /* no such host, nobody there, or an address that cannot be used */
    TTCP_FORBIDDEN = 5,
    TTCP_INTERRUPTED = 130,
    TTCP_TERMINATED = 143, /* by SIGTERM */
};

struct ttcp_options {
    bool transmit, receive, udp;
    bool pattern;     /* -s: a pattern is sent and what comes is dropped, not stdin and stdout */
    bool no_delay;    /* -D */
    bool debug;       /* -d */
    bool full_blocks; /* -B */
    bool touch;       /* -T */
    bool concurrent;  /* -R */
    bool continuous;  /* -c */
    bool verbose, json, help, version;
    int family;        /* AF_UNSPEC, or what -4 and -6 ask for */
    uint64_t length;   /* -l, bytes */
    uint64_t count;    /* -n */
    uint64_t align;    /* -A, bytes */
    uint64_t offset;   /* -O, bytes */
    uint64_t buffer;   /* -b, bytes; 0 leaves the system's */
    char unit;         /* -f, one of kKmMgG */
    uint64_t idle_ns;  /* 0: TCP waits as long as it takes */
    uint64_t pause_ns; /* before the marks that end a transfer over UDP */
    const char *host;
    char port[8];
};

/* What one transfer came to. */
struct ttcp_transfer {
    struct sockaddr_storage peer;
    socklen_t peer_length;
    uint64_t bytes, calls;
    uint64_t start_ns, end_ns;  /* CLOCK_MONOTONIC: of the clock that the rate is from */
    uint64_t first_ns, last_ns; /* CLOCK_REALTIME of the same */
    uint64_t cut_datagrams;     /* longer than -l: their rest is gone */
    uint64_t retries, refused;  /* sends that found no buffer; sends that nobody listened to */
    struct rusage usage;        /* at the start, then used since */
    const char *ended_by;       /* "close", "end mark", "idle", "signal", "peer gone", … */
    bool complete;
};

extern volatile sig_atomic_t ttcp_stopped;

/* ttcp_options.c: false after one line on stderr that says what is wrong */
bool ttcp_read_options(struct ttcp_options *options, int argc, char **argv);
int ttcp_print_help(void); /* returns the exit code */

/* ttcp_socket.c: a descriptor that does not block, or -1 - enum ttcp_exit after one line on stderr
 */
int ttcp_open_to(const struct ttcp_options *options, struct ttcp_transfer *transfer);
int ttcp_open_at(const struct ttcp_options *options);
bool ttcp_set_connection(int socket, const struct ttcp_options *options);
void ttcp_say(const struct ttcp_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ttcp_transmit.c, ttcp_receive.c: return the exit code */
int ttcp_transmit(const struct ttcp_options *options, uint8_t *data);
int ttcp_receive(const struct ttcp_options *options, uint8_t *data);

/* ttcp_report.c */
uint64_t ttcp_now(clockid_t clock);
void ttcp_start_clock(struct ttcp_transfer *transfer);
void ttcp_mark_time(struct ttcp_transfer *transfer); /* the last byte until now */
void ttcp_end(struct ttcp_transfer *transfer, const char *ended_by, bool complete);
void ttcp_print_settings(const struct ttcp_options *options, const uint8_t *data);
void ttcp_report(const struct ttcp_options *options, const struct ttcp_transfer *transfer);

/* ttcp_output.c: what was received, on stdout; false when nobody reads it */
struct ttcp_output {
    uint8_t *block; /* being filled, with -B */
    size_t held, length;
};
bool ttcp_output_write(struct ttcp_output *output, const uint8_t *data, size_t count);
bool ttcp_output_flush(struct ttcp_output *output);

#endif
