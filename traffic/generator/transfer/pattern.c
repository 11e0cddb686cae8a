/* SPDX-License-Identifier: Apache-2.0 */
/* A pattern: sizes of blocks and the gaps behind them, from a file at the end that asks. Its lines
 * are sent in turn, or drawn at random with the run as the seed. The plan has the bounds of the
 * pattern: the smallest and the largest size, the mean rate and the longest gap. The receiver needs
 * no more, unless it is to send (--reverse): it then gets the lines before "start", and they must
 * be within these bounds, by which it has admitted the plan.
 *
 *     line = SIZE blank GAP      bytes of the block with its header, ns until the next block
 *
 * Lines of turns have the response, too (turns.c); all end up at both ends:
 *
 *     line = REQUEST blank GAP blank RESPONSE blank SERVER
 *
 * All are decimal digits. Empty lines and lines that begin with "#" are skipped. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "transfer/transfer_plan.h"

#define LINE_ROOM  100u /* of a line with its line feed and the terminating 0 */
#define MAX_GAP_NS (UINT64_C(86400) * NS_PER_S)
#define MAX_SHOWN  20u /* characters of a wrong line in its error */

/* Parses digits up to the end of the word. Returns false if there are none, if another character
 * follows, or if the number is above `most`. */
static bool read_number(const char **at, uint64_t most, uint64_t *number) {
    const char *begin = *at;
    for (*number = 0; **at >= '0' && **at <= '9'; (*at)++) {
        *number = *number * 10 + (uint64_t)(**at - '0');
        if (*number > most)
            return false;
    }
    return *at > begin;
}

static const char *skip_blanks(const char *at) {
    return at + strspn(at, " \t\r\n");
}

/* Parses blanks and a number behind them. */
static bool read_next(const char **at, uint64_t most, uint64_t *number) {
    bool is_separate = **at == ' ' || **at == '\t';
    *at = skip_blanks(*at);
    return is_separate && read_number(at, most, number);
}

/* Returns NULL, or the expectation that the text of a line does not meet. */
static const char *read_line(const char *text, bool is_turn, struct pattern_line *line) {
    uint64_t size, response = 0, most = is_turn ? BLOCK_LENGTH_MOST : MAX_UDP_SIZE_IPV6;
    *line = (struct pattern_line){0};
    if (!read_number(&text, most, &size) || size < BLOCK_HEADER_BYTES)
        return is_turn ? "expected a request of 32 to 1073741824 bytes first"
                       : "expected a size of 32 to 65527 bytes first";
    if (!read_next(&text, MAX_GAP_NS, &line->gap_ns))
        return "expected a gap of 0 to 86400000000000 ns (a day) after the size";
    if (is_turn && (!read_next(&text, most, &response) || response < BLOCK_HEADER_BYTES))
        return "expected a response of 32 to 1073741824 bytes after the gap";
    if (is_turn && !read_next(&text, MAX_GAP_NS, &line->server_ns))
        return "expected a server time of 0 to 86400000000000 ns (a day) at the end";
    line->size = (uint32_t)size;
    line->response = (uint32_t)response;
    if (*skip_blanks(text))
        return is_turn ? "expected REQUEST, GAP, RESPONSE and SERVER, in bytes and ns"
                       : "expected SIZE and GAP, as in 1200 20000000 (bytes, ns)";
    return NULL;
}

/* Appends the lines of the file. Returns NULL, or the reason for a failure; `number` and `text` are
 * then of the wrong line. */
static const char *read_lines(struct transfer_plan *plan, FILE *file, unsigned *number,
                              char text[LINE_ROOM]) {
    const char *why = NULL;
    for (*number = 1; !why && fgets(text, LINE_ROOM, file); *number += !why) {
        const char *begin = skip_blanks(text);
        if (!strchr(text, '\n') && !feof(file))
            why = "expected at most 98 characters";
        else if (!*begin || *begin == '#')
            continue;
        else if (plan->lines_have == MAX_PATTERN_LINES)
            why = "expected at most 65536 lines";
        else
            why = read_line(begin, plan->turns, &plan->lines[plan->lines_have++]);
    }
    return why;
}

/* A file may contain anything, so only the printable begin of a wrong line is shown. */
static bool read_file(struct transfer_plan *plan, FILE *file, const char *path, char *error,
                      size_t room) {
    char text[LINE_ROOM] = "";
    unsigned number, shown = 0;
    const char *why = read_lines(plan, file, &number, text);
    while (shown < MAX_SHOWN && text[shown] >= ' ' && text[shown] < 0x7f)
        shown++;
    if (why)
        snprintf(error, room, "%.100s: line %u, \"%.*s\": %s", path, number, (int)shown, text, why);
    else if (ferror(file))
        snprintf(error, room, "%.100s: %s", path, strerror(errno));
    else if (!plan->lines_have)
        snprintf(error, room, "%.100s: expected at least one line of numbers", path);
    else
        return true;
    return false;
}

