/* SPDX-License-Identifier: Apache-2.0 */
/* Filters. A display filter of Wireshark (tcp.port == 443) is a common mistake for a capture
 * filter, so it is recognized by its field names, and translated for the error message if each of
 * its words has a counterpart. */
#include <ctype.h>
#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "device/device.h"

#define MAX_WORD 64

static const char *const protocols[] = {"arp",  "dns",  "eth", "frame", "http", "icmp", "ip",
                                        "ipv6", "sctp", "tcp", "tls",   "udp",  "vlan", NULL};

/* Words with the same meaning in a capture filter; "" is left out. */
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

/* Returns the length of the next word: a name or number with dots and colons, an operator, or a
 * bracket. */
static size_t word_length(const char *at) {
    static const char operators[] = "=!<>&|";
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || (at[length] && strchr("._:/", at[length])))
        length++;
    return length ? length : strspn(at, operators) ? strspn(at, operators) : 1;
}

/* Returns whether a word is a field of a display filter: a protocol, a dot and a letter. A host
 * name such as tcp.example.org is one by this rule; therefore only filters that do not compile are
 * asked about. */
static bool is_field(const char *word) {
    size_t length = strcspn(word, ".");
    if (!isalpha((unsigned char)word[length] ? word[length + 1] : 0))
        return false;
    for (const char *const *at = protocols; *at; at++)
        if (strlen(*at) == length && !strncmp(*at, word, length))
            return true;
    return false;
}

/* Copies the next word and advances behind it. Returns false at the end, or if the word is too
 * long. */
static bool next_word(const char **text, char word[MAX_WORD]) {
    *text += strspn(*text, " \t");
    size_t length = **text ? word_length(*text) : 0;
    if (!length || length >= MAX_WORD)
        return false;
    memcpy(word, *text, length);
    word[length] = '\0';
    *text += length;
    return true;
}

static bool is_display_filter(const char *text) {
    char word[MAX_WORD];
    while (next_word(&text, word))
        if (is_field(word))
            return true;
    return false;
}

/* Returns the counterpart of a word, the word itself, or NULL if a capture filter has no
 * counterpart. */
static const char *meaning_of(const char *word) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i][0], word))
            return words[i][1];
    return is_field(word) || strpbrk(word, "<>=!&|") ? NULL : word;
}

/* Translates word by word. Returns false if a word has no counterpart. */
static bool rewrite_display_filter(const char *text, char *capture, size_t size) {
    char word[MAX_WORD];
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

/* The kernel delivers a packet on the loopback interface twice, once for each direction. */
const char *device_direction_filter(const struct device *device) {
    switch (device->capture->settings->direction) {
    case CHOOSE_IN: return "inbound";
    case CHOOSE_OUT: return "outbound";
    default: return device->index && !strcmp(device->name, "lo") ? "inbound" : NULL;
    }
}

static bool compile(struct device *device, const char *text, struct bpf_program *program) {
    return !pcap_compile(device->handle, program, text, 1, PCAP_NETMASK_UNKNOWN);
}

/* Refuses a filter that libpcap cannot compile. */
static enum open_result wrong_filter(struct device *device, const char *wanted) {
    char capture[128];
    struct bpf_program program;
    if (!is_display_filter(wanted))
        return device_refuse(device, "the filter: %s", pcap_geterr(device->handle));
    bool rewritten = rewrite_display_filter(wanted, capture, sizeof capture) &&
                     compile(device, capture, &program);
    if (rewritten)
        pcap_freecode(&program);
    return device_refuse(device,
                         "the filter: expected a capture filter (pcap-filter(7)), but this is a "
                         "Wireshark display filter%s%s%s",
                         rewritten ? "; write -f '" : "", rewritten ? capture : "",
                         rewritten ? "'" : "");
}

enum open_result device_set_filter(struct device *device) {
    const char *wanted = device->capture->settings->filter;
    struct bpf_program program;
    if (!wanted)
        return OPEN_DONE;
    if (!compile(device, wanted, &program))
        return wrong_filter(device, wanted);
    int failed = pcap_setfilter(device->handle, &program);
    pcap_freecode(&program);
    return failed ? device_refuse(device, "the filter: %s", pcap_geterr(device->handle))
                  : OPEN_DONE;
}

/* The filter is for packets as they are recorded: a handle of a live device would make libpcap use
 * what only the kernel knows of a packet. */
enum open_result device_set_match(struct device *device) {
    const char *wanted = device->capture->settings->keep_match;
    enum open_result result = OPEN_DONE;
    if (!wanted)
        return result;
    pcap_t *plain = pcap_open_dead(pcap_datalink(device->handle), RECORD_SNAPLEN_MAX);
    pcap_freecode(&device->match);
    if (!plain || pcap_compile(plain, &device->match, wanted, 1, PCAP_NETMASK_UNKNOWN))
        result = device_refuse(device, "--keep-on match: %s",
                               plain ? pcap_geterr(plain) : "out of memory");
    if (plain)
        pcap_close(plain);
    return result;
}

/* Gives the kernel a filter that includes the direction, so that its counts are of the packets that
 * libpcap delivers. libpcap cannot do that itself: it also runs a new filter over packets that are
 * in the ring already, whose direction it does not know. `any` has headers of its own, which only
 * libpcap can filter. */
static void narrow_kernel_filter(struct device *device) {
    const char *way = device_direction_filter(device), *wanted = device->capture->settings->filter;
    struct bpf_program program;
    char *text = NULL;
    if (!way || !device->index)
        return;
    if (asprintf(&text, "%s%s%s%s", way, wanted ? " and (" : "", wanted ? wanted : "",
                 wanted ? ")" : "") < 0)
        return;
    bool compiled = compile(device, text, &program);
    free(text);
    if (!compiled)
        return;
    struct sock_fprog kernel = {.len = (unsigned short)program.bf_len,
                                .filter = (struct sock_filter *)program.bf_insns};
    setsockopt(pcap_fileno(device->handle), SOL_SOCKET, SO_ATTACH_FILTER, &kernel, sizeof kernel);
    pcap_freecode(&program);
}

enum open_result device_set_direction(struct device *device) {
    static const pcap_direction_t ways[] = {[CHOOSE_IN] = PCAP_D_IN, [CHOOSE_OUT] = PCAP_D_OUT};
    enum direction_choice wish = device->capture->settings->direction;
    if (wish != CHOOSE_BOTH && pcap_setdirection(device->handle, ways[wish]))
        return device_refuse(device, "-Q: %s", pcap_geterr(device->handle));
    narrow_kernel_filter(device);
    return OPEN_DONE;
}
