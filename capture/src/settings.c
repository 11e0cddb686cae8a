/* SPDX-License-Identifier: Apache-2.0 */
/* What each option does with its value. */
#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/units.h"
#include "say.h"
#include "settings_option.h"

#define RING_DEFAULT   (32u << 20)
#define BUFFER_DEFAULT (128u << 20)
#define SNAPLEN_HEADERS                                                                            \
    256u /* Ethernet, VLANs, a tunnel's headers, IPv6, TCP options, a block's header */
#define FILE_BYTES_LEAST 4096

static uint64_t bytes_of(const char *option, const char *text, const char *bare) {
    uint64_t bytes;
    if (!units_parse_whole(text, UNIT_SIZE, bare, &bytes))
        fail(EXIT_USAGE, "%s '%s': expected a size, as 64k, 8MB or 64MiB", option, text);
    return bytes;
}

static int64_t time_of(const char *option, const char *text) {
    uint64_t ns;
    if (!units_parse_whole(text, UNIT_TIME, "", &ns) || !ns)
        fail(EXIT_USAGE, "%s '%s': expected a time above 0, as 200ms, 10s or 1h", option, text);
    return (int64_t)ns;
}

static uint64_t count_of(const char *option, const char *text) {
    uint64_t count;
    if (!units_parse_whole(text, UNIT_COUNT, "", &count) || !count)
        fail(EXIT_USAGE, "%s '%s': expected a whole number above 0, as 100 or 10k", option, text);
    return count;
}

static void add_interface(struct settings *settings, const char *name) {
    if (settings->interface_count == DEVICES_MAX)
        fail(EXIT_USAGE, "-i %s: expected at most %d interfaces", name, DEVICES_MAX);
    if (!*name)
        fail(EXIT_USAGE, "-i: expected the name or number of an interface");
    settings->interfaces[settings->interface_count++] = name;
}

static void set_snaplen(struct settings *settings, const char *text) {
    uint64_t bytes = bytes_of("-s", text, "B");
    if (bytes > RECORD_SNAPLEN_MAX)
        bytes = RECORD_SNAPLEN_MAX;
    settings->snaplen = bytes ? (uint32_t)bytes : RECORD_SNAPLEN_MAX; /* 0: all, as in tcpdump */
}

static void set_direction(struct settings *settings, const char *text) {
    static const char *const names[] = {"inout", "in", "out"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(text, names[i])) {
            settings->direction = (enum direction_wish)i;
            return;
        }
    fail(EXIT_USAGE, "-Q %s: expected in, out or inout", text);
}

/* The value after "name:", or NULL. */
static const char *value_of(const char *text, const char *name) {
    size_t length = strlen(name);
    return !strncmp(text, name, length) && text[length] == ':' ? text + length + 1 : NULL;
}

static void set_rotation(struct settings *settings, const char *text) {
    const char *value;
    if ((value = value_of(text, "filesize")))
        settings->file_bytes = bytes_of("-b filesize:", value, "kB");
    else if ((value = value_of(text, "duration")))
        settings->file_ns = time_of("-b duration:", value);
    else if ((value = value_of(text, "interval"))) {
        settings->file_ns = time_of("-b interval:", value);
        settings->align = true;
    } else if ((value = value_of(text, "packets")))
        settings->file_packets = count_of("-b packets:", value);
    else if ((value = value_of(text, "files")))
        settings->ring_files = count_of("-b files:", value);
    else if (units_parse_whole(text, UNIT_SIZE, "MB", &settings->file_bytes) &&
             settings->file_bytes)
        return; /* a size alone */
    else
        fail(EXIT_USAGE,
             "-b %s: expected filesize:, duration:, interval:, packets: or files: and a value",
             text);
}

static void set_stop(struct settings *settings, const char *text) {
    const char *value;
    if ((value = value_of(text, "duration")))
        settings->stop_ns = time_of("-a duration:", value);
    else if ((value = value_of(text, "packets")))
        settings->stop_packets = count_of("-a packets:", value);
    else if ((value = value_of(text, "filesize")))
        settings->stop_bytes = bytes_of("-a filesize:", value, "kB");
    else if ((value = value_of(text, "files")))
        settings->stop_files = count_of("-a files:", value);
    else
        fail(EXIT_USAGE, "-a %s: expected duration:, packets:, filesize: or files: and a value",
             text);
}

static void set_filter(struct settings *settings, const char *text) {
    free(settings->filter);
    settings->filter = strdup(text);
}

/* Options of the kind "which packets"; false when it is another. */
static bool take_interface_option(struct settings *settings, int option, const char *value) {
    switch (option) {
    case 'i': add_interface(settings, value); return true;
    case ONLY_WAIT: settings->wait = true; return true;
    case 'p': settings->no_promiscuous = true; return true;
    case 'f': set_filter(settings, value); return true;
    case 's': set_snaplen(settings, value); return true;
    case ONLY_HEADERS: settings->snaplen = SNAPLEN_HEADERS; return true;
    case 'Q': set_direction(settings, value); return true;
    case 'B': settings->ring_bytes = bytes_of("-B", value, "MiB"); return true;
    case 'U':
    case ONLY_IMMEDIATE: settings->immediate = true; return true;
    case 'j': settings->time_source = value; return true;
    case 'y': settings->link_type = value; return true;
    default: return false;
    }
}