/* Returns blocks per second; 0 if all gaps are 0. The sum of all gaps is at most 65536 days, which
 * a double holds with an error below a second. */
static double mean_rate(const struct transfer_plan *plan) {
    double sum_ns = 0;
    for (uint64_t i = 0; i < plan->lines_have; i++)
        sum_ns += (double)plan->lines[i].gap_ns;
    return sum_ns > 0 ? (double)plan->lines_have * 1e9 / sum_ns : 0;
}

/* If all gaps are 0, the blocks are sent without pacing. */
static void set_bounds(struct transfer_plan *plan) {
    uint32_t least = UINT32_MAX, most = 0;
    plan->line_count = plan->lines_have;
    for (uint64_t i = 0; i < plan->line_count; i++) {
        const struct pattern_line *line = &plan->lines[i];
        uint32_t response = plan->turns ? line->response : line->size;
        least = line->size < least ? line->size : least;
        least = response < least ? response : least;
        most = line->size > most ? line->size : most;
        most = response > most ? response : most;
        if (line->gap_ns > plan->longest_gap_ns)
            plan->longest_gap_ns = line->gap_ns;
        if (line->server_ns > plan->longest_gap_ns)
            plan->longest_gap_ns = line->server_ns;
    }
    plan->rate_pps = plan->turns ? 0 : mean_rate(plan);
    plan->pacing = plan->rate_pps > 0 ? PACING_PATTERN : PACING_NONE;
    if (!plan->count && !plan->bytes && !plan->time_ns)
        plan->count = plan->line_count;
    snprintf(plan->sizes_text, sizeof plan->sizes_text, least < most ? "%u,%u" : "%u", least, most);
}

bool transfer_plan_read_pattern(struct transfer_plan *plan, const char *path, char *error,
                                size_t room) {
    FILE *file = fopen(path, "re");
    if (!file) {
        snprintf(error, room, "%.100s: %s", path, strerror(errno));
        return false;
    }
    plan->lines = malloc(MAX_PATTERN_LINES * sizeof *plan->lines);
    plan->lines_have = 0;
    bool is_pattern = plan->lines && read_file(plan, file, path, error, room);
    if (!plan->lines)
        snprintf(error, room, "out of memory");
    fclose(file);
    if (is_pattern)
        set_bounds(plan);
    else
        transfer_plan_free(plan);
    return is_pattern;
}

uint64_t transfer_plan_write_lines(const struct transfer_plan *plan, uint64_t from, char *text,
                                   size_t room) {
    size_t used = 0;
    char turn[40] = "";
    for (*text = 0; from < plan->line_count; from++) {
        const struct pattern_line *line = &plan->lines[from];
        if (plan->turns)
            snprintf(turn, sizeof turn, ":%u:%llu", line->response,
                     (unsigned long long)line->server_ns);
        int length = snprintf(text + used, room - used, "%s%u:%llu%s", used ? "," : "", line->size,
                              (unsigned long long)line->gap_ns, turn);
        if ((size_t)length >= room - used) {
            text[used] = 0;
            break;
        }
        used += (size_t)length;
    }
    return from;
}

static bool read_pair(const struct transfer_plan *plan, const char **at, uint32_t *size,
                      uint64_t *ns) {
    uint64_t bytes;
    if (!read_number(at, plan->max_size, &bytes) || bytes < plan->min_size || *(*at)++ != ':' ||
        !read_number(at, plan->longest_gap_ns, ns))
        return false;
    *size = (uint32_t)bytes;
    return true;
}

/* Room for all lines is taken at once: the plan bounds their number. */
const char *transfer_plan_take_lines(struct transfer_plan *plan, const char *text) {
    struct pattern_line line = {0};
    if (!transfer_plan_needs_lines(plan))
        return "a pattern that the test does not have";
    if (!plan->lines)
        plan->lines = calloc(plan->line_count, sizeof *plan->lines);
    if (!plan->lines)
        return "out of memory";
    do {
        if (!read_pair(plan, &text, &line.size, &line.gap_ns) ||
            (plan->turns &&
             (*text++ != ':' || !read_pair(plan, &text, &line.response, &line.server_ns))))
            return "a line of a pattern outside of its bounds";
        if (plan->lines_have == plan->line_count)
            return "more lines than the pattern has";
        plan->lines[plan->lines_have++] = line;
    } while (*text++ == ',');
    return text[-1] ? "a list of lines with another character" : NULL;
}

bool transfer_plan_needs_lines(const struct transfer_plan *plan) {
    return plan->turns || (plan->line_count && plan->direction == DIRECTION_REVERSE);
}

/* The rate crossed the connection as decimal text, hence the tolerance. */
bool transfer_plan_has_lines(const struct transfer_plan *plan) {
    if (!transfer_plan_needs_lines(plan))
        return true;
    return plan->lines && plan->lines_have == plan->line_count &&
           (plan->pacing == PACING_NONE ||
            fabs(mean_rate(plan) - plan->rate_pps) <= 1e-3 * plan->rate_pps);
}
