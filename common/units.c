/* SPDX-License-Identifier: Apache-2.0 */
/* Parses rates, sizes, times, counts and shares, as options and plans contain them. The grammar and
 * every accepted spelling are in tests/analyzer/unit_spellings.toml, which is run against each
 * program.
 *
 * A text is a decimal number (no sign, hexadecimal, "inf" or "nan", all of which strtold() would
 * accept), then a unit; blanks may surround both. A unit is a prefix (k is 1000, ki is 1024) and a
 * name. Upper and lower case are the same, except that a B in a rate must be a small one: a rate is
 * in bits, so 10MB/s is refused. */
#include "common/units.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TEXT_SIZE   64      /* with the final 0 */
#define VALUE_BOUND 0x1p63L /* values are also used as int64_t */
#define ROUNDING    1e-15L  /* relative: a decimal fraction is inexact in binary */
#define DIGITS      "0123456789"
#define BLANKS      " \t"

struct unit {
    const char *name;
    long double factor;
};

static const struct unit prefixes[] = {
    {"ki", 0x1p10L}, {"mi", 0x1p20L}, {"gi", 0x1p30L}, {"ti", 0x1p40L}, {"k", 1e3},
    {"m", 1e6},      {"g", 1e9},      {"t", 1e12},     {"", 1},         {NULL, 0},
};
static const struct unit binary_prefixes[] = {
    {"ki", 0x1p10L}, {"mi", 0x1p20L}, {"gi", 0x1p30L}, {"ti", 0x1p40L}, {"k", 0x1p10L},
    {"m", 0x1p20L},  {"g", 0x1p30L},  {"t", 0x1p40L},  {"", 1},         {NULL, 0},
};
static const struct unit no_prefix[] = {{"", 1}, {NULL, 0}};

static const struct unit rates[] = {
    {"", 1},    {"bit", 1}, {"bits", 1}, {"bit/s", 1}, {"bits/s", 1},
    {"bps", 1}, {"b", 1},   {"b/s", 1},  {NULL, 0},
};
static const struct unit packet_rates[] = {{"pps", 1}, {NULL, 0}};
static const struct unit sizes[] = {{"", 1}, {"b", 1}, {"byte", 1}, {"bytes", 1}, {NULL, 0}};
static const struct unit times[] = {
    {"", 1e9},          {"s", 1e9},         {"sec", 1e9}, {"ms", 1e6}, {"us", 1e3},
    {"\xc2\xb5s", 1e3}, {"\xce\xbcs", 1e3}, {"ns", 1},    {"m", 60e9}, {"min", 60e9},
    {"h", 3600e9},      {"d", 86400e9},     {NULL, 0},
};
static const struct unit shares[] = {{"", 1}, {"%", 0.01L}, {NULL, 0}};

static const struct {
    const struct unit *prefixes, *names;
} kinds[] = {
    [UNIT_RATE] = {prefixes, rates},
    [UNIT_PACKET_RATE] = {prefixes, packet_rates},
    [UNIT_SIZE] = {prefixes, sizes},
    [UNIT_TIME] = {no_prefix, times},
    [UNIT_COUNT] = {prefixes, no_prefix},
    [UNIT_SHARE] = {no_prefix, shares},
    [UNIT_BINARY_SIZE] = {binary_prefixes, sizes},
    [UNIT_BINARY_COUNT] = {binary_prefixes, no_prefix},
};

/* Length of the number at the start of the text, with its exponent; 0 if there is no number. */
static size_t number_length(const char *text) {
    size_t length = strspn(text, DIGITS), digits = length;
    if (text[length] == '.') {
        size_t fraction = strspn(text + length + 1, DIGITS);
        digits += fraction;
        length += 1 + fraction;
    }
    if (!digits)
        return 0;
    const char *exponent = text + length;
    if (*exponent != 'e' && *exponent != 'E')
        return length;
    size_t sign = exponent[1] == '+' || exponent[1] == '-';
    digits = strspn(exponent + 1 + sign, DIGITS);
    return digits ? length + 1 + sign + digits : length;
}

/* Returns the factor of a unit, or 0 if `kind` has no such unit. */
static long double factor_of(const char *unit, enum unit_kind kind) {
    for (const struct unit *prefix = kinds[kind].prefixes; prefix->name; prefix++) {
        size_t length = strlen(prefix->name);
        if (strncasecmp(unit, prefix->name, length))
            continue;
        for (const struct unit *name = kinds[kind].names; name->name; name++) {
            bool is_bytes =
                kind == UNIT_RATE && unit[length] == 'B' && strncasecmp(unit + length, "bit", 3);
            if (!is_bytes && !strcasecmp(unit + length, name->name))
                return prefix->factor * name->factor;
        }
    }
    return 0;
}

/* Parses number and unit, and converts the value to the unit of the kind. */
static bool parse(const char *text, enum unit_kind kind, const char *default_unit,
                  long double *value) {
    char copy[TEXT_SIZE];
    text += strspn(text, BLANKS);
    size_t length = strlen(text), number = number_length(text);
    while (length && strchr(BLANKS, text[length - 1]))
        length--;
    if (!number || length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    const char *unit = copy + number + strspn(copy + number, BLANKS);
    long double factor = factor_of(*unit ? unit : default_unit, kind);
    copy[number] = '\0'; /* the unit has been read */
    *value = strtold(copy, NULL) * factor;
    return factor > 0 && isfinite(*value);
}

bool units_parse_decimal(const char *text, enum unit_kind kind, double *value) {
    long double exact;
    bool is_valid = parse(text, kind, "", &exact) && isfinite((double)exact);
    if (is_valid)
        *value = (double)exact;
    return is_valid;
}

/* A fraction of a unit may be whole (1.5k), but decimal fractions are inexact in binary, so a value
 * counts as whole within a relative error of ROUNDING. */
bool units_parse_whole(const char *text, enum unit_kind kind, const char *default_unit,
                       uint64_t *value) {
    long double exact;
    if (!parse(text, kind, default_unit, &exact))
        return false;
    if (!*default_unit && kind != UNIT_TIME && !text[strspn(text, DIGITS)]) {
        errno = 0; /* long double is as inexact as double on some processors */
        *value = strtoull(text, NULL, 10);
        return !errno;
    }
    long double nearest = roundl(exact);
    if (nearest >= VALUE_BOUND || (kind != UNIT_TIME && fabsl(exact - nearest) > exact * ROUNDING))
        return false;
    *value = (uint64_t)nearest;
    return true;
}

bool units_parse_port(const char *text, uint16_t *port) {
    size_t digits = strspn(text, DIGITS);
    unsigned long number = digits && digits <= 5 && !text[digits] ? strtoul(text, NULL, 10) : 0;
    if (number < 1 || number > UINT16_MAX)
        return false;
    *port = (uint16_t)number;
    return true;
}
