/* SPDX-License-Identifier: Apache-2.0 */
#include "find/when.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"

#define SECONDS_MOST  INT64_C(9000000000) /* of 2255 */
#define MINUTE_S      60
#define OFFSET_DIGITS 2

/* Reads a fraction of a second, if there is one. Returns what follows. */
static const char *take_fraction(const char *text, int64_t *ns) {
    int64_t unit = NS_PER_S / 10;
    if (*text != '.' && *text != ',')
        return text;
    for (text++; isdigit((unsigned char)*text); text++, unit /= 10)
        *ns += (*text - '0') * unit;
    return text;
}

static bool parse_epoch(const char *text, int64_t *time_ns) {
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    int64_t seconds = strtoll(text, &end, 10), ns = 0;
    const char *last = take_fraction(end, &ns);
    if (*last || seconds > SECONDS_MOST)
        return false;
    *time_ns = seconds * NS_PER_S + ns;
    return true;
}

/* Reads Z, +01:00 or +0100. Returns false if something else is there. */
static bool take_offset(const char *text, int64_t *seconds) {
    unsigned parts[2] = {0};
    if (!*text || !strcmp(text, "Z") || !strcmp(text, "z"))
        return true;
    int sign = *text == '+' ? 1 : *text == '-' ? -1 : 0;
    text++;
    for (int i = 0; i < 2 && sign; i++) {
        for (int digit = 0; digit < OFFSET_DIGITS; digit++, text++) {
            if (!isdigit((unsigned char)*text))
                return false;
            parts[i] = parts[i] * 10 + (unsigned)(*text - '0');
        }
        text += !i && *text == ':';
    }
    *seconds = sign * (int64_t)(parts[0] * MINUTE_S + parts[1]) * MINUTE_S;
    return sign && !*text && parts[1] < MINUTE_S;
}

bool when_parse(const char *text, int64_t *time_ns) {
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
                                        "%Y-%m-%d %H:%M", "%Y-%m-%d"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm parts = {0};
        const char *left = strptime(text, forms[i], &parts);
        int64_t ns = 0, offset = 0;
        if (!left || !isdigit((unsigned char)left[-1]))
            continue;
        left = take_fraction(left, &ns);
        if (!take_offset(left, &offset))
            continue;
        int day = parts.tm_mday; /* timegm() makes March 2 of February 30 */
        int64_t seconds = timegm(&parts) - offset;
        if (parts.tm_mday != day || seconds > SECONDS_MOST || seconds < -SECONDS_MOST)
            return false;
        *time_ns = seconds * NS_PER_S + ns;
        return true;
    }
    return parse_epoch(text, time_ns);
}
