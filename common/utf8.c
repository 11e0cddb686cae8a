/* SPDX-License-Identifier: Apache-2.0 */
/* Well-formed byte sequences are those of the Unicode standard's table 3-7. */
#include "common/utf8.h"

#include <stdint.h>
#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

static const struct {
    uint8_t first_low, first_high, second_low, second_high, length;
} forms[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
    {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
    {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
};

static size_t find_form(uint8_t first) {
    size_t i = 0;
    while (i < sizeof forms / sizeof *forms &&
           (first < forms[i].first_low || first > forms[i].first_high))
        i++;
    return i;
}

size_t utf8_character(const char *text, size_t size) {
    const uint8_t *p = (const uint8_t *)text;
    if (*p < 0x80)
        return 1;
    size_t form = find_form(*p);
    if (form == sizeof forms / sizeof *forms)
        return 0;
    size_t length = forms[form].length;
    if (length > size || p[1] < forms[form].second_low || p[1] > forms[form].second_high)
        return 0;
    for (size_t k = 2; k < length; k++)
        if ((p[k] & 0xC0) != 0x80)
            return 0;
    return length;
}

size_t utf8_copy(char *out, size_t room, const char *bytes, size_t size) {
    size_t used = 0;
    size = strnlen(bytes, size);
    for (size_t at = 0; at < size;) {
        size_t length = utf8_character(bytes + at, size - at);
        size_t count = length ? length : sizeof REPLACEMENT - 1;
        if (used + count >= room)
            break;
        memcpy(out + used, length ? bytes + at : REPLACEMENT, count);
        used += count;
        at += length ? length : 1;
    }
    out[used] = '\0';
    return used;
}
