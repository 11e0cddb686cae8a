/* SPDX-License-Identifier: Apache-2.0 */
/* Logins: LDAP (RFC 4511), SMB 2 and 3 (MS-SMB2), RDP (MS-RDPBCGR), MQTT. */
#define _GNU_SOURCE /* memmem */
#include <stdio.h>

#include "base/bytes.h"
#include "service/readers.h"

#define SEQUENCE     0x30
#define BIND_REQUEST 0x60
#define BIND_ANSWER  0x61
#define IN_PROGRESS  14

struct named {
    uint32_t code;
    const char *name;
};

/* Returns the name of a code, or else writes its number. */
static const char *name_of(const struct named *names, size_t count, uint32_t code, char *text,
                           const char *form) {
    for (size_t i = 0; i < count; i++)
        if (names[i].code == code)
            return names[i].name;
    snprintf(text, SERVICE_TEXT_BYTES, form, code);
    return text;
}
#define NAME_OF(names, code, text, form)                                                           \
    name_of(names, sizeof(names) / sizeof *(names), code, text, form)

static const struct named ldap_results[] = {{0, "success"},
                                            {1, "operationsError"},
                                            {2, "protocolError"},
                                            {7, "authMethodNotSupported"},
                                            {8, "strongerAuthRequired"},
                                            {13, "confidentialityRequired"},
                                            {14, "saslBindInProgress"},
                                            {32, "noSuchObject"},
                                            {34, "invalidDNSyntax"},
                                            {48, "inappropriateAuthentication"},
                                            {49, "invalidCredentials"},
                                            {50, "insufficientAccessRights"},
                                            {51, "busy"},
                                            {52, "unavailable"},
                                            {53, "unwillingToPerform"},
                                            {80, "other"}};

void ldap_read(struct service_message *message, struct service_bytes bytes) {
    struct service_bytes envelope, contents, field;
    uint8_t tag;
    char text[SERVICE_TEXT_BYTES];
    if (!ber_next(&bytes, &tag, &envelope) || tag != SEQUENCE ||
        !ber_next(&envelope, &tag, &contents) || tag != 2 || !ber_next(&envelope, &tag, &contents))
        return;
    if (tag == BIND_REQUEST) {
        message->step = STEP_ASKS;
        message->type = "LDAP bind";
        if (ber_find(contents, 4, &field))
            service_put(message->name, field.at, field.length);
    } else if (tag == BIND_ANSWER && ber_find(contents, 10, &field) && field.length == 1) {
        bool fine = !field.at[0] || field.at[0] == IN_PROGRESS;
        service_say(message, "LDAP bind", !fine,
                    NAME_OF(ldap_results, field.at[0], text, "result %u"));
    }
}

#define SMB_AT       4u
#define SMB_BYTES    (SMB_AT + 64u)
#define FROM_SERVER  1u
#define MORE_TO_COME 0xc0000016u

enum command { NEGOTIATE = 0, SESSION_SETUP = 1, TREE_CONNECT = 3 };

static const struct named statuses[] = {{0, "STATUS_SUCCESS"},
                                        {0xc000000d, "STATUS_INVALID_PARAMETER"},
                                        {MORE_TO_COME, "STATUS_MORE_PROCESSING_REQUIRED"},
                                        {0xc0000022, "STATUS_ACCESS_DENIED"},
                                        {0xc000005e, "STATUS_NO_LOGON_SERVERS"},
                                        {0xc0000064, "STATUS_NO_SUCH_USER"},
                                        {0xc000006a, "STATUS_WRONG_PASSWORD"},
                                        {0xc000006d, "STATUS_LOGON_FAILURE"},
                                        {0xc000006e, "STATUS_ACCOUNT_RESTRICTION"},
                                        {0xc000006f, "STATUS_INVALID_LOGON_HOURS"},
                                        {0xc0000070, "STATUS_INVALID_WORKSTATION"},
                                        {0xc0000071, "STATUS_PASSWORD_EXPIRED"},
                                        {0xc0000072, "STATUS_ACCOUNT_DISABLED"},
                                        {0xc00000bb, "STATUS_NOT_SUPPORTED"},
                                        {0xc00000cc, "STATUS_BAD_NETWORK_NAME"},
                                        {0xc00000d0, "STATUS_REQUEST_NOT_ACCEPTED"},
                                        {0xc0000133, "STATUS_TIME_DIFFERENCE_AT_DC"},
                                        {0xc000015b, "STATUS_LOGON_TYPE_NOT_GRANTED"},
                                        {0xc000018d, "STATUS_TRUSTED_RELATIONSHIP_FAILURE"},
                                        {0xc0000193, "STATUS_ACCOUNT_EXPIRED"},
                                        {0xc0000203, "STATUS_USER_SESSION_DELETED"},
                                        {0xc0000224, "STATUS_PASSWORD_MUST_CHANGE"},
                                        {0xc0000234, "STATUS_ACCOUNT_LOCKED_OUT"}};

static const char *smb_type(uint16_t command) {
    switch (command) {
    case NEGOTIATE: return "SMB negotiation";
    case SESSION_SETUP: return "SMB login";
    case TREE_CONNECT: return "SMB share";
    default: return NULL;
    }
}

/* Returns a field of an NTLM message: 2 bytes of length, 2 of room, 4 of offset. */
static struct service_bytes ntlm_field(struct service_bytes ntlm, uint32_t at) {
    uint32_t length = load_le16(ntlm.at + at), offset = load_le32(ntlm.at + at + 4);
    bool inside = offset <= ntlm.length && length <= ntlm.length - offset;
    return (struct service_bytes){ntlm.at + (inside ? offset : 0), inside ? length : 0};
}

