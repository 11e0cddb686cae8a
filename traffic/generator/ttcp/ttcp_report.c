/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that ttcp prints of a transfer, or one JSON object. */
#include "ttcp/ttcp_transfer.h"

#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

/* Rates as ttcp has them: 1 K is 1024. */
static const struct rate_unit {
    char letter;
    double bytes;
    const char *name;
} rate_units[] = {
    {'K', 1024, "KB"},       {'k', 1024 / 8.0, "Kbit"},
    {'M', 1048576, "MB"},    {'m', 1048576 / 8.0, "Mbit"},
    {'G', 1073741824, "GB"}, {'g', 1073741824 / 8.0, "Gbit"},
};

uint64_t ttcp_now(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * TTCP_NS + (uint64_t)now.tv_nsec;
}

void ttcp_start_clock(struct ttcp_transfer *transfer) {
    transfer->start_ns = transfer->end_ns = ttcp_now(CLOCK_MONOTONIC);
    transfer->first_ns = transfer->last_ns = ttcp_now(CLOCK_REALTIME);
    getrusage(RUSAGE_SELF, &transfer->usage);
}

void ttcp_mark_time(struct ttcp_transfer *transfer) {
    transfer->end_ns = ttcp_now(CLOCK_MONOTONIC);
}

void ttcp_end(struct ttcp_transfer *transfer, const char *ended_by, bool complete) {
    struct rusage now;
    getrusage(RUSAGE_SELF, &now);
    timersub(&now.ru_utime, &transfer->usage.ru_utime, &transfer->usage.ru_utime);
    timersub(&now.ru_stime, &transfer->usage.ru_stime, &transfer->usage.ru_stime);
    transfer->last_ns = transfer->first_ns + (transfer->end_ns - transfer->start_ns);
    transfer->ended_by = ended_by;
    transfer->complete = complete;
}

/* ttcp's own lines go where its data does not. */
static FILE *report_stream(const struct ttcp_options *options) {
    return options->receive && !options->pattern ? stderr : stdout;
}

