/* SPDX-License-Identifier: Apache-2.0 */
#include "display_filter.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define WORD_MOST 64

static const char *const protocols[] = {"arp",  "dns",  "eth", "frame", "http", "icmp", "ip",
                                        "ipv6", "sctp", "tcp", "tls",   "udp",  "vlan", NULL};

/* What has the same meaning; "" is left out. */
static const char *const words[][2] = {
    {"tcp.port", "tcp port"},
    {"tcp.srcport", "tcp src port"},
    {"tcp.dstport", "tcp dst port"},
    {"udp.port", "udp port"},
    {"udp.srcport", "udp src port"},
    {"udp.dstport", "udp dst port"},
    {"ip.addr", "host"},
    {"ip.src", "src host"},
    {"ip.dst", "dst host"},
    {"ipv6.addr", "host"},
    {"ipv6.src", "src host"},
    {"ipv6.dst", "dst host"},
    {"eth.addr", "ether host"},
    {"eth.src", "ether src"},
    {"eth.dst", "ether dst"},
    {"vlan.id", "vlan"},
    {"==", ""},
    {"eq", ""},
    {"&&", "and"},
    {"||", "or"},
    {"!", "not"},
};

/* The length of the next word: a name or number with dots and colons, an operator, or a bracket. */
static size_t word_length(const char *at) {
    static const char operators[] = "=!<>&|";
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || (at[length] && strchr("._:/", at[length])))
        length++;
    return length ? length : strspn(at, operators) ? strspn(at, operators) : 1;
}

static bool is_field(const char *word) {
    size_t length = strcspn(word, ".");
    if (!isalpha((unsigned char)word[length] ? word[length + 1] : 0))
        return false;
    for (const char *const *at = protocols; *at; at++)
        if (strlen(*at) == length && !strncmp(*at, word, length))
            return true;
    return false;
}

/* Copies the next word and moves behind it; false at the end, or when it is too long. */
static bool next_word(const char **text, char word[WORD_MOST]) {
    *text += strspn(*text, " \t");
    size_t length = **text ? word_length(*text) : 0;
    if (!length || length >= WORD_MOST)
        return false;
    memcpy(word, *text, length);
    word[length] = '\0';
    *text += length;
    return true;
}

bool display_filter_is(const char *text) {
    char word[WORD_MOST];
    while (next_word(&text, word))
        if (is_field(word))
            return true;
    return false;
}

static const char *meaning_of(const char *word) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i][0], word))
            return words[i][1];
    return is_field(word) || strpbrk(word, "<>=!&|") ? NULL : word;
}

bool display_filter_rewrite(const char *text, char *capture, size_t size) {
    char word[WORD_MOST];
    size_t used = 0;
    *capture = '\0';
    while (next_word(&text, word)) {
        const char *meaning = meaning_of(word);
        if (!meaning)
            return false;
        bool apart = used && *meaning && *meaning != ')' && capture[used - 1] != '(';
        used += (size_t)snprintf(capture + used, size - used, "%s%s", apart ? " " : "", meaning);
        if (used >= size)
            return false;
    }
    return !*text;
}
