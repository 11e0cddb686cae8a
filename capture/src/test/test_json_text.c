/* SPDX-License-Identifier: Apache-2.0 */
/* JSON stays within its buffer and its quotes. */
#include <string.h>

#include "../../../common/check.h"
#include "json_text.h"

int main(void) {
    char text[256];
    struct json_text json = {.text = text, .room = sizeof text - 1};
    json_begin(&json, NULL, '{');
    json_string(&json, "a", "x\"y\\z\n\xff");
    json_number(&json, "b", INT64_MIN);
    json_begin(&json, "c", '[');
    json_bool(&json, NULL, true);
    json_null(&json, NULL);
    json_end(&json, ']');
    json_end(&json, '}');
    text[json.used] = '\0';
    CHECK(!strcmp(
        text,
        "{\"a\":\"x\\\"y\\\\z\\u000a\\ufffd\",\"b\":-9223372036854775808,\"c\":[true,null]}"));

    char small[16];
    memset(small, 'z', sizeof small);
    struct json_text cut = {.text = small, .room = 8};
    json_string(&cut, "name", "a long value");
    CHECK(cut.full && cut.used <= 8);
    CHECK_INT(small[8], 'z');
    return 0;
}
