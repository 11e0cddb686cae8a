/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions of C tests. If one fails, the test prints its place with the condition or both
 * numbers, and exits with status 1. */
#ifndef WIRETALE_CHECK_H
#define WIRETALE_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define CHECK_INT(actual, expected)                                                                \
    do {                                                                                           \
        long long actual_ = (long long)(actual), expected_ = (long long)(expected);                \
        if (actual_ != expected_) {                                                                \
            fprintf(stderr, "%s:%d: %s is %lld, expected %lld\n", __FILE__, __LINE__, #actual,     \
                    actual_, expected_);                                                           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