static bool take_file_option(struct settings *settings, int option, const char *value) {
    switch (option) {
    case 'w': settings->output = value; return true;
    case 'C': settings->file_bytes = bytes_of("-C", value, "MB"); return true;
    case 'G': settings->file_ns = time_of("-G", value); return true;
    case 'W': settings->ring_files = count_of("-W", value); return true;
    case 'b': set_rotation(settings, value); return true;
    case ONLY_TOTAL_SIZE:
        settings->ring_total_bytes = bytes_of("--total-size", value, "B");
        return true;
    case ONLY_ALIGN: settings->align = true; return true;
    case 'P':
    case ONLY_PCAP: settings->format = RECORD_PCAP; return true;
    case 'z': settings->compress = true; return true;
    case ONLY_OVERWRITE: settings->overwrite = true; return true;
    case ONLY_ON_CLOSE: settings->on_close = (char *)value; return true;
    default: return false;
    }
}

static _Noreturn void end_printed(void) {
    if (fflush(stdout) || ferror(stdout))
        fail(EXIT_UNREADABLE, "standard output cannot be written: %s", strerror(errno));
    exit(EXIT_DONE);
}

static bool take_program_option(struct settings *settings, int option, const char *value) {
    switch (option) {
    case 'c': settings->stop_packets = count_of("-c", value); return true;
    case 'a': set_stop(settings, value); return true;
    case ONLY_BUFFER: settings->buffer_bytes = bytes_of("--buffer", value, "B"); return true;
    case ONLY_STATUS: settings->status = value; return true;
    case ONLY_INTERVAL: settings->interval_ns = time_of("--interval", value); return true;
    case 'Z': settings->user = value; return true;
    case ONLY_NO_SANDBOX: settings->no_sandbox = true; return true;
    case 'q': settings->quiet = true; return true;
    case 'D': settings->list = true; return true;
    case ONLY_JSON: settings->json = true; return true;
    case 'n': /* dumpcap's: pcapng */
    case ONLY_NANO: /* tcpdump's: both are how it is */ return true;
    case 'h': settings_help(say_name()); end_printed();
    case 'V': printf("wiretale-capture %s\n", WIRETALE_VERSION); end_printed();
    default: return false;
    }
}

/* What is left on the command line is a filter, as in tcpdump. */
static void add_expression(struct settings *settings, int count, char **words) {
    size_t size = settings->filter ? strlen(settings->filter) + 8 : 1;
    for (int i = 0; i < count; i++)
        size += strlen(words[i]) + 1;
    char *joined = calloc(1, size);
    if (!joined)
        fail(EXIT_UNREADABLE, "out of memory");
    for (int i = 0; i < count; i++)
        strcat(strcat(joined, *joined ? " " : ""), words[i]);
    if (settings->filter)
        fail(EXIT_USAGE, "a filter after -f and another at the end (%s): expected one", joined);
    settings->filter = joined;
}

static bool rotates(const struct settings *settings) {
    return settings->file_bytes || settings->file_ns || settings->file_packets;
}

void settings_refuse_files(const struct settings *settings) {
    if (rotates(settings) || settings->compress || settings->on_close)
        fail(EXIT_USAGE, "-w %s is one stream: expected no rotation, --zstd or --on-close",
             settings->output);
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), more = strlen(end);
    return length > more && !strcmp(text + length - more, end);
}

static void check_files(struct settings *settings) {
    settings->compress |= ends_with(settings->output, ".zst");
    if (settings->file_bytes && settings->file_bytes < FILE_BYTES_LEAST)
        fail(EXIT_USAGE, "files of %llu bytes: expected at least %d",
             (unsigned long long)settings->file_bytes, FILE_BYTES_LEAST);
    if (settings->align && !settings->file_ns)
        fail(EXIT_USAGE, "--align: expected -G or -b duration: with it");
    if ((settings->ring_files || settings->ring_total_bytes) && !rotates(settings))
        fail(EXIT_USAGE,
             "a ring of files: expected -C, -G or -b filesize:, duration: or packets: with it");
    if (!strcmp(settings->output, "-"))
        settings_refuse_files(settings);
}

static void check(struct settings *settings) {
    if (settings->list)
        return;
    if (!settings->interface_count)
        fail(EXIT_USAGE, "expected -i INTERFACE; `%s --list` shows them", say_name());
    if (!settings->output || !*settings->output)
        fail(EXIT_USAGE, "expected -w FOLDER (or a file, or -)");
    if (settings->ring_bytes > INT32_MAX)
        fail(EXIT_USAGE, "-B: expected less than 2 GiB");
    check_files(settings);
}

void settings_read(struct settings *settings, int count, char **arguments) {
    *settings = (struct settings){
        .snaplen = RECORD_SNAPLEN_MAX, .ring_bytes = RING_DEFAULT, .buffer_bytes = BUFFER_DEFAULT};
    for (int option; (option = settings_option(count, arguments)) != -1;)
        if (!take_interface_option(settings, option, optarg) &&
            !take_file_option(settings, option, optarg))
            take_program_option(settings, option, optarg);
    if (optind < count)
        add_expression(settings, count - optind, arguments + optind);
    check(settings);
}

void settings_free(struct settings *settings) {
    free(settings->filter);
    settings->filter = NULL;
}
