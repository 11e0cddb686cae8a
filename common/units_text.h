/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRETALE_COMMON_UNITS_TEXT_H
#define WIRETALE_COMMON_UNITS_TEXT_H

enum shown_unit {
    SHOWN_DURATION, /* ns: 1.23 ms, 16 min 40 s, 277 h 47 min */
    SHOWN_BYTES,    /* 1.23 MB */
    SHOWN_RATE,     /* bit/s: 94.1 Mbit/s */
    SHOWN_COUNT,    /* 1,234,567 */
};

#define UNITS_TEXT_SIZE 64

/* Writes a quantity as text, with three significant digits (a count has all). Returns `text`; it is
 * a dash if the value is not finite, or 1e36 and more. */
const char *units_show(enum shown_unit unit, double value, char text[UNITS_TEXT_SIZE]);

/* Writes part / total in percent; only 0 becomes 0%, and only the total 100%. */
const char *units_show_share(double part, double total, char text[UNITS_TEXT_SIZE]);

/* The same as an expression; the text is valid to the end of the block. */
#define UNITS_SHOW(unit, value)       units_show(unit, (double)(value), (char[UNITS_TEXT_SIZE]){""})
#define UNITS_SHOW_SHARE(part, total) units_show_share(part, total, (char[UNITS_TEXT_SIZE]){""})

#endif
