/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: one line each, with or without the name, and none if a pipe is full. */
#include "common/log.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/test/check.h"

static int pair[2];

static void check_line(const char *expected) {
    char line[4096] = "";
    CHECK(read(pair[0], line, sizeof line - 1) >= 0 || !*expected);
    CHECK(!strcmp(line, expected));
}

int main(void) {
    char much[5000], line[4096];
    CHECK(!pipe2(pair, O_NONBLOCK));
    CHECK_INT(dup2(pair[1], STDERR_FILENO), STDERR_FILENO);
    log_set_program("/usr/bin/wiretale", "send");
    CHECK(!strcmp(program_name(), "wiretale send") && !strcmp(program_base_name(), "wiretale"));
    log_warning("%d of %s", 3, "4");
    check_line("wiretale send: 3 of 4\n");
    log_plain("alone");
    check_line("alone\n");
    log_info("seen");
    check_line("wiretale send: seen\n");
    set_quiet();
    log_info("not seen");
    check_line("");
    memset(much, 'm', sizeof much);
    much[sizeof much - 1] = 0;
    log_plain("%s", much);
    CHECK_INT(read(pair[0], line, sizeof line), 2047);
    CHECK_INT(line[2046], '\n');
    while (write(pair[1], much, sizeof much) > 0)
        ;
    log_warning("dropped");
    while (read(pair[0], line, sizeof line) > 0)
        CHECK(!memmem(line, sizeof line, "dropped", 7));
    return 0;
}
