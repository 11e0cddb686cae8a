/* SPDX-License-Identifier: Apache-2.0 */
/* The parent of each exchange, after the pass: the handshake without which it would not be, or
 * which waited for it.
 *
 * Requests of a connection belong to its handshake. A question of DNS belongs to the first
 * handshake of the same client with an address of the answer, at most USED_NS later. So do the
 * questions for the same name of which it is one wait: the other type of address, and those that
 * nobody answered. If the client learned the address under several names, that of the connection
 * (SNI, Host) decides, else nothing does. Names and addresses are compared by seeded hashes of 64
 * bits, so that no sender can make two of them alike.
 *
 * Rows are in the order of flows, and flows in that of time. A question is passed once, so that the
 * time is that of sorting questions and answers, and a search for each handshake. */
#include "exchange/exchange_parents.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/int64.h"
#include "base/vocabulary.h"
#include "common/hash.h"

#define USED_NS         INT64_C(2000000000)  /* from the answer to the SYN */
#define ASKED_NS        INT64_C(30000000000) /* from any of its questions to the SYN */
#define NEXT_NS         INT64_C(50000000)    /* from an answer to the next question of one wait */
#define CANDIDATES_MOST 64u                  /* answers that gave an address within USED_NS */

#define KIND_COLUMNS  (exchanges_kind + 1)
#define ASKED_COLUMNS (exchanges_answered_ns + 1)
#define NAMED_COLUMNS (exchanges_addresses + 1)
_Static_assert(exchanges_flow < KIND_COLUMNS && exchanges_asked_ns < ASKED_COLUMNS, "flow, times");
_Static_assert(exchanges_client < ASKED_COLUMNS && exchanges_server < ASKED_COLUMNS, "ends");
_Static_assert(exchanges_name < ASKED_COLUMNS && ASKED_COLUMNS < NAMED_COLUMNS, "names");

/* A question of a client; `asker` has both the client and the name. */
struct question {
    uint64_t asker;
    int64_t asked_ns, answered_ns; /* INT64_MAX without an answer */
    uint32_t row;
    uint32_t passed; /* of the first of an asker: how many of its questions were passed */
};

/* An address that a client learned. */
struct answer {
    uint64_t learned; /* the client and the address */
    uint64_t name;
    int64_t asked_ns, answered_ns;
};

/* A handshake. */
struct attempt {
    uint32_t flow;
    uint64_t client, learned;
    uint64_t name; /* 0 if it is unknown */
    int64_t asked_ns, until_ns;
};

struct nesting {
    const struct table *exchanges;
    uint32_t *within; /* by row */
    struct question *questions;
    struct answer *answers;
    size_t question_count, question_room, answer_count, answer_room;
    uint64_t seed[2];
};

/* Returns the hash of a text behind another one, 0 for none; letters have no case. */
static uint64_t hash_of(const struct nesting *nesting, uint64_t before, const char *text,
                        size_t size) {
    uint64_t hash = before ^ nesting->seed[0];
    for (size_t i = 0; i < size; i++)
        hash = hash_fold(hash ^ (uint8_t)tolower((unsigned char)text[i]), nesting->seed[1]);
    return hash;
}

static uint64_t asker_of(const struct nesting *nesting, uint64_t client, uint64_t name) {
    return hash_fold(client ^ nesting->seed[0], name ^ nesting->seed[1]);
}

static uint64_t text_hash(const struct nesting *nesting, const struct row *row, unsigned column,
                          uint64_t before) {
    const struct table *table = nesting->exchanges;
    char buffer[ADDRESS_TEXT_MAX];
    size_t size;
    const char *text = string_table_text(table->texts, table->schema->columns[column].type,
                                         row->value[column], buffer, &size);
    return hash_of(nesting, before, text, size);
}

/* Returns the hash of the name of a connection's request, 0 without one. A Host may have a port. */
static uint64_t name_of(const struct nesting *nesting, const struct row *row) {
    size_t size, digits = 0;
    if (!row_known(row, exchanges_name))
        return 0;
    const char *text =
        string_table_get(nesting->exchanges->texts, row->value[exchanges_name], &size);
    while (digits < size && isdigit((unsigned char)text[size - 1 - digits]))
        digits++;
    if (row->value[exchanges_kind] == WORD_HTTP && digits < size && text[size - 1 - digits] == ':')
        size -= digits + 1;
    return hash_of(nesting, 0, text, size);
}

