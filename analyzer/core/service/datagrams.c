/* SPDX-License-Identifier: Apache-2.0 */
/* The time (NTP, RFC 5905), keys of tunnels (IKE, RFC 7296 and 2409), boot files (TFTP, RFC 1350
 * and 2347), ports of RPC programs (RFC 1833). */
#include <stdio.h>

#include "base/bytes.h"
#include "service/readers.h"

#define NTP_BYTES      48u
#define UNSYNCHRONIZED 3u
#define STRATUM_NONE   16u

enum ntp_mode { NTP_CLIENT = 3, NTP_SERVER = 4 };

/*   0  2 bits leap, 3 version, 3 mode;  1 stratum;  12 reference id: of stratum 0 a word */
void ntp_read(struct service_message *message, struct service_bytes bytes) {
    char text[SERVICE_TEXT_BYTES];
    if (bytes.length < NTP_BYTES)
        return;
    uint8_t mode = bytes.at[0] & 7, leap = bytes.at[0] >> 6, stratum = bytes.at[1];
    message->type = "NTP";
    if (mode == NTP_CLIENT) {
        message->step = STEP_ASKS;
    } else if (mode == NTP_SERVER && !stratum) {
        char word[SERVICE_TEXT_BYTES];
        service_put(word, bytes.at + 12, 4);
        snprintf(text, sizeof text, "%.4s", word);
        service_say(message, "NTP", true, text);
    } else if (mode == NTP_SERVER) {
        bool refused = leap == UNSYNCHRONIZED || stratum >= STRATUM_NONE;
        snprintf(text, sizeof text, "stratum %u%s", stratum, refused ? ", unsynchronized" : "");
        service_say(message, "NTP", refused, text);
    }
}

#define IKE_BYTES 28u

enum ike_version { IKE_1 = 0x10, IKE_2 = 0x20 };
enum ike_exchange {
    MAIN_MODE = 2,
    AGGRESSIVE_MODE = 4,
    INFORMATIONAL_1 = 5,
    SA_INIT = 34,
    AUTH = 35
};
enum ike_payload { NOTIFY_1 = 11, SA = 33, NOTIFY = 41, FRAGMENT = 53 };
enum ike_notify { NO_PROPOSAL = 14, INVALID_KE = 17, AUTH_FAILED = 24, COOKIE = 16390 };

static const char *notify_name(uint16_t notify) {
    switch (notify) {
    case 1: return "UNSUPPORTED_CRITICAL_PAYLOAD";
    case 5: return "INVALID_MAJOR_VERSION";
    case 7: return "INVALID_SYNTAX";
    case NO_PROPOSAL: return "NO_PROPOSAL_CHOSEN";
    case INVALID_KE: return "INVALID_KE_PAYLOAD";
    case 18: return "INVALID_ID_INFORMATION";
    case AUTH_FAILED: return "AUTHENTICATION_FAILED";
    case COOKIE: return "COOKIE";
    default: return "another notification";
    }
}

/* Of IKE 2 a notification has protocol, size of the SPI and type, of IKE 1 a DOI before. */
static void notified(struct service_message *message, struct service_bytes bytes, bool second) {
    uint32_t at = IKE_BYTES + (second ? 6 : 10);
    if (bytes.length < at + 2)
        return;
    uint16_t notify = load_be16(bytes.at + at);
    bool usual = second && (notify == INVALID_KE || notify == COOKIE);
    service_say(message, "IKE negotiation", !usual, notify_name(notify));
}

static void ike_answer(struct service_message *message, struct service_bytes bytes, bool second) {
    uint8_t next = bytes.at[16], kind = bytes.at[18];
    if (next == (second ? NOTIFY : NOTIFY_1))
        notified(message, bytes, second);
    else if (kind == SA_INIT || kind == AUTH || kind == MAIN_MODE || kind == AGGRESSIVE_MODE)
        service_say(message, kind == AUTH ? "IKE login" : "IKE negotiation", false, "accepted");
}

/* A message in fragments (RFC 7383 section 2.5) is asked for by its first one. Returns whether this
 * is a later one. */
static bool is_later_fragment(struct service_message *message, struct service_bytes bytes) {
    if (bytes.at[16] != FRAGMENT || bytes.length < IKE_BYTES + 8)
        return false;
    uint16_t number = load_be16(bytes.at + IKE_BYTES + 4),
             all = load_be16(bytes.at + IKE_BYTES + 6);
    if (number == 1 && all > 1)
        snprintf(message->name, sizeof message->name, "%u fragments", all);
    return number != 1;
}

