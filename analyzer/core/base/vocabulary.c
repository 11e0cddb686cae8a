/* SPDX-License-Identifier: Apache-2.0 */
/* The words' texts. */
#include "base/vocabulary.h"

static const char *const texts[WORD_COUNT] = {
#define X(symbol, text) text,
    VOCABULARY(X)
#undef X
};

const char *word_text(enum word word) {
    return (unsigned)word < WORD_COUNT ? texts[word] : "";
}
