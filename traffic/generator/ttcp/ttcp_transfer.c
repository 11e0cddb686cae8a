/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by both roles: options of a socket, the clock of a transfer, and its report, as the lines
 * of ttcp or as one JSON object. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/utf8.h"
#include "report/report.h"
#include "ttcp/ttcp_transfer.h"

/* A failure of -D is only a warning, because the transfer is right without it. */
int ttcp_set_socket(int fd, const struct ttcp_options *options) {
    int one = 1, bytes = (int)options->buffer, given = 0;
    int name = options->transmit ? SO_SNDBUF : SO_RCVBUF;
    socklen_t size = sizeof given;
    if (options->debug && setsockopt(fd, SOL_SOCKET, SO_DEBUG, &one, sizeof one)) {
        ttcp_log(options, "-d: SO_DEBUG needs CAP_NET_ADMIN: %s", strerror(errno));
        return EXIT_MISSING;
    }
    if (options->no_delay && !options->udp &&
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
        ttcp_log(options, "-D: %s", strerror(errno));
    if (bytes && setsockopt(fd, SOL_SOCKET, name, &bytes, sizeof bytes)) {
        ttcp_log(options, "-b %d: %s", bytes, strerror(errno));
        return EXIT_IO;
    }
    /* The kernel gives no more than its limit, and doubles it (socket(7)). */
    if (bytes && !getsockopt(fd, SOL_SOCKET, name, &given, &size) && given / 2 < bytes)
        ttcp_log(options, "-b %d: the system gives only %d bytes: raise net.core.%s", bytes,
                 given / 2, options->transmit ? "wmem_max" : "rmem_max");
    return 0;
}

/* CPU times are those of the process, so transfers that overlap (-R) share them. */
void ttcp_start_clock(struct ttcp_transfer *transfer) {
    transfer->times = (struct stream_times){0};
    stream_times_note(&transfer->times, (uint64_t)monotonic_ns());
    getrusage(RUSAGE_SELF, &transfer->usage);
}

/* Standard output if it does not carry received data. */
static FILE *report_stream(const struct ttcp_options *options) {
    return options->receive && !options->pattern ? stderr : stdout;
}

static double seconds(uint64_t ns) {
    return (double)ns / 1e9;
}

/* Returns 0 if no time passed, so that the output is always a number. */
static double rate(uint64_t amount, double over) {
    return over > 0 ? (double)amount / over : 0;
}

void ttcp_print_settings(const struct ttcp_options *options, const uint8_t *data) {
    if (options->json)
        return;
    FILE *out = report_stream(options);
    const char *role = options->transmit ? "-t" : "-r";
    fprintf(out, "ttcp%s: buflen=%llu, ", role, (unsigned long long)options->length);
    if (options->transmit && options->pattern && !options->continuous)
        fprintf(out, "nbuf=%llu, ", (unsigned long long)options->count);
    fprintf(out, "align=%llu/%llu, port=%u", (unsigned long long)options->align,
            (unsigned long long)options->offset, (unsigned)options->port);
    if (options->buffer)
        fprintf(out, ", sockbufsize=%llu", (unsigned long long)options->buffer);
    fprintf(out, "  %s%s", options->udp ? "udp" : "tcp", options->transmit ? "  -> " : "");
    utf8_put_printable(out, options->transmit ? options->host : "");
    fputc('\n', out);
    if (options->verbose)
        fprintf(out, "ttcp%s: buffer address %p\n", role, (const void *)data);
    fflush(out);
}

/* The lines and their wording are those of ttcp, so that scripts which parse them keep working. */
static void print_lines(FILE *out, const struct ttcp_options *options,
                        const struct ttcp_transfer *transfer, const struct stream_report *report) {
    const char *role = options->transmit ? "-t" : "-r";
    const struct rate_unit *unit = rate_unit_of(options->unit);
    unsigned long long bytes = transfer->bytes, calls = transfer->calls;
    double user = seconds(report->cpu_user_ns), system = seconds(report->cpu_system_ns);
    double real = seconds(report->elapsed_ns);
    fprintf(out, "ttcp%s: %llu bytes in %.2f real seconds = %.2f %s/sec +++\n", role, bytes, real,
            rate(bytes, real) / unit->bytes, unit->name);
    if (options->verbose)
        fprintf(out, "ttcp%s: %llu bytes in %.2f CPU seconds = %.2f %s/cpu sec\n", role, bytes,
                user + system, rate(bytes, user + system) / unit->bytes, unit->name);
    fprintf(out, "ttcp%s: %llu I/O calls, msec/call = %.2f, calls/sec = %.2f\n", role, calls,
            real * 1000 / (double)(calls ? calls : 1), rate(calls, real));
    fprintf(out, "ttcp%s: %.2fuser %.2fsys %.2freal %.0f%%\n", role, user, system, real,
            100 * rate(1, real) * (user + system));
    if (!transfer->complete)
        fprintf(out, "ttcp%s: not complete: ended by %s\n", role, transfer->ended_by);
}

static void print_json(FILE *out, const struct ttcp_options *options,
                       const struct ttcp_transfer *transfer, const char *host,
                       const struct stream_report *report) {
    struct json json = {.out = out};
    json_open(&json, NULL, '{');
    json_text(&json, "schema", "wiretale.ttcp/1");
    json_text(&json, "role", options->transmit ? "transmit" : "receive");
    json_text(&json, "protocol", options->udp ? "udp" : "tcp");
    json_text(&json, "peer", host);
    json_count(&json, "peer_port", endpoint_port(&transfer->peer));
    json_count(&json, "port", (int64_t)options->port);
    json_bool(&json, "sink_mode", options->pattern);
    json_count(&json, "length", (int64_t)options->length);
    json_count(&json, "align", (int64_t)options->align);
    json_count(&json, "offset", (int64_t)options->offset);
    json_bool(&json, "complete", transfer->complete);
    json_text(&json, "ended_by", transfer->ended_by);
    json_count(&json, "bytes", (int64_t)transfer->bytes);
    json_count(&json, "io_calls", (int64_t)transfer->calls);
    report_put_rates(&json, report, rate(transfer->bytes, seconds(report->elapsed_ns)));
    json_count(&json, "cut_datagrams", (int64_t)transfer->cut_datagrams);
    json_count(&json, "send_retries", (int64_t)transfer->retries);
    json_count(&json, "sends_refused", (int64_t)transfer->refused);
    json_close(&json, '}');
    fputc('\n', out);
}

/* Hints go to standard error, because scripts parse the lines. */
bool ttcp_report(const struct ttcp_options *options, struct ttcp_transfer *transfer,
                 const char *ended_by, bool complete) {
    char host[ADDRESS_SIZE];
    struct rusage now;
    struct stream_report report = {0};
    FILE *out = report_stream(options);
    getrusage(RUSAGE_SELF, &now);
    report.cpu_user_ns = timeval_ns(now.ru_utime) - timeval_ns(transfer->usage.ru_utime);
    report.cpu_system_ns = timeval_ns(now.ru_stime) - timeval_ns(transfer->usage.ru_stime);
    stream_times_report(&transfer->times, &report);
    transfer->ended_by = ended_by;
    transfer->complete = complete;
    endpoint_name(&transfer->peer, host);
    if (options->json)
        print_json(out, options, transfer, host, &report);
    else
        print_lines(out, options, transfer, &report);
    bool written = finish_output(out);
    if (transfer->cut_datagrams)
        ttcp_log(options, "%llu datagrams were longer than %llu bytes and truncated: raise -l",
                 (unsigned long long)transfer->cut_datagrams, (unsigned long long)options->length);
    if (transfer->refused)
        ttcp_log(options, "%llu sends were refused: no program receives at %s port %u",
                 (unsigned long long)transfer->refused, host, endpoint_port(&transfer->peer));
    return written;
}