static double seconds(struct timeval time) {
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static double rate(uint64_t amount, double over) {
    return over > 0 ? (double)amount / over : 0;
}

static void print_rate(FILE *out, const struct ttcp_options *options, double bytes_per_second) {
    const struct rate_unit *unit = rate_units;
    while (unit->letter != options->unit)
        unit++;
    fprintf(out, "%.2f %s", bytes_per_second / unit->bytes, unit->name);
}

static void peer_text(const struct ttcp_transfer *transfer, char *host, size_t size, char port[8]) {
    if (getnameinfo((const struct sockaddr *)&transfer->peer, transfer->peer_length, host,
                    (socklen_t)size, port, 8, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        snprintf(host, size, "?"), snprintf(port, 8, "0");
    /* An IPv4 peer of an IPv6 socket is shown as what it is. */
    if (strncmp(host, "::ffff:", 7) == 0 && strchr(host, '.'))
        memmove(host, host + 7, strlen(host + 7) + 1);
}

void ttcp_print_settings(const struct ttcp_options *options, const uint8_t *data) {
    if (options->json)
        return;
    FILE *out = report_stream(options);
    const char *role = options->transmit ? "-t" : "-r";
    fprintf(out, "ttcp%s: buflen=%" PRIu64 ", ", role, options->length);
    if (options->transmit && options->pattern && !options->continuous)
        fprintf(out, "nbuf=%" PRIu64 ", ", options->count);
    fprintf(out, "align=%" PRIu64 "/%" PRIu64 ", port=%s", options->align, options->offset,
            options->port);
    if (options->buffer)
        fprintf(out, ", sockbufsize=%" PRIu64, options->buffer);
    fprintf(out, "  %s%s%s\n", options->udp ? "udp" : "tcp", options->transmit ? "  -> " : "",
            options->transmit ? options->host : "");
    if (options->verbose)
        fprintf(out, "ttcp%s: buffer address %p\n", role, (const void *)data);
    fflush(out);
}

static void print_lines(FILE *out, const struct ttcp_options *options,
                        const struct ttcp_transfer *transfer) {
    const char *role = options->transmit ? "-t" : "-r";
    double real = (double)(transfer->end_ns - transfer->start_ns) / 1e9;
    double cpu = seconds(transfer->usage.ru_utime) + seconds(transfer->usage.ru_stime);
    fprintf(out, "ttcp%s: %" PRIu64 " bytes in %.2f real seconds = ", role, transfer->bytes, real);
    print_rate(out, options, rate(transfer->bytes, real));
    fputs("/sec +++\n", out);
    if (options->verbose) {
        fprintf(out, "ttcp%s: %" PRIu64 " bytes in %.2f CPU seconds = ", role, transfer->bytes,
                cpu);
        print_rate(out, options, rate(transfer->bytes, cpu));
        fputs("/cpu sec\n", out);
    }
    double calls = transfer->calls ? (double)transfer->calls : 1;
    fprintf(out, "ttcp%s: %" PRIu64 " I/O calls, msec/call = %.2f, calls/sec = %.2f\n", role,
            transfer->calls, real * 1000 / calls, rate(transfer->calls, real));
    fprintf(out, "ttcp%s: %.2fuser %.2fsys %.2freal %.0f%%\n", role,
            seconds(transfer->usage.ru_utime), seconds(transfer->usage.ru_stime), real,
            real > 0 ? 100 * cpu / real : 0);
    if (!transfer->complete)
        fprintf(out, "ttcp%s: not complete: ended by %s\n", role, transfer->ended_by);
}

static void print_json(FILE *out, const struct ttcp_options *options,
                       const struct ttcp_transfer *transfer) {
    char host[NI_MAXHOST], port[8];
    double real = (double)(transfer->end_ns - transfer->start_ns) / 1e9;
    peer_text(transfer, host, sizeof host, port);
    fprintf(out,
            "{\"schema\":\"wiretale.ttcp/1\",\"role\":\"%s\",\"protocol\":\"%s\",\"peer\":\"%s\","
            "\"peer_port\":%s,\"port\":%s,\"length\":%" PRIu64 ",\"align\":%" PRIu64
            ",\"offset\":%" PRIu64 ",",
            options->transmit ? "transmit" : "receive", options->udp ? "udp" : "tcp", host, port,
            options->port, options->length, options->align, options->offset);
    fprintf(out,
            "\"complete\":%s,\"ended_by\":\"%s\",\"bytes\":%" PRIu64 ",\"io_calls\":%" PRIu64
            ",\"first_ns\":%" PRIu64 ",\"last_ns\":%" PRIu64 ",\"elapsed_s\":%.9f,"
            "\"rate_kb_s\":%.3f,\"rate_mbit_s\":%.6f,",
            transfer->complete ? "true" : "false", transfer->ended_by, transfer->bytes,
            transfer->calls, transfer->first_ns, transfer->last_ns, real,
            rate(transfer->bytes, real) / 1e3, rate(transfer->bytes, real) * 8 / 1e6);
    fprintf(out,
            "\"cpu_user_s\":%.6f,\"cpu_system_s\":%.6f,\"cut_datagrams\":%" PRIu64
            ",\"send_retries\":%" PRIu64 ",\"sends_refused\":%" PRIu64 "}\n",
            seconds(transfer->usage.ru_utime), seconds(transfer->usage.ru_stime),
            transfer->cut_datagrams, transfer->retries, transfer->refused);
}

void ttcp_report(const struct ttcp_options *options, const struct ttcp_transfer *transfer) {
    char host[NI_MAXHOST], port[8];
    FILE *out = report_stream(options);
    if (options->json)
        print_json(out, options, transfer);
    else
        print_lines(out, options, transfer);
    fflush(out);
    peer_text(transfer, host, sizeof host, port);
    if (transfer->cut_datagrams)
        ttcp_say(options,
                 "%" PRIu64 " datagrams were longer than %" PRIu64 " bytes and cut: use -l",
                 transfer->cut_datagrams, options->length);
    if (transfer->refused)
        ttcp_say(options, "%" PRIu64 " sends were refused: nobody receives at %s port %s",
                 transfer->refused, host, port);
}
