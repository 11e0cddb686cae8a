/* SPDX-License-Identifier: Apache-2.0 */
/* Comments are split at spaces without copying. Numbers have at most 18 digits, so that sums and
 * signs cannot overflow; sums stop at that size, too. */
#include "input/tracer_facts.h"

#include <stdlib.h>
#include <string.h>

#define LINK        "wiretale.link/1"
#define CLOCK       "wiretale.clock/1"
#define DIGITS_MOST 18
#define NUMBER_MOST INT64_C(999999999999999999)

struct word {
    const char *key, *value;
    size_t key_size, value_size;
};

/* One comment, of which `kind` was the first word. */
struct line {
    const char *cursor, *end;
};

static bool begin_line(struct line *line, const char *kind, const char *comment, size_t size) {
    size_t length = strlen(kind);
    bool is_kind = size > length && !memcmp(comment, kind, length) && comment[length] == ' ';
    *line = (struct line){comment + (is_kind ? length : size), comment + size};
    return is_kind;
}

/* Returns the next key=value; words without a = are passed over. */
static bool next_word(struct line *line, struct word *word) {
    while (line->cursor < line->end) {
        const char *begin = line->cursor + (*line->cursor == ' ');
        size_t left = (size_t)(line->end - begin);
        const char *space = memchr(begin, ' ', left);
        const char *stop = space ? space : line->end;
        const char *equal = memchr(begin, '=', (size_t)(stop - begin));
        line->cursor = stop > line->cursor ? stop : line->cursor + 1;
        if (!equal)
            continue;
        *word =
            (struct word){begin, equal + 1, (size_t)(equal - begin), (size_t)(stop - equal - 1)};
        return true;
    }
    return false;
}

static bool is_text(const char *text, const char *at, size_t size) {
    return strlen(text) == size && !memcmp(text, at, size);
}

static bool is_key(const struct word *word, const char *key) {
    return is_text(key, word->key, word->key_size);
}

static enum truth truth_of(const struct word *word) {
    if (is_text("yes", word->value, word->value_size) ||
        is_text("on", word->value, word->value_size))
        return TRUTH_YES;
    bool is_no = is_text("no", word->value, word->value_size) ||
                 is_text("off", word->value, word->value_size);
    return is_no ? TRUTH_NO : TRUTH_UNKNOWN;
}

/* Returns 0 for what is no number. */
static int64_t number_of(const struct word *word) {
    bool is_negative = word->value_size && *word->value == '-';
    size_t digits = word->value_size - is_negative;
    int64_t number = 0;
    if (digits > DIGITS_MOST)
        return 0;
    for (size_t i = is_negative; i < word->value_size; i++) {
        if (word->value[i] < '0' || word->value[i] > '9')
            return 0;
        number = 10 * number + (word->value[i] - '0');
    }
    return is_negative ? -number : number;
}

static void add(int64_t *sum, int64_t more) {
    *sum = *sum > NUMBER_MOST - more ? NUMBER_MOST : *sum + more;
}

/* Small letters, digits and _ only, so that the text is harmless. */
static void copy_word(char to[FACT_WORD_SIZE], const struct word *word) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    if (!word->value_size || word->value_size >= FACT_WORD_SIZE)
        return;
    for (size_t i = 0; i < word->value_size; i++)
        if (!word->value[i] || !strchr(allowed, word->value[i]))
            return;
    memcpy(to, word->value, word->value_size);
    to[word->value_size] = '\0';
}

/* One that is on is enough. */
static void note_offload(uint8_t *known, const struct word *word) {
    enum truth truth = truth_of(word);
    if (truth > *known)
        *known = (uint8_t)truth;
}

