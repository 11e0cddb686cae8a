/* SPDX-License-Identifier: Apache-2.0 */
/* Well-formed byte sequences are those of the Unicode standard's table 3-7. Characters that are not
 * printable have one of its general categories Cc, Cf, Co, Cs, Zl, Zp and Zs, as in Python. */
#include "common/utf8.h"

#include <stdbool.h>
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

uint32_t utf8_code_point(const char *text, size_t length) {
    uint32_t code = (uint8_t)*text & (length == 1 ? 0x7f : 0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++)
        code = code << 6 | ((uint8_t)text[i] & 0x3f);
    return code;
}

static const struct {
    uint32_t first, last;
} not_printable[] = {
    {0x0, 0x1f},         {0x7f, 0xa0},       {0xad, 0xad},       {0x600, 0x605},
    {0x61c, 0x61c},      {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},
    {0x8e2, 0x8e2},      {0x1680, 0x1680},   {0x180e, 0x180e},   {0x2000, 0x200f},
    {0x2028, 0x202f},    {0x205f, 0x206f},   {0x3000, 0x3000},   {0xd800, 0xf8ff},
    {0xfeff, 0xfeff},    {0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
    {0x13430, 0x1343f},  {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe007f},
    {0xf0000, 0x10ffff},
};

static bool is_printable(const char *text, size_t length) {
    uint32_t code = utf8_code_point(text, length);
    size_t i = 0;
    while (i < sizeof not_printable / sizeof *not_printable && code > not_printable[i].last)
        i++;
    return i == sizeof not_printable / sizeof *not_printable || code < not_printable[i].first;
}

static size_t copy(char *out, size_t room, const char *bytes, size_t size, bool printable_only) {
    size_t used = 0, cut_at = 0; /* where UTF8_CUT has room */
    size = strnlen(bytes, size);
    for (size_t at = 0; at < size;) {
        size_t length = utf8_character(bytes + at, size - at);
        bool stays = length && (!printable_only || is_printable(bytes + at, length));
        size_t count = stays ? length : sizeof REPLACEMENT - 1;
        if (used + count >= room) {
            if (room >= sizeof UTF8_CUT) {
                memcpy(out + cut_at, UTF8_CUT, sizeof UTF8_CUT - 1);
                used = cut_at + sizeof UTF8_CUT - 1;
            }
            break;
        }
        memcpy(out + used, stays ? bytes + at : REPLACEMENT, count);
        used += count;
        if (used + sizeof UTF8_CUT <= room)
            cut_at = used;
        at += length ? length : 1;
    }
    out[used] = '\0';
    return used;
}

size_t utf8_copy(char *out, size_t room, const char *bytes, size_t size) {
    return copy(out, room, bytes, size, false);
}

size_t utf8_copy_printable(char *out, size_t room, const char *bytes, size_t size) {
    return copy(out, room, bytes, size, true);
}

void utf8_put_printable(FILE *out, const char *text) {
    char character[5];
    for (size_t size = strlen(text), length; size; size -= length, text += length) {
        length = utf8_character(text, size);
        length = length ? length : 1;
        fwrite(character, 1, utf8_copy_printable(character, sizeof character, text, length), out);
    }
}
