/* SPDX-License-Identifier: Apache-2.0 */
/* Logins at MySQL and PostgreSQL, and what Redis and MongoDB say in place of an answer. */
#define _GNU_SOURCE /* memmem() */
#include <stdio.h>

#include "base/bytes.h"
#include "service/readers.h"

#define MYSQL_USER_AT 36u /* of the packet: behind flags, sizes, character set and filler */
#define PROTOCOL_3    0x00030000u

/* Packets have 3 bytes of length and a number, 0 of the greeting, 1 of the login. */
static void mysql_error(struct service_message *message, struct service_bytes bytes) {
    uint32_t code = load_le16(bytes.at + 5), at = 7;
    if (bytes.length > at + 6 && bytes.at[at] == '#')
        at += 6;
    char text[SERVICE_TEXT_BYTES], said[SERVICE_TEXT_BYTES];
    service_put(said, bytes.at + at, bytes.length - at);
    service_number(text, code, said);
    service_say(message, "MySQL login", true, text);
    message->unasked = !bytes.at[3];
}

void mysql_read(struct service_message *message, struct service_bytes bytes) {
    if (bytes.length < 7 || bytes.at[2])
        return;
    uint8_t number = bytes.at[3], first = bytes.at[4];
    if (number == 1 && bytes.length > MYSQL_USER_AT && bytes.at[5] & 2 /* protocol of 4.1 */) {
        const uint8_t *user = bytes.at + MYSQL_USER_AT;
        const uint8_t *end = memchr(user, 0, bytes.length - MYSQL_USER_AT);
        if (first == 0xff || !end)
            return;
        message->step = STEP_ASKS;
        message->type = "MySQL login";
        service_put(message->name, user, (uint32_t)(end - user));
    } else if (first == 0xff && number != 1) {
        mysql_error(message, bytes);
    } else if (number > 1 && !first) {
        service_say(message, "MySQL login", false, "OK");
    }
}

/* A request to start: length, version, pairs of strings that end with 0. */
static void start_read(struct service_message *message, struct service_bytes bytes) {
    message->step = STEP_ASKS;
    message->type = "PostgreSQL login";
    uint32_t at = 8;
    bool is_user = false;
    while (at < bytes.length) {
        const uint8_t *end = memchr(bytes.at + at, 0, bytes.length - at);
        if (!end || end == bytes.at + at)
            return;
        uint32_t length = (uint32_t)(end - bytes.at) - at;
        if (is_user) {
            service_put(message->name, bytes.at + at, length);
            return;
        }
        is_user = length == 4 && !memcmp(bytes.at + at, "user", 4);
        at += length + 1;
    }
}

/* An error: fields of a letter and a string; S or V is the severity, C the code, M the text. */
static void error_read(struct service_message *message, struct service_bytes bytes) {
    char code[SERVICE_TEXT_BYTES] = "", text[SERVICE_TEXT_BYTES] = "", both[SERVICE_TEXT_BYTES];
    bool fatal = false;
    uint32_t at = 5;
    while (at < bytes.length && bytes.at[at]) {
        uint8_t letter = bytes.at[at++];
        const uint8_t *end = memchr(bytes.at + at, 0, bytes.length - at);
        uint32_t length = end ? (uint32_t)(end - bytes.at) - at : bytes.length - at;
        if (letter == 'C')
            service_put(code, bytes.at + at, length);
        else if (letter == 'M')
            service_put(text, bytes.at + at, length);
        else if (letter == 'S' || letter == 'V')
            fatal |= length == 5 && !memcmp(bytes.at + at, "FATAL", 5);
        at += length + 1;
    }
    int used = snprintf(both, sizeof both, "%.8s ", code);
    snprintf(both + used, sizeof both - (size_t)used, "%.*s", (int)sizeof both - used - 1, text);
    if (fatal)
        service_say(message, "PostgreSQL login", true, both);
}

/* Steps of a login, the last of which says OK. The server sends it together with what follows,
 * which may be an error: no such database, no connection left. */
static void login_read(struct service_message *message, struct service_bytes bytes) {
    bool granted = false;
    while (bytes.length >= 9 && bytes.at[0] == 'R') {
        uint32_t size = load_be32(bytes.at + 1);
        granted = size == 8 && !load_be32(bytes.at + 5);
        if (size < 8 || size >= bytes.length)
            break;
        bytes.at += size + 1;
        bytes.length -= size + 1;
    }
    if (granted)
        service_say(message, "PostgreSQL login", false, "OK");
    if (bytes.length >= 9 && bytes.at[0] == 'E')
        error_read(message, bytes);
}

void postgresql_read(struct service_message *message, struct service_bytes bytes) {
    if (bytes.length < 9)
        return;
    if (load_be32(bytes.at + 4) == PROTOCOL_3 && load_be32(bytes.at) <= 10000)
        start_read(message, bytes);
    else
        login_read(message, bytes);
}

/* Errors that concern each command of a client, not the words of one. */
void redis_read(struct service_message *message, struct service_bytes bytes) {
    static const char *const words[] = {"-NOAUTH",  "-WRONGPASS", "-DENIED",
                                        "-LOADING", "-MISCONF",   "-ERR max number of clients"};
    char text[SERVICE_TEXT_BYTES];
    const uint8_t *end = memchr(bytes.at, '\r', bytes.length);
    for (size_t i = 0; end && i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if (bytes.length < length || memcmp(bytes.at, words[i], length))
            continue;
        service_put(text, bytes.at + 1, (uint32_t)(end - bytes.at) - 1);
        service_say(message, "Redis command", true, text);
        message->unasked = true;
    }
}

/* A message (opcode 2013) that refuses the login, a command, or to write: the name of its code. */
void mongodb_read(struct service_message *message, struct service_bytes bytes) {
    static const char *const names[] = {"AuthenticationFailed", "Unauthorized",
                                        "NotWritablePrimary", "NotPrimaryNoSecondaryOk",
                                        "InterruptedAtShutdown"};
    static const uint8_t mark[] = "\2codeName";
    if (message->from_client || bytes.length < 21 || load_le32(bytes.at + 12) != 2013)
        return;
    const uint8_t *found = memmem(bytes.at, bytes.length, mark, sizeof mark);
    size_t at = found ? (size_t)(found - bytes.at) + sizeof mark + 4 : bytes.length;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]) + 1;
        if (at + length > bytes.length || memcmp(bytes.at + at, names[i], length) != 0)
            continue;
        service_say(message, "MongoDB command", true, names[i]);
        message->unasked = true;
    }
}