static void describe_link(struct tracer_facts *facts, struct line *line) {
    facts->link_told = true;
    for (struct word word; next_word(line, &word);) {
        int64_t number = number_of(&word);
        if (is_key(&word, "mtu"))
            facts->mtu = number > 0 && number <= UINT32_MAX ? (uint32_t)number : 0;
        else if (is_key(&word, "duplex"))
            copy_word(facts->duplex, &word);
        else if (is_key(&word, "time_stamps"))
            copy_word(facts->time_stamps, &word);
        else if (is_key(&word, "promiscuous"))
            facts->promiscuous = (uint8_t)truth_of(&word);
        else if (is_key(&word, "gro") || is_key(&word, "lro"))
            note_offload(&facts->receive_offload, &word);
        else if (is_key(&word, "tso") || is_key(&word, "gso"))
            note_offload(&facts->send_offload, &word);
    }
}

static void add_loss(struct tracer_facts *facts, int64_t losses, int64_t down_ns, bool is_back,
                     int64_t time_ns) {
    if (losses > 0 && losses < UINT32_MAX - facts->carrier_losses)
        facts->carrier_losses += (uint32_t)losses;
    if (down_ns > 0)
        add(&facts->carrier_down_ns, down_ns);
    if (!facts->carrier_lost_ns)
        facts->carrier_lost_ns = down_ns > 0 && down_ns < time_ns ? time_ns - down_ns : time_ns;
    facts->carrier_back_ns = is_back ? time_ns : 0;
}

static void link_happens(struct tracer_facts *facts, struct line *line, int64_t time_ns) {
    bool is_lost = false, is_back = false;
    int64_t losses = 0, down_ns = 0;
    for (struct word word; next_word(line, &word);) {
        if (is_key(&word, "event")) {
            is_lost = is_text("carrier-lost", word.value, word.value_size);
            is_back = is_text("carrier-back", word.value, word.value_size);
        } else if (is_key(&word, "losses")) {
            losses = number_of(&word);
        } else if (is_key(&word, "down_ns")) {
            down_ns = number_of(&word);
        }
    }
    if (is_lost || is_back)
        add_loss(facts, losses, down_ns, is_back, time_ns);
}

static void add_step(struct tracer_facts *facts, int64_t step_ns, int64_t time_ns) {
    if (!facts->clock_steps++)
        facts->clock_step_ns = time_ns;
    facts->clock_step_last_ns = time_ns;
    if (llabs(step_ns) > llabs(facts->clock_step_size_ns))
        facts->clock_step_size_ns = step_ns;
}

/* The worst of all lines counts. An event of a step says nothing about the state. */
static void take_clock(struct tracer_facts *facts, struct line *line, int64_t time_ns) {
    enum truth synchronized = TRUTH_UNKNOWN;
    int64_t error_ns = 0, step_ns = 0;
    for (struct word word; next_word(line, &word);) {
        if (is_key(&word, "synchronized"))
            synchronized = truth_of(&word);
        else if (is_key(&word, "error_ns"))
            error_ns = number_of(&word);
        else if (is_key(&word, "step_ns"))
            step_ns = number_of(&word);
    }
    if (step_ns && facts->clock_steps < UINT32_MAX)
        add_step(facts, step_ns, time_ns);
    if (synchronized == TRUTH_UNKNOWN)
        return;
    facts->synchronized = facts->synchronized == TRUTH_NO ? TRUTH_NO : (uint8_t)synchronized;
    facts->error_unknown |= error_ns <= 0;
    if (error_ns > facts->error_ns)
        facts->error_ns = error_ns;
}

bool tracer_facts_are_of_clock(const char *comment, size_t size) {
    struct line line;
    return begin_line(&line, CLOCK, comment, size);
}

void tracer_facts_describe(struct tracer_facts *facts, const char *comment, size_t size) {
    struct line line;
    if (begin_line(&line, LINK, comment, size))
        describe_link(facts, &line);
    else if (begin_line(&line, CLOCK, comment, size))
        take_clock(facts, &line, 0);
}

void tracer_facts_happen(struct tracer_facts *facts, const char *comment, size_t size,
                         int64_t time_ns) {
    struct line line;
    if (begin_line(&line, LINK, comment, size))
        link_happens(facts, &line, time_ns);
    else if (begin_line(&line, CLOCK, comment, size))
        take_clock(facts, &line, time_ns);
}
