/* SPDX-License-Identifier: Apache-2.0 */
/* Names of long options: given in full, and what a misspelt one was to be. */
#ifndef WIRETALE_OPTION_NAMES_H
#define WIRETALE_OPTION_NAMES_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define OPTION_NAME_MOST 32
#define OPTION_NEAR_MOST 2 /* letters that may differ */

/* Levenshtein's distance: letters to change, insert or remove; 1 for an abbreviation. */
static inline unsigned option_distance(const char *one, size_t length, const char *other) {
    unsigned row[OPTION_NAME_MOST + 1], columns = (unsigned)strlen(other);
    if (length >= 2 && !strncmp(one, other, length)) /* its beginning */
        return 1;
    if (columns > OPTION_NAME_MOST || length > OPTION_NAME_MOST)
        return OPTION_NAME_MOST;
    for (unsigned j = 0; j <= columns; j++)
        row[j] = j;
    for (unsigned i = 1; i <= length; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= columns; j++) {
            unsigned changed = diagonal + (one[i - 1] != other[j - 1]), least = row[j] + 1;
            diagonal = row[j];
            least = row[j - 1] + 1 < least ? row[j - 1] + 1 : least;
            row[j] = changed < least ? changed : least;
        }
    }
    return row[columns];
}

/* The nearer of two names to what was given; `best` may be NULL, and none may be near. */
static inline const char *option_nearer(const char *given, size_t length, const char *best,
                                        const char *other) {
    unsigned least = best ? option_distance(given, length, best) : OPTION_NEAR_MOST + 1;
    return option_distance(given, length, other) < least ? other : best;
}

/* The first argument that getopt_long() would complete, or not know; NULL: there is none. `*near`:
 * the option that it may have been to be, or NULL. */
static inline const char *option_not_exact(int count, char **arguments,
                                           const struct option *options, const char **near) {
    for (int i = 1; i < count; i++) {
        const char *given = arguments[i];
        const struct option *found = NULL;
        size_t length = strcspn(given, "=");
        if (strncmp(given, "--", 2))
            continue;
        if (!given[2])
            return NULL;
        *near = NULL;
        for (const struct option *at = options; at->name && !found; at++)
            if (strlen(at->name) == length - 2 && !strncmp(at->name, given + 2, length - 2))
                found = at;
            else
                *near = option_nearer(given + 2, length - 2, *near, at->name);
        if (!found)
            return given;
        i += found->has_arg == required_argument && !given[length];
    }
    return NULL;
}

#endif
