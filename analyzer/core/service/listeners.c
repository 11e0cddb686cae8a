/* SPDX-License-Identifier: Apache-2.0 */
/* Logins at SQL Server (MS-TDS) and connections to Oracle (TNS). */
#define _GNU_SOURCE /* memmem() */
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "service/readers.h"

/*   0 type, status;  2 length;  4 process, packet, window;  8 tokens */
#define TDS_HEAD 8u

enum tds { TDS_RESPONSE = 4, TDS_LOGIN = 0x10 };
enum token {
    TOKEN_ERROR = 0xaa,
    TOKEN_FIRST_NOTE = 0xab,
    TOKEN_LOGGED_IN = 0xad,
    TOKEN_CHANGE = 0xe3
};

/* Errors of a login, not of a query. */
static bool concerns_login(uint32_t number) {
    static const uint16_t numbers[] = {4060,  4062,  4064,  17142, 17187, 17809,
                                       17830, 40501, 40532, 40613, 40615};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i] == number)
            return true;
    return number >= 18401 && number < 18500;
}

/*   1 length of it;  3 number;  7 state, class;  9 characters of the text, and the text */
static void tds_error(struct service_message *message, struct service_bytes token) {
    if (token.length < 11 || !concerns_login(load_le32(token.at + 3)))
        return;
    char said[SERVICE_TEXT_BYTES] = "", text[SERVICE_TEXT_BYTES];
    uint32_t left = token.length - 11, length = 2u * load_le16(token.at + 9);
    service_add_wide(said, token.at + 11, length < left ? length : left);
    service_number(text, load_le32(token.at + 3), said);
    service_say(message, "SQL Server login", true, text);
    message->unasked = true; /* logins are encrypted, as a rule */
}

static void tds_user(char *name, struct service_bytes bytes) {
    if (bytes.length < TDS_HEAD + 44)
        return;
    uint32_t offset = TDS_HEAD + load_le16(bytes.at + TDS_HEAD + 40),
             length = 2u * load_le16(bytes.at + TDS_HEAD + 42);
    if (offset <= bytes.length && length <= bytes.length - offset)
        service_add_wide(name, bytes.at + offset, length);
}

void tds_read(struct service_message *message, struct service_bytes bytes) {
    if (bytes.length < TDS_HEAD + 3 || bytes.at[1] > 1 || load_be16(bytes.at + 2) < TDS_HEAD)
        return;
    uint8_t token = bytes.at[TDS_HEAD];
    if (bytes.at[0] == TDS_LOGIN && message->from_client) {
        message->step = STEP_ASKS;
        message->type = "SQL Server login";
        tds_user(message->name, bytes);
    } else if (bytes.at[0] == TDS_RESPONSE && token == TOKEN_ERROR) {
        tds_error(message, (struct service_bytes){bytes.at + TDS_HEAD, bytes.length - TDS_HEAD});
    } else if (bytes.at[0] == TDS_RESPONSE &&
               (token == TOKEN_FIRST_NOTE || token == TOKEN_LOGGED_IN || token == TOKEN_CHANGE)) {
        service_say(message, "SQL Server login", false, "OK");
    }
}

/*   0 length;  2 checksum;  4 type;  12 of an answer, its text */
#define TNS_HEAD 8u

enum tns { TNS_CONNECT = 1, TNS_ACCEPT = 2, TNS_REFUSE = 4, TNS_REDIRECT = 5, TNS_RESEND = 11 };

/* Puts the text behind a mark, up to the closing bracket. Returns whether it is there. */
static bool put_between(char *text, struct service_bytes bytes, const char *mark) {
    const uint8_t *found = memmem(bytes.at, bytes.length, mark, strlen(mark));
    if (!found)
        return false;
    found += strlen(mark);
    uint32_t left = bytes.length - (uint32_t)(found - bytes.at);
    const uint8_t *end = memchr(found, ')', left);
    service_put(text, found, end ? (uint32_t)(end - found) : left);
    return true;
}

void tns_read(struct service_message *message, struct service_bytes bytes) {
    char code[SERVICE_TEXT_BYTES], text[SERVICE_TEXT_BYTES] = "refused";
    if (bytes.length < TNS_HEAD || bytes.at[5] > 0x20)
        return;
    if (bytes.at[4] == TNS_CONNECT && message->from_client) {
        message->step = STEP_ASKS;
        message->type = "Oracle connection";
        if (!put_between(message->name, bytes, "SERVICE_NAME="))
            put_between(message->name, bytes, "SID=");
    } else if (bytes.at[4] == TNS_REFUSE) {
        if (put_between(code, bytes, "(ERR="))
            snprintf(text, sizeof text, "ORA-%05u", (unsigned)strtoul(code, NULL, 10) % 100000u);
        service_say(message, "Oracle connection", true, text);
    } else if (bytes.at[4] == TNS_ACCEPT || bytes.at[4] == TNS_REDIRECT) {
        service_say(message, "Oracle connection", false, "OK");
    } else if (bytes.at[4] == TNS_RESEND) {
        service_say(message, "Oracle connection", false, "resend");
    }
}
