/* SPDX-License-Identifier: Apache-2.0 */
/* Kerberos (RFC 4120): requests for tickets, and errors in reply.
 *
 *   6a AS-REQ, 6c TGS-REQ { 30 { a3 padata, a4 body { 30 { a1 cname, a3 sname } } } }
 *   6b AS-REP, 6d TGS-REP;  7e KRB-ERROR { 30 { a6 error code } }
 *   a name: 30 { a0 type, a1 { 30 { 1b part, 1b part } } } */
#include <stdio.h>

#include "base/bytes.h"
#include "service/readers.h"

#define SEQUENCE 0x30

enum tag { AS_REQ = 0x6a, AS_REP = 0x6b, TGS_REQ = 0x6c, TGS_REP = 0x6d, KRB_ERROR = 0x7e };
enum error {
    PREAUTH_REQUIRED = 25,
    RESPONSE_TOO_BIG = 52,
    WRONG_REALM = 68,
    MORE_PREAUTH_DATA = 91
}; /* the client asks again as it should, or another server */

static const struct {
    uint8_t code;
    const char *name;
} errors[] = {{6, "KDC_ERR_C_PRINCIPAL_UNKNOWN"},
              {7, "KDC_ERR_S_PRINCIPAL_UNKNOWN"},
              {12, "KDC_ERR_POLICY"},
              {14, "KDC_ERR_ETYPE_NOSUPP"},
              {18, "KDC_ERR_CLIENT_REVOKED"},
              {23, "KDC_ERR_KEY_EXPIRED"},
              {24, "KDC_ERR_PREAUTH_FAILED"},
              {25, "KDC_ERR_PREAUTH_REQUIRED"},
              {31, "KRB_AP_ERR_BAD_INTEGRITY"},
              {32, "KRB_AP_ERR_TKT_EXPIRED"},
              {37, "KRB_AP_ERR_SKEW"},
              {41, "KRB_AP_ERR_MODIFIED"},
              {52, "KRB_ERR_RESPONSE_TOO_BIG"},
              {60, "KRB_ERR_GENERIC"},
              {WRONG_REALM, "KDC_ERR_WRONG_REALM"},
              {MORE_PREAUTH_DATA, "KDC_ERR_MORE_PREAUTH_DATA_REQUIRED"}};

/* Puts `HTTP/web.example` of a principal name. */
static void put_principal(char *text, struct service_bytes name) {
    struct service_bytes parts, part;
    uint8_t tag;
    if (!ber_find(name, SEQUENCE, &name) || !ber_find(name, 0xa1, &parts) ||
        !ber_find(parts, SEQUENCE, &parts))
        return;
    size_t used = 0;
    while (ber_next(&parts, &tag, &part) && used + 1 < SERVICE_TEXT_BYTES) {
        if (used)
            text[used++] = '/';
        for (uint32_t i = 0; i < part.length && used + 1 < SERVICE_TEXT_BYTES; i++)
            text[used++] = part.at[i] >= ' ' && part.at[i] < 127 ? (char)part.at[i] : '?';
    }
    text[used] = '\0';
}

static void read_request(struct service_message *message, struct service_bytes bytes, bool login) {
    struct service_bytes body, name;
    message->step = STEP_ASKS;
    message->type = login ? "Kerberos login" : "Kerberos ticket";
    if (ber_find(bytes, SEQUENCE, &body) && ber_find(body, 0xa4, &body) &&
        ber_find(body, SEQUENCE, &body) && ber_find(body, login ? 0xa1 : 0xa3, &name))
        put_principal(message->name, name);
}

static void read_error(struct service_message *message, struct service_bytes bytes) {
    struct service_bytes code;
    char text[SERVICE_TEXT_BYTES] = "";
    if (!ber_find(bytes, SEQUENCE, &bytes) || !ber_find(bytes, 0xa6, &code) ||
        !ber_find(code, 2, &code) || code.length != 1)
        return;
    snprintf(text, sizeof text, "error %u", code.at[0]);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code.at[0])
            snprintf(text, sizeof text, "%s", errors[i].name);
    bool usual = code.at[0] == PREAUTH_REQUIRED || code.at[0] == RESPONSE_TOO_BIG ||
                 code.at[0] == WRONG_REALM || code.at[0] == MORE_PREAUTH_DATA;
    service_say(message, "Kerberos login", !usual, text);
}

void kerberos_read(struct service_message *message, struct service_bytes bytes) {
    struct service_bytes contents;
    uint8_t tag;
    if (!ber_next(&bytes, &tag, &contents))
        return;
    switch (tag) {
    case AS_REQ:
    case TGS_REQ: read_request(message, contents, tag == AS_REQ); break;
    case AS_REP:
    case TGS_REP: service_say(message, "Kerberos login", false, "ticket"); break;
    case KRB_ERROR: read_error(message, contents); break;
    default: break;
    }
}

/* Over TCP, four bytes of length precede a message. */
void kerberos_stream_read(struct service_message *message, struct service_bytes bytes) {
    if (bytes.length > 4 && load_be32(bytes.at) < 1u << 20)
        kerberos_read(message, (struct service_bytes){bytes.at + 4, bytes.length - 4});
}
