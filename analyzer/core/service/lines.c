/* SPDX-License-Identifier: Apache-2.0 */
/* Services whose commands and replies are lines: mail (RFC 5321, 1939) and FTP (RFC 959). Of a
 * command, its first words are kept; of one with a password, only the first. */
#include <stdlib.h>
#include <strings.h>

#include "service/readers.h"

#define REFUSED_FROM 400

/* Commands that are kept with their argument, and those of which only the word is. */
static const char *const with_argument[] = {"MAIL", "RCPT", "USER", "RETR", "STOR",
                                            "APPE", "CWD",  "LIST", "MLSD"};
static const char *const words[] = {
    "AUTH", "PASS", "DATA", "EHLO", "HELO", "STARTTLS", "APOP", "RSET", "NOOP", "QUIT",
    "VRFY", "EXPN", "BDAT", "HELP", "ACCT", "CDUP",     "PORT", "PASV", "EPSV", "EPRT",
    "TYPE", "STRU", "MODE", "STOU", "REST", "RNFR",     "RNTO", "ABOR", "DELE", "RMD",
    "MKD",  "PWD",  "NLST", "MLST", "SITE", "SYST",     "STAT", "FEAT", "OPTS", "PBSZ",
    "PROT", "SIZE", "MDTM", "CLNT", "TOP",  "UIDL",     "CAPA", "STLS"};

static bool begins_with(struct service_bytes bytes, const char *word) {
    size_t length = strlen(word);
    if (bytes.length <= length || strncasecmp((const char *)bytes.at, word, length))
        return false;
    return bytes.at[length] == ' ' || bytes.at[length] == '\r' || bytes.at[length] == '\n';
}

static uint32_t line_length(struct service_bytes bytes) {
    for (uint32_t i = 0; i < bytes.length; i++)
        if (bytes.at[i] == '\r' || bytes.at[i] == '\n')
            return i;
    return bytes.length;
}

static void command_read(struct service_message *message, struct service_bytes bytes,
                         const char *type) {
    for (size_t i = 0; i < sizeof with_argument / sizeof *with_argument; i++)
        if (begins_with(bytes, with_argument[i])) {
            message->step = STEP_ASKS;
            service_put(message->name, bytes.at, line_length(bytes));
        }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (begins_with(bytes, words[i])) {
            message->step = STEP_ASKS;
            service_put(message->name, (const uint8_t *)words[i], (uint32_t)strlen(words[i]));
        }
    message->type = type;
}

/* Returns whether the bytes begin with a reply: three digits, and a space or a hyphen. */
static bool is_reply(struct service_bytes bytes) {
    for (uint32_t i = 0; i < 3; i++)
        if (bytes.at[i] < '0' || bytes.at[i] > '9')
            return false;
    return bytes.at[3] == ' ' || bytes.at[3] == '-';
}

static void lines_read(struct service_message *message, struct service_bytes bytes,
                       const char *type) {
    char text[SERVICE_TEXT_BYTES];
    if (!is_reply(bytes)) {
        command_read(message, bytes, type);
        return;
    }
    service_put(text, bytes.at, line_length(bytes));
    bool refused = atoi(text) >= REFUSED_FROM;
    service_say(message, type, refused, text);
    message->unasked = refused;
}

void smtp_read(struct service_message *message, struct service_bytes bytes) {
    lines_read(message, bytes, "SMTP command");
}

void ftp_read(struct service_message *message, struct service_bytes bytes) {
    lines_read(message, bytes, "FTP command");
}

void pop3_read(struct service_message *message, struct service_bytes bytes) {
    char text[SERVICE_TEXT_BYTES];
    bool refused = begins_with(bytes, "-ERR");
    if (!refused && !begins_with(bytes, "+OK")) {
        command_read(message, bytes, "POP3 command");
        return;
    }
    service_put(text, bytes.at, line_length(bytes));
    service_say(message, "POP3 command", refused, text);
    message->unasked = refused;
}

/* Returns the line behind its first word, and moves the text behind the line. */
static struct service_bytes tagged_line(struct service_bytes *text) {
    uint32_t length = line_length(*text), next = length;
    struct service_bytes line = {text->at, length};
    while (next < text->length && (text->at[next] == '\r' || text->at[next] == '\n'))
        next++;
    *text = (struct service_bytes){text->at + next, text->length - next};
    const uint8_t *space = memchr(line.at, ' ', line.length);
    uint32_t word = space ? (uint32_t)(space - line.at) + 1 : line.length;
    return (struct service_bytes){line.at + word, line.length - word};
}

/* Logins of IMAP (RFC 9051): a tag and a command; lines of an answer without this tag begin with *.
 */
void imap_read(struct service_message *message, struct service_bytes bytes) {
    char text[SERVICE_TEXT_BYTES];
    while (!message->from_client && bytes.length && *bytes.at == '*')
        tagged_line(&bytes);
    struct service_bytes line = tagged_line(&bytes);
    if (message->from_client && (begins_with(line, "LOGIN") || begins_with(line, "AUTHENTICATE"))) {
        struct service_bytes words = line;
        struct service_bytes user = tagged_line(&words);
        const uint8_t *end = memchr(user.at, ' ', user.length);
        bool named = begins_with(line, "LOGIN") && end;
        bool quoted = named && *user.at == '"' && end - user.at > 2;
        message->step = STEP_ASKS;
        message->type = "IMAP login";
        if (named)
            service_put(message->name, user.at + quoted, (uint32_t)(end - user.at) - 2u * quoted);
    } else if (!message->from_client) {
        bool refused = begins_with(line, "NO") || begins_with(line, "BAD");
        service_put(text, line.at, line.length);
        if (refused || begins_with(line, "OK"))
            service_say(message, "IMAP login", refused, text);
    }
}
