/* SPDX-License-Identifier: Apache-2.0 */
/* The words one after another, as an Arrow dictionary stores them: texts without separators, and
 * offsets of 32 bits. The struct has a member as long as each word, so that the compiler computes
 * the offsets; arrays of one byte are not padded. */
#include "base/vocabulary.h"

#include <stddef.h>

struct texts {
#define X(symbol, text) char symbol[sizeof(text) - 1];
    VOCABULARY(X)
#undef X
};

const char word_texts[] =
#define X(symbol, text) text
    VOCABULARY(X);
#undef X

const int32_t word_offsets[WORD_COUNT + 1] = {
#define X(symbol, text) offsetof(struct texts, symbol),
    VOCABULARY(X)
#undef X
        sizeof(struct texts),
};

const char *word_text(enum word word) {
    static const char *const texts[] = {
#define X(symbol, text) text,
        VOCABULARY(X)
#undef X
    };
    return texts[word];
}
