/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities as text for people, as analyzer/units.py and the page show them: all are held to
 * tests/analyzer/units.tsv. A value is rounded to three digits before its unit is chosen, so that
 * 999.6 ns is 1 us and never 1000 ns; halves are rounded up. The same operations on doubles in the
 * same order give the same digits in the three languages. */
#include "common/units_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define UNKNOWN     "\xe2\x80\x93" /* U+2013 */
#define MINUS       "\xe2\x88\x92" /* U+2212 */
#define VALUE_BOUND 1e36           /* whose text fits in any unit */
#define NS_PER_S    1e9
#define NS_PER_MIN  60e9

struct step {
    double size;
    const char *name;
};

#define PREFIXED(unit)                                                                             \
    {1, unit}, {1e3, "k" unit}, {1e6, "M" unit}, {1e9, "G" unit}, {1e12, "T" unit},                \
        {1e15, "P" unit}, {1e18, "E" unit}, {                                                      \
        0, NULL                                                                                    \
    }

static const struct step durations[] = {
    {1, "ns"}, {1e3, "\xc2\xb5s"}, {1e6, "ms"}, {1e9, "s"}, {0, NULL}};
static const struct step bytes[] = {PREFIXED("B")};
static const struct step rates[] = {PREFIXED("bit/s")};

/* Returns size / unit, rounded to decimal places, without the point. */
static double rounded(double size, double unit, int places) {
    static const double powers[] = {1, 10, 100};
    return floor(size * powers[places] / unit + 0.5);
}

/* Writes an integer with commas between thousands, and returns its length. */
static size_t put_grouped(char *text, double number) {
    char digits[UNITS_TEXT_SIZE];
    size_t count = (size_t)snprintf(digits, sizeof digits, "%.0f", number), length = 0;
    for (size_t i = 0; i < count; i++) {
        if (i && (count - i) % 3 == 0)
            text[length++] = ',';
        text[length++] = digits[i];
    }
    text[length] = '\0';
    return length;
}

/* Writes size / unit with three significant digits: 1.23, 12.3, 123, 1,234; 9.999 is 10. */
static size_t put_three_digits(char *text, double size, double unit) {
    static const int scales[] = {1, 10, 100};
    int places = 2;
    while (places && rounded(size, unit, places) >= 1000)
        places--;
    double number = rounded(size, unit, places);
    int fraction = places ? (int)number % scales[places] : 0;
    size_t length = put_grouped(text, floor(number / scales[places]));
    if (fraction)
        length += (size_t)sprintf(text + length, ".%0*d", places, fraction);
    return length;
}

/* In the first unit in which the rounded number is below 1000, else in the last one. */
static void put_quantity(char *text, double size, const struct step *steps) {
    while (steps[1].name && rounded(size, steps->size, 0) >= 1000)
        steps++;
    size_t length = put_three_digits(text, size, steps->size);
    sprintf(text + length, " %s", steps->name);
}

static void put_duration(char *text, double ns) {
    double seconds = rounded(ns, NS_PER_S, 0), minutes = rounded(ns, NS_PER_MIN, 0);
    if (seconds < 1000) {
        put_quantity(text, ns, durations);
    } else if (seconds < 3600) {
        sprintf(text, "%d min %02d s", (int)seconds / 60, (int)seconds % 60);
    } else {
        size_t length = put_grouped(text, floor(minutes / 60));
        sprintf(text + length, " h %02d min", (int)fmod(minutes, 60));
    }
}

const char *units_show(enum shown_unit unit, double value, char text[UNITS_TEXT_SIZE]) {
    double size = fabs(value);
    if (!(size < VALUE_BOUND))
        return strcpy(text, UNKNOWN);
    size_t sign = value < 0 ? strlen(strcpy(text, MINUS)) : 0;
    switch (unit) {
    case SHOWN_DURATION: put_duration(text + sign, size); break;
    case SHOWN_BYTES: put_quantity(text + sign, size, bytes); break;
    case SHOWN_RATE: put_quantity(text + sign, size, rates); break;
    case SHOWN_COUNT: put_grouped(text + sign, size); break;
    }
    bool is_zero = sign && text[sign] == '0' && text[sign + 1] == ' ';
    return is_zero ? memmove(text, text + sign, strlen(text + sign) + 1) : text;
}

const char *units_show_share(double part, double total, char text[UNITS_TEXT_SIZE]) {
    if (!(total > 0))
        return strcpy(text, UNKNOWN);
    if (part > 0 && 100 * part / total < 0.01)
        return strcpy(text, "under 0.01%");
    put_three_digits(text, 100 * part, total);
    if (part < total && !strcmp(text, "100"))
        return strcpy(text, "over 99.9%");
    return strcat(text, "%");
}
