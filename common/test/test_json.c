/* SPDX-License-Identifier: Apache-2.0 */
/* JSON stays within its quotes, and a stream into memory within its buffer. */
#include "common/json.h"

#include <string.h>

#include "common/test/check.h"

static void test_members_and_escapes(void) {
    char text[256];
    struct json json = {.out = fmemopen(text, sizeof text, "w")};
    json_open(&json, NULL, '{');
    json_text(&json, "a", "x\"y\\z\n\x7f\xff");
    json_text(&json, "b", "\xc3\xa9 \xe2\x80\xae \xc2\x9b \xf0\x9f\x90\x8b \xed\xa0\x80");
    json_count(&json, "c", INT64_MAX);
    json_open(&json, "d", '[');
    json_bool(&json, NULL, true);
    json_text(&json, NULL, NULL);
    json_count(&json, NULL, -1);
    json_decimal(&json, NULL, 0.1, true);
    json_decimal(&json, NULL, 1, false);
    json_close(&json, ']');
    json_close(&json, '}');
    CHECK(!fclose(json.out));
    CHECK(!strcmp(text, "{\"a\":\"x\\\"y\\\\z\\u000a\\u007f\\udcff\","
                        "\"b\":\"\xc3\xa9 \\u202e \\u009b \xf0\x9f\x90\x8b \\udced\\udca0\\udc80\","
                        "\"c\":9223372036854775807,\"d\":[true,null,null,0.1,null]}"));
}

static void test_a_full_buffer_is_an_error(void) {
    char small[16];
    memset(small, 'z', sizeof small);
    struct json json = {.out = fmemopen(small, 8, "w")};
    json_text(&json, "name", "a long value");
    CHECK(fclose(json.out));
    CHECK_INT(small[8], 'z');
}

int main(void) {
    test_members_and_escapes();
    test_a_full_buffer_is_an_error();
    return 0;
}