/* --- questions and answers -------------------------------------------------------------------- */

static bool add_answers(struct nesting *nesting, const struct row *row, uint64_t client,
                        uint64_t name) {
    size_t size;
    const char *text =
        string_table_get(nesting->exchanges->texts, row->value[exchanges_addresses], &size);
    for (const char *end = text + size, *next; text < end; text = next + 1) {
        next = memchr(text, ' ', (size_t)(end - text));
        next = next ? next : end;
        if (!list_grow(&nesting->answers, &nesting->answer_room, nesting->answer_count + 1,
                       sizeof *nesting->answers))
            return false;
        nesting->answers[nesting->answer_count++] =
            (struct answer){.learned = hash_of(nesting, client, text, (size_t)(next - text)),
                            .name = name,
                            .asked_ns = row->value[exchanges_asked_ns],
                            .answered_ns = row->value[exchanges_answered_ns]};
    }
    return true;
}

/* Returns false without memory. */
static bool add_question(struct nesting *nesting, const struct row *row, uint64_t number) {
    bool answered = row_known(row, exchanges_answered_ns);
    if (!row_known(row, exchanges_client) || !row_known(row, exchanges_name) ||
        !row_known(row, exchanges_asked_ns))
        return true;
    if (!list_grow(&nesting->questions, &nesting->question_room, nesting->question_count + 1,
                   sizeof *nesting->questions))
        return false;
    uint64_t client = text_hash(nesting, row, exchanges_client, 0);
    uint64_t name = text_hash(nesting, row, exchanges_name, 0);
    nesting->questions[nesting->question_count++] =
        (struct question){.asker = asker_of(nesting, client, name),
                          .asked_ns = row->value[exchanges_asked_ns],
                          .answered_ns = answered ? row->value[exchanges_answered_ns] : INT64_MAX,
                          .row = (uint32_t)number};
    bool gave = answered && row_known(row, exchanges_addresses);
    return !gave || add_answers(nesting, row, client, name);
}

/* Nests the requests of connections, and lists the questions. Returns false without memory. */
static bool nest_requests(struct nesting *nesting) {
    struct table_cursor cursor = {0}, whole = {0};
    struct row row;
    int64_t connected = -1; /* the flow of the last handshake */
    for (uint64_t number = 0; table_next_of(nesting->exchanges, &cursor, KIND_COLUMNS, &row);
         number++, whole = cursor) {
        int64_t kind = row.value[exchanges_kind];
        bool in_flow = row_known(&row, exchanges_flow);
        if (kind == WORD_CONNECT)
            connected = in_flow ? row.value[exchanges_flow] : -1;
        else if (in_flow && connected == row.value[exchanges_flow])
            nesting->within[number] = (uint32_t)connected;
        else if (kind == WORD_DNS)
            if (!table_next_of(nesting->exchanges, &whole, NAMED_COLUMNS, &row) ||
                !add_question(nesting, &row, number))
                return false;
    }
    return true;
}

