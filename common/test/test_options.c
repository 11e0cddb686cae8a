/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines by their table: values reach their members, and each error is one line. */
#include "common/options.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/test/check.h"

struct settings {
    bool is_quiet;
    uint64_t size, count, port, time_ns, way, family;
    const char *text;
};

static const char *const ways[] = {"there", "back", NULL};
#define AT(member) offsetof(struct settings, member)
static const struct option_row rows[] = {
    {.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, .offset = AT(is_quiet)},
    {.name = "size|length",
     .letter = 's',
     .kind = OPTION_SIZE,
     .offset = AT(size),
     .min = 1,
     .max = 1000},
    {.name = "count", .letter = 'n', .kind = OPTION_COUNT, .offset = AT(count)},
    {.name = "port",
     .letter = 'p',
     .kind = OPTION_PORT,
     .offset = AT(port),
     .min = 1,
     .max = 65535},
    {.name = "time",
     .letter = 't',
     .kind = OPTION_TIME,
     .offset = AT(time_ns),
     .min = 1,
     .max = 10000000000},
    {.name = "way",
     .kind = OPTION_WORD,
     .offset = AT(way),
     .argument = "there|back",
     .words = ways},
    {.name = "six", .letter = '6', .kind = OPTION_SET, .offset = AT(family), .max = 6},
    {.name = "text", .kind = OPTION_TEXT, .offset = AT(text)},
    {.name = "x", .kind = OPTION_HINT, .hint = "there is no x"},
    {.name = "help", .letter = 'h', .kind = OPTION_HELP},
};
static const struct command_line command = {rows, sizeof rows / sizeof *rows, "usage: @\n"};

static size_t read_into(struct settings *settings, const char **operands, char *line) {
    char *argv[16];
    int argc = 0;
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    return options_read(&command, settings, argc, argv, operands, 1);
}

static void test_values(void) {
    struct settings settings = {0};
    const char *operand = NULL;
    char line[] = "-qs 9 --count=2k one -p80 -t 1.5s --way back -6 --text=";
    char other[] = "--length 7 -- -q";
    CHECK_INT(read_into(&settings, &operand, line), 1);
    CHECK(settings.is_quiet && !strcmp(operand, "one") && !*settings.text);
    CHECK_INT(settings.size, 9);
    CHECK(settings.count == 2000 && settings.port == 80);
    CHECK_INT(settings.time_ns, 1500000000);
    CHECK(settings.way == 1 && settings.family == 6);
    CHECK_INT(read_into(&settings, &operand, other), 1);
    CHECK(settings.size == 7 && !strcmp(operand, "-q"));
}

/* The error ends the process, so it is read from a child. */
static void check_error(const char *arguments, const char *says) {
    char line[100], error[500] = "";
    int pair[2], status;
    CHECK(!pipe(pair));
    pid_t child = fork();
    if (!child) {
        const char *operand;
        struct settings settings;
        dup2(pair[1], STDERR_FILENO);
        strcpy(line, arguments);
        read_into(&settings, &operand, line);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), EXIT_USAGE);
    CHECK(read(pair[0], error, sizeof error - 1) > 0);
    CHECK(strstr(error, says) && strchr(error, '\n') == error + strlen(error) - 1);
}

int main(void) {
    test_values();
    check_error("--conut 1", "no option --conut (did you mean --count?)");
    check_error("--szie 1", "no option --szie (did you mean --size?)");
    check_error("--nothing", "no option --nothing; see");
    check_error("-x", "no option -x: there is no x");
    check_error("-s", "-s: expected a value");
    check_error("--quiet=1", "--quiet: expected no value");
    check_error("-s 1001", "-s '1001': expected a size as in 1000, 64k or 64KiB, at most 1000");
    check_error("--time 0", "--time '0': expected a time as in 10, 1.5s or 200ms, above 0");
    check_error("-p 0", "-p '0': expected 1 to 65535");
    check_error("--way up", "--way 'up': expected there|back");
    check_error("one two", "two: expected no further argument");
    return 0;
}
