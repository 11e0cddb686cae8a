/* SPDX-License-Identifier: Apache-2.0 */
/* Where --headers cuts: behind the transport header, however it is wrapped, and never outside the
 * packet. tests/capture/test_headers.py compares it with `wiretale cut --headers`. */
#include "device/headers.h"

#include <pcap/dlt.h>
#include <stdlib.h>
#include <string.h>

#include "common/test/check.h"

#define MACS "020000000001020000000002"
#define IPV4 "0800" IPV4_OF("06")
#define IPV6 "60000000002006400000000000000000000000000000000100000000000000000000000000000002"
#define TCP_24                                                                                     \
    "0050c350000000010000000060100100000000000204"                                                 \
    "05b4"
#define UDP                                                                                        \
    "c35000350020"                                                                                 \
    "0000"
#define DATA                                                                                       \
    "5365637265742077"                                                                             \
    "6f7264732e2e2e2e"

#define IPV4_OF(protocol)                                                                          \
    "4500004000004000"                                                                             \
    "40" protocol "00000a0000010a000002"
#define UDP_TO(port) "c350" port "00400000"

static const struct {
    const char *headers, *payload; /* in hexadecimal */
    int link_type;
} packets[] = {
    {MACS IPV4 TCP_24, DATA, DLT_EN10MB},
    {MACS "8100000a8100000b" IPV4 TCP_24, DATA, DLT_EN10MB},
    {MACS "86dd" IPV6 TCP_24, DATA, DLT_EN10MB},
    {MACS "0800" IPV4_OF("11") UDP, DATA, DLT_EN10MB},
    {MACS "0800" IPV4_OF("11") UDP_TO("12b5") "0800000000002a00" MACS IPV4 TCP_24, DATA,
     DLT_EN10MB}, /* VXLAN */
    {MACS "0800" IPV4_OF("11") UDP_TO("17c1") "0100655800002a0000000000" MACS IPV4 TCP_24, DATA,
     DLT_EN10MB}, /* GENEVE with an option */
    {MACS "0800" IPV4_OF("2f") "100088be00000001"
                               "1000000000000000" MACS IPV4 TCP_24,
     DATA, DLT_EN10MB}, /* ERSPAN */
    {MACS "0800" IPV4_OF("2f") "00000800" IPV4_OF("06") TCP_24, DATA, DLT_EN10MB},
    {MACS "8847"
          "00010040"
          "00020140" IPV4_OF("06") TCP_24,
     DATA, DLT_EN10MB},
    {MACS "0800" IPV4_OF("01") "0301000000000000" IPV4_OF("11") UDP, DATA, DLT_EN10MB},
    {MACS "0800" IPV4_OF("01") "0800000000010001", DATA, DLT_EN10MB}, /* the data of a ping */
    {MACS "0800"
          "4500004000002001"
          "4006"
          "00000a0000010a000002",
     DATA, DLT_EN10MB}, /* fragment */
    {MACS "88cc", DATA, DLT_EN10MB},
    {MACS "0026", DATA, DLT_EN10MB}, /* IEEE 802.3 */
    {"00000001000602000000000100000800" IPV4_OF("06") TCP_24, DATA, DLT_LINUX_SLL},
    {"0800000000000002000100060200000000010000" IPV4_OF("06") TCP_24, DATA, DLT_LINUX_SLL2},
    {IPV4_OF("06") TCP_24, DATA, 101},
    {"", DATA, DLT_IEEE802_11},
};

static uint32_t from_hex(const char *text, uint8_t *to) {
    uint32_t size = (uint32_t)strlen(text) / 2;
    for (uint32_t i = 0; i < size; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1], 0};
        to[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return size;
}

/* A copy of exactly its size, so that a sanitizer sees each byte that is read behind it. */
static uint32_t end_in_copy(int link_type, const uint8_t *data, uint32_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    uint32_t end = headers_end(link_type, copy, size);
    free(copy);
    return end;
}

/* Whole, cut at each byte, and with bytes that are drawn. */
static void test_packets(void) {
    uint8_t data[512];
    for (size_t i = 0; i < sizeof packets / sizeof *packets; i++) {
        int type = packets[i].link_type;
        uint32_t headers = from_hex(packets[i].headers, data);
        uint32_t size = headers + from_hex(packets[i].payload, data + headers);
        CHECK_INT(end_in_copy(type, data, size), headers);
        for (uint32_t most = 0; most < headers; most++)
            CHECK(end_in_copy(type, data, most) <= most);
        for (unsigned drawn = 0; drawn < 20000; drawn++) {
            data[rand() % (int)size] = (uint8_t)rand();
            CHECK(end_in_copy(type, data, size) <= size);
        }
    }
}

int main(void) {
    test_packets();
    CHECK(headers_known(DLT_EN10MB) && headers_known(101) && !headers_known(DLT_IEEE802_11));
    return 0;
}
