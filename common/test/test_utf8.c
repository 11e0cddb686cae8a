/* SPDX-License-Identifier: Apache-2.0 */
/* Text for terminals: what could steer one is replaced, the rest stays, and buffers are kept to. */
#include "common/utf8.h"

#include <string.h>

#include "common/test/check.h"

#define OUT "\xEF\xBF\xBD" /* U+FFFD */

static void check_printable(const char *text, const char *expected) {
    char copied[128], put[128] = ""; /* nothing is written for nothing */
    FILE *out = fmemopen(put, sizeof put, "w");
    CHECK_INT(utf8_copy_printable(copied, sizeof copied, text, strlen(text)), strlen(expected));
    CHECK(!strcmp(copied, expected));
    utf8_put_printable(out, text);
    CHECK(!fclose(out) && !strcmp(put, expected));
}

static void test_what_steers_a_terminal_is_replaced(void) {
    check_printable("", "");
    check_printable("a b~\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x90\x8b",
                    "a b~\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x90\x8b");
    check_printable("x\nfake: line\r\t", "x" OUT "fake: line" OUT OUT);
    check_printable("\x1b]0;title\x07\x7f", OUT "]0;title" OUT OUT);
    check_printable("\xc2\x9b[2J", OUT "[2J");                     /* CSI, a C1 control */
    check_printable("\x9b[2J\xff\xc3", OUT "[2J" OUT OUT);         /* not UTF-8 */
    check_printable("\xed\xa0\x80\xc0\x8a", OUT OUT OUT OUT OUT);  /* surrogate, overlong */
    check_printable("\xe2\x80\xaegpj\xe2\x81\xa9", OUT "gpj" OUT); /* bidirectional */
    check_printable("\xe2\x80\x8b\xc2\xa0\xe2\x80\xa8",
                    OUT OUT OUT);             /* invisible, line separator */
    check_printable("\xf3\xa0\x81\x81", OUT); /* a tag */
}

static void test_a_copy_is_cut_at_a_character_and_marked(void) {
    char out[5], longer[9];
    CHECK_INT(utf8_copy_printable(out, sizeof out, "ab\n", 3), 4); /* U+FFFD takes 3 bytes */
    CHECK(!strcmp(out, "a" UTF8_CUT));
    CHECK_INT(utf8_copy(longer, sizeof longer, "abcdefgh", 8), 8);
    CHECK(!strcmp(longer, "abcdefgh"));
    CHECK_INT(utf8_copy(longer, sizeof longer, "abcdefghi", 9), 8);
    CHECK(!strcmp(longer, "abcde" UTF8_CUT));
    CHECK_INT(utf8_copy(longer, sizeof longer, "abcd\xc3\xa9ghi", 9),
              7); /* the character is 2 bytes */
    CHECK(!strcmp(longer, "abcd" UTF8_CUT));
    CHECK_INT(utf8_copy(out, 4, "abcd", 4), 3);
    CHECK(!strcmp(out, UTF8_CUT));
    CHECK_INT(utf8_copy(out, 3, "abcd", 4), 2);
    CHECK(!strcmp(out, "ab"));
    CHECK_INT(utf8_copy_printable(out, sizeof out, "a\n", 2), 4);
    CHECK_INT(utf8_copy_printable(out, sizeof out, "abc\0d", 5), 3);
    CHECK_INT(utf8_copy(out, sizeof out, "\x1b\xff", 2), 4); /* only malformed bytes */
    CHECK(!strcmp(out, "\x1b" OUT));
}

static void test_code_points(void) {
    CHECK_INT(utf8_code_point("A", 1), 'A');
    CHECK_INT(utf8_code_point("\xc3\xa9", 2), 0xe9);
    CHECK_INT(utf8_code_point("\xe2\x80\xae", 3), 0x202e);
    CHECK_INT(utf8_code_point("\xf4\x8f\xbf\xbf", 4), 0x10ffff);
}

int main(void) {
    test_what_steers_a_terminal_is_replaced();
    test_a_copy_is_cut_at_a_character_and_marked();
    test_code_points();
    return 0;
}