/*   0 two SPIs of 8 bytes;  16 next payload;  17 version;  18 exchange;  19 flags;  28 payloads,
 * whose first 4 bytes are next payload, flags and length;  32 number of a fragment;  34 all */
void ike_read(struct service_message *message, struct service_bytes bytes) {
    static const uint8_t none[8];
    if (bytes.length > 4 && !load_be32(bytes.at)) /* not ESP (RFC 3948) */
        bytes = (struct service_bytes){bytes.at + 4, bytes.length - 4};
    if (bytes.length < IKE_BYTES + 4 || (bytes.at[17] != IKE_1 && bytes.at[17] != IKE_2))
        return;
    bool second = bytes.at[17] == IKE_2, first = !memcmp(bytes.at + 8, none, sizeof none);
    uint8_t kind = bytes.at[18];
    bool answers = second ? bytes.at[19] & 0x20 : !first;
    if (answers) {
        ike_answer(message, bytes, second);
    } else if (first || (second && kind == AUTH && !is_later_fragment(message, bytes))) {
        message->step = STEP_ASKS;
        message->type = kind == AUTH ? "IKE login" : "IKE negotiation";
    }
}

enum tftp_code { READ = 1, WRITE = 2, BLOCK = 3, REFUSAL = 5 };

void tftp_read(struct service_message *message, struct service_bytes bytes) {
    uint16_t code = load_be16(bytes.at);
    const uint8_t *text = bytes.at + (code == REFUSAL ? 4 : 2);
    uint32_t left = bytes.length - (code == REFUSAL ? 4 : 2);
    const uint8_t *end = memchr(text, 0, left);
    if ((code == READ || code == WRITE) && end && end != text) {
        message->step = STEP_ASKS;
        message->type = code == READ ? "TFTP read" : "TFTP write";
        service_put(message->name, text, (uint32_t)(end - text));
    } else if (code == BLOCK) {
        service_say(message, "TFTP read", false, "block");
    } else if (code == REFUSAL && end) {
        char said[SERVICE_TEXT_BYTES], number[SERVICE_TEXT_BYTES];
        service_put(said, text, (uint32_t)(end - text));
        snprintf(number, sizeof number, "%u %.50s", bytes.at[3], said);
        service_say(message, "TFTP read", true, number);
    }
}

/*   0 id;  4 0 of a call;  8 version of RPC;  12 program;  16 version;  20 procedure;  24 two lists
 * of bytes: credentials and verifier;  then the program that is wanted 4 1 of a reply;  8 0;  12 a
 * list: verifier;  20 0;  24 the port, 0 if nobody registered it */
#define PORTMAPPER 100000u
#define GET_PORT   3u

static const char *program_name(uint32_t program) {
    switch (program) {
    case 100003: return "NFS";
    case 100004: return "NIS";
    case 100005: return "mountd";
    case 100021: return "NFS locks";
    case 100024: return "status monitor";
    case 100227: return "NFS ACLs";
    default: return NULL;
    }
}

void portmap_read(struct service_message *message, struct service_bytes bytes) {
    if (bytes.length < 28)
        return;
    uint32_t reply = load_be32(bytes.at + 4);
    if (reply == 1 && !load_be32(bytes.at + 8) && !load_be32(bytes.at + 16) && bytes.length == 28) {
        bool none = !load_be32(bytes.at + 24);
        service_say(message, "RPC program", none, none ? "port 0" : "registered");
    } else if (!reply && load_be32(bytes.at + 12) == PORTMAPPER &&
               load_be32(bytes.at + 20) == GET_PORT && bytes.length >= 40) {
        uint64_t at = 32u + (uint64_t)load_be32(bytes.at + 28);
        if (at + 12 > bytes.length)
            return;
        at += 8 + (uint64_t)load_be32(bytes.at + at + 4);
        if (at + 4 > bytes.length)
            return;
        const char *name = program_name(load_be32(bytes.at + at));
        message->step = STEP_ASKS;
        message->type = "RPC program";
        if (name)
            service_put(message->name, (const uint8_t *)name, (uint32_t)strlen(name));
        else
            snprintf(message->name, sizeof message->name, "%u", load_be32(bytes.at + at));
    }
}