static int compare_questions(const void *left, const void *right) {
    const struct question *a = left, *b = right;
    if (a->asker != b->asker)
        return a->asker < b->asker ? -1 : 1;
    if (a->asked_ns != b->asked_ns)
        return a->asked_ns < b->asked_ns ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static int compare_answers(const void *left, const void *right) {
    const struct answer *a = left, *b = right;
    if (a->learned != b->learned)
        return a->learned < b->learned ? -1 : 1;
    if (a->answered_ns != b->answered_ns)
        return a->answered_ns < b->answered_ns ? -1 : 1;
    return a->name < b->name ? -1 : a->name > b->name;
}

/* --- handshakes ------------------------------------------------------------------------------- */

/* Returns how many answers have a lesser key, or the same and are not later than `ns`. */
static size_t answers_until(const struct nesting *nesting, uint64_t learned, int64_t ns) {
    size_t low = 0, high = nesting->answer_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct answer *answer = &nesting->answers[middle];
        if (answer->learned < learned || (answer->learned == learned && answer->answered_ns <= ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the latest answer that gave the client this address under the name of the connection, or
 * under the only name; NULL if there is none, or if the name is not known. */
static const struct answer *answer_for(const struct nesting *nesting,
                                       const struct attempt *attempt) {
    size_t until = answers_until(nesting, attempt->learned, attempt->asked_ns);
    const struct answer *latest = NULL;
    for (size_t i = 0; i < until; i++) {
        const struct answer *answer = &nesting->answers[until - 1 - i];
        if (answer->learned != attempt->learned ||
            attempt->asked_ns - answer->answered_ns > USED_NS)
            break;
        if (attempt->name && answer->name == attempt->name)
            return answer;
        latest = latest ? latest : answer;
        if (i == CANDIDATES_MOST || (!attempt->name && answer->name != latest->name))
            return NULL;
    }
    return attempt->name ? NULL : latest;
}

/* Returns the first question of an asker, NULL without one. */
static struct question *questions_of(const struct nesting *nesting, uint64_t asker) {
    size_t low = 0, high = nesting->question_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (nesting->questions[middle].asker < asker)
            low = middle + 1;
        else
            high = middle;
    }
    bool there = low < nesting->question_count && nesting->questions[low].asker == asker;
    return there ? &nesting->questions[low] : NULL;
}

/* Nests the questions that were asked for a handshake, from the last one back. Those that are
 * passed would be too old for a later one. */
static void nest_questions(struct nesting *nesting, const struct attempt *attempt) {
    const struct answer *answer = answer_for(nesting, attempt);
    struct question *first =
        answer ? questions_of(nesting, asker_of(nesting, attempt->client, answer->name)) : NULL;
    const struct question *all = nesting->questions + nesting->question_count;
    if (!first)
        return;
    struct question *from = first + first->passed, *question = from;
    while (question < all && question->asker == first->asker &&
           question->asked_ns <= attempt->until_ns)
        question++;
    first->passed = (uint32_t)(question - first);
    int64_t waiting_ns = answer->asked_ns - NEXT_NS;
    while (question-- > from)
        if (question->answered_ns >= waiting_ns &&
            attempt->asked_ns - question->asked_ns <= ASKED_NS) {
            nesting->within[question->row] = attempt->flow;
            waiting_ns = min64(waiting_ns, question->asked_ns - NEXT_NS);
        }
}

static struct attempt attempt_of(const struct nesting *nesting, const struct row *row) {
    uint64_t client = text_hash(nesting, row, exchanges_client, 0);
    int64_t asked_ns = row->value[exchanges_asked_ns];
    bool answered = row_known(row, exchanges_answered_ns);
    return (struct attempt){.flow = (uint32_t)row->value[exchanges_flow],
                            .client = client,
                            .learned = text_hash(nesting, row, exchanges_server, client),
                            .asked_ns = asked_ns,
                            .until_ns = answered ? row->value[exchanges_answered_ns] : asked_ns};
}

/* The rows of a connection follow its handshake: the first one with a name names it. */
static void nest_all_questions(struct nesting *nesting) {
    const struct table *table = nesting->exchanges;
    struct table_cursor cursor = {0};
    struct attempt attempt;
    struct row row;
    bool open = false;
    while (table_next_of(table, &cursor, ASKED_COLUMNS, &row)) {
        bool same =
            open && row_known(&row, exchanges_flow) && row.value[exchanges_flow] == attempt.flow;
        if (open && !same)
            nest_questions(nesting, &attempt);
        open = same;
        if (same && !attempt.name)
            attempt.name = name_of(nesting, &row);
        if (row.value[exchanges_kind] != WORD_CONNECT || !row_known(&row, exchanges_flow) ||
            !row_known(&row, exchanges_asked_ns))
            continue;
        attempt = attempt_of(nesting, &row);
        open = true;
    }
    if (open)
        nest_questions(nesting, &attempt);
}

bool exchange_parents_set(struct table *table) {
    struct nesting nesting = {.exchanges = table,
                              .within = malloc((table->row_count + 1) * sizeof(uint32_t))};
    bool done = nesting.within;
    hash_seed_fill(nesting.seed, sizeof nesting.seed / sizeof *nesting.seed);
    if (done) {
        memset(nesting.within, 0xFF, table->row_count * sizeof *nesting.within);
        done = nest_requests(&nesting);
    }
    if (done && nesting.answer_count) {
        qsort(nesting.questions, nesting.question_count, sizeof *nesting.questions,
              compare_questions);
        qsort(nesting.answers, nesting.answer_count, sizeof *nesting.answers, compare_answers);
        nest_all_questions(&nesting);
    }
    if (done)
        table_set_late(table, exchanges_within, nesting.within);
    else
        free(nesting.within);
    free(nesting.questions);
    free(nesting.answers);
    return done;
}