/* Puts `DOMAIN\user` of the last message of NTLM. */
static void put_user(char *name, struct service_bytes bytes) {
    static const uint8_t mark[] = "NTLMSSP\0\3\0\0";
    const uint8_t *found = memmem(bytes.at, bytes.length, mark, sizeof mark);
    if (!found)
        return;
    struct service_bytes ntlm = {found, bytes.length - (uint32_t)(found - bytes.at)};
    if (ntlm.length < 52)
        return;
    struct service_bytes domain = ntlm_field(ntlm, 28), user = ntlm_field(ntlm, 36);
    service_add_wide(name, domain.at, domain.length);
    if (domain.length && strlen(name) + 1 < SERVICE_TEXT_BYTES)
        strcat(name, "\\");
    service_add_wide(name, user.at, user.length);
}

static void put_share(char *name, struct service_bytes bytes) {
    if (bytes.length < SMB_BYTES + 8)
        return;
    uint32_t offset = SMB_AT + load_le16(bytes.at + SMB_BYTES + 4),
             length = load_le16(bytes.at + SMB_BYTES + 6);
    if (offset <= bytes.length && length <= bytes.length - offset)
        service_add_wide(name, bytes.at + offset, length);
}

/* A negotiation that offers no later version than 1: `SMB 2.002` or `SMB 2.???` is among others. */
static void smb_1_read(struct service_message *message, struct service_bytes bytes) {
    static const uint8_t mark[5] = {0xff, 'S', 'M', 'B', 0x72},
                         later[6] = {'S', 'M', 'B', ' ', '2', '.'};
    if (bytes.length < SMB_AT + 33 || memcmp(bytes.at + SMB_AT, mark, sizeof mark))
        return;
    if (!message->from_client) {
        service_say(message, "SMB 1 negotiation", false, "accepted");
    } else if (!memmem(bytes.at, bytes.length, later, sizeof later)) {
        message->step = STEP_ASKS;
        message->type = "SMB 1 negotiation";
    }
}

void smb_read(struct service_message *message, struct service_bytes bytes) {
    static const uint8_t mark[4] = {0xfe, 'S', 'M', 'B'};
    char text[SERVICE_TEXT_BYTES];
    smb_1_read(message, bytes);
    if (bytes.length < SMB_BYTES || memcmp(bytes.at + SMB_AT, mark, sizeof mark))
        return;
    uint32_t status = load_le32(bytes.at + SMB_AT + 8);
    uint16_t command = load_le16(bytes.at + SMB_AT + 12);
    const char *type = smb_type(command);
    if (!type)
        return;
    if (load_le32(bytes.at + SMB_AT + 16) & FROM_SERVER) {
        service_say(message, type, status && status != MORE_TO_COME,
                    NAME_OF(statuses, status, text, "0x%08x"));
        return;
    }
    message->step = STEP_ASKS;
    message->type = type;
    if (command == SESSION_SETUP)
        put_user(message->name, bytes);
    else if (command == TREE_CONNECT)
        put_share(message->name, bytes);
}

static const struct named rdp_failures[] = {
    {1, "TLS required"},           {2, "TLS not allowed"},
    {3, "no certificate"},         {4, "inconsistent flags"},
    {5, "NLA (CredSSP) required"}, {6, "TLS with user authentication required"}};

/* X.224 in TPKT: e0 asks, d0 confirms; of the latter, 2 is a choice of security, 3 a failure. */
void rdp_read(struct service_message *message, struct service_bytes bytes) {
    char text[SERVICE_TEXT_BYTES];
    if (bytes.length < 7 || bytes.at[0] != 3 || bytes.at[1])
        return;
    if (bytes.at[5] == 0xe0) {
        message->step = STEP_ASKS;
        message->type = "RDP connection";
    } else if (bytes.at[5] == 0xd0) {
        bool failed = bytes.length >= 19 && bytes.at[11] == 3;
        uint32_t code = failed ? load_le32(bytes.at + 15) : 0;
        service_say(message, "RDP connection", failed,
                    failed ? NAME_OF(rdp_failures, code, text, "failure %u") : "accepted");
    }
}

static const struct named mqtt_codes[] = {{0, "accepted"},
                                          {1, "unacceptable protocol version"},
                                          {2, "identifier rejected"},
                                          {3, "server unavailable"},
                                          {4, "bad user name or password"},
                                          {5, "not authorized"},
                                          {0x84, "unsupported protocol version"},
                                          {0x85, "client identifier not valid"},
                                          {0x86, "bad user name or password"},
                                          {0x87, "not authorized"},
                                          {0x88, "server unavailable"},
                                          {0x89, "server busy"},
                                          {0x8a, "banned"},
                                          {0x97, "quota exceeded"}};

void mqtt_read(struct service_message *message, struct service_bytes bytes) {
    char text[SERVICE_TEXT_BYTES];
    uint32_t at = 1;
    while (at < bytes.length && at < 5 && bytes.at[at] & 0x80)
        at++;
    at++;
    if (bytes.at[0] == 0x10 && bytes.length >= at + 12 && load_be16(bytes.at + at) == 4 &&
        !memcmp(bytes.at + at + 2, "MQTT", 4)) {
        message->step = STEP_ASKS;
        message->type = "MQTT connection";
        uint32_t named = at + 10, length = load_be16(bytes.at + named);
        if (bytes.at[at + 6] < 5 && length <= bytes.length - named - 2)
            service_put(message->name, bytes.at + named + 2, length);
    } else if (bytes.at[0] == 0x20 && bytes.length >= at + 2 && bytes.at[at] < 2) {
        uint32_t code = bytes.at[at + 1];
        service_say(message, "MQTT connection", code != 0,
                    NAME_OF(mqtt_codes, code, text, "reason %u"));
    }
}
