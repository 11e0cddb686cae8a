/* SPDX-License-Identifier: Apache-2.0 */
#include "settings_option.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "say.h"

#define NAME_MOST      32
#define NEAR_MOST      3 /* changes of a letter that are taken for slips */
#define LETTERS_A_SLIP 4
#define COUNT_OF(a)    (sizeof(a) / sizeof *(a))

static const char short_options[] = ":i:Dpf:s:Q:B:Uj:y:w:C:G:W:b:Pzc:a:Z:qnhV";

static const struct option long_options[] = {
    {"interface", required_argument, NULL, 'i'},
    {"list", no_argument, NULL, 'D'},
    {"list-interfaces", no_argument, NULL, 'D'},
    {"json", no_argument, NULL, ONLY_JSON},
    {"wait", no_argument, NULL, ONLY_WAIT},
    {"no-promiscuous-mode", no_argument, NULL, 'p'},
    {"filter", required_argument, NULL, 'f'},
    {"snaplen", required_argument, NULL, 's'},
    {"snapshot-length", required_argument, NULL, 's'},
    {"headers", no_argument, NULL, ONLY_HEADERS},
    {"direction", required_argument, NULL, 'Q'},
    {"ring-buffer", required_argument, NULL, 'B'},
    {"buffer-size", required_argument, NULL, 'B'},
    {"immediate", no_argument, NULL, ONLY_IMMEDIATE},
    {"immediate-mode", no_argument, NULL, ONLY_IMMEDIATE},
    {"time-stamp-type", required_argument, NULL, 'j'},
    {"linktype", required_argument, NULL, 'y'},
    {"nano", no_argument, NULL, ONLY_NANO},
    {"write", required_argument, NULL, 'w'},
    {"total-size", required_argument, NULL, ONLY_TOTAL_SIZE},
    {"align", no_argument, NULL, ONLY_ALIGN},
    {"pcap", no_argument, NULL, ONLY_PCAP},
    {"overwrite", no_argument, NULL, ONLY_OVERWRITE},
    {"zstd", no_argument, NULL, 'z'},
    {"on-close", required_argument, NULL, ONLY_ON_CLOSE},
    {"count", required_argument, NULL, 'c'},
    {"autostop", required_argument, NULL, 'a'},
    {"buffer", required_argument, NULL, ONLY_BUFFER},
    {"status", required_argument, NULL, ONLY_STATUS},
    {"interval", required_argument, NULL, ONLY_INTERVAL},
    {"user", required_argument, NULL, 'Z'},
    {"relinquish-privileges", required_argument, NULL, 'Z'},
    {"no-sandbox", no_argument, NULL, ONLY_NO_SANDBOX},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

/* Letters of tcpdump and tshark that mean what is done otherwise here. */
static const struct {
    const char *letters, *hint;
} hints[] = {
    {"rR", "files are read by wiretale analyze FILE"},
    {"Y", "a display filter is for reading; expected a capture filter: -f 'tcp port 443'"},
    {"vxXAeEtT", "packets are recorded, not printed: -w - | tshark -r -"},
    {"F", "files are pcapng; --pcap is classic pcap"},
    {"d", "the counts come with --interval TIME"},
};

static const char *hint_of(int letter) {
    for (size_t i = 0; letter && i < COUNT_OF(hints); i++)
        if (strchr(hints[i].letters, letter))
            return hints[i].hint;
    return NULL;
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* How many letters have to be changed, put in or left out to make one word of the other. */
static size_t distance(const char *a, const char *b) {
    size_t row[NAME_MOST + 1], length = strlen(b);
    if (length > NAME_MOST)
        return NAME_MOST;
    for (size_t i = 0; i <= length; i++)
        row[i] = i;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t changed = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = least(changed, least(row[j], row[j - 1]) + 1);
        }
    }
    return row[length];
}

/* The option that was probably meant, or NULL. */
static const char *nearest(const char *name) {
    const char *found = NULL;
    size_t best = NEAR_MOST + 1;
    for (const struct option *at = long_options; at->name; at++) {
        if (*name && !strncmp(at->name, name, strlen(name)))
            return at->name;
        size_t far = distance(name, at->name);
        if (far < best && far <= strlen(name) / LETTERS_A_SLIP) {
            best = far;
            found = at->name;
        }
    }
    return found;
}

static _Noreturn void fail_unknown(const char *given) {
    char name[NAME_MOST + 1];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(given, "="), given);
    const char *meant = nearest(name);
    if (meant)
        fail(EXIT_USAGE, "there is no option --%s (did you mean --%s?); see `%s --help`", name,
             meant, say_name());
    fail(EXIT_USAGE, "there is no option --%s; see `%s --help`", name, say_name());
}

static _Noreturn void fail_unknown_letter(int letter) {
    const char *hint = hint_of(letter);
    if (hint)
        fail(EXIT_USAGE, "there is no option -%c: %s", letter, hint);
    fail(EXIT_USAGE, "there is no option -%c; see `%s --help`", letter, say_name());
}

/* As getopt_long() leaves it: optopt is 0 for a name that it does not know. */
static _Noreturn void fail_wrong(int answer, const char *word) {
    if (answer == ':' && !strncmp(word, "--", 2))
        fail(EXIT_USAGE, "%s: expected a value; see `%s --help`", word, say_name());
    if (answer == ':')
        fail(EXIT_USAGE, "-%c: expected a value; see `%s --help`", optopt, say_name());
    if (!optopt)
        fail_unknown(word + 2);
    if (optopt > UINT8_MAX || strchr(short_options, optopt))
        fail(EXIT_USAGE, "%.*s: expected no value", (int)strcspn(word, "="), word);
    fail_unknown_letter(optopt);
}

/* getopt_long() takes every beginning of a name that only one option has. */
static void refuse_abbreviated(const char *name, const char *word) {
    size_t length = strcspn(word + 2, "=");
    if (strlen(name) != length || strncmp(name, word + 2, length))
        fail_unknown(word + 2);
}

int settings_option(int count, char **arguments) {
    int which = -1;
    opterr = 0;
    int option = getopt_long(count, arguments, short_options, long_options, &which);
    if (option == -1)
        return -1;
    if (option == '?' || option == ':')
        fail_wrong(option, arguments[optind - 1]);
    if (which >= 0) {
        bool is_apart = optarg && optarg == arguments[optind - 1];
        refuse_abbreviated(long_options[which].name, arguments[optind - 1 - is_apart]);
    }
    return option;
}
