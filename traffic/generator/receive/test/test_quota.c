/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas at given times: buckets fill evenly, grants that run are not spent twice, and a full table
 * forgets the address that has used the least. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "common/test/check.h"
#include "receive/quota.h"

#define S(seconds) ((seconds)*NS_PER_S)

static char error[ERROR_SIZE];

static union endpoint ipv4(uint32_t address) {
    union endpoint endpoint = {0};
    endpoint.address.sa_family = AF_INET;
    endpoint.ipv4.sin_addr.s_addr = htonl(address);
    return endpoint;
}

static union endpoint ipv6(const char *address) {
    union endpoint endpoint = {0};
    endpoint.address.sa_family = AF_INET6;
    CHECK_INT(inet_pton(AF_INET6, address, &endpoint.ipv6.sin6_addr), 1);
    return endpoint;
}

static struct quota quota_of(const char *text) {
    struct quota quota = {0};
    const char *expected;
    CHECK(quota_take(&quota, text, &expected));
    return quota;
}

static void test_texts(void) {
    static const char *const wrong[] = {"10G",     "10G/",     "/24h",  "0/1h",         "1G/0",
                                        "1G/10ms", "1G/24h/2", "-1/1h", "1e30/1h",      "1G/-1h",
                                        "x/1h",    "1G/x",     "",      "1G/9999999999"};
    struct quota quota = quota_of("10G/24h");
    const char *expected;
    CHECK(quota.bytes == UINT64_C(10000000000) && quota.ns == S(86400));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!quota_take(&quota, wrong[i], &expected));
}

static void test_a_bucket_fills_evenly(void) {
    struct quota quota = quota_of("1000/100");
    union endpoint one = ipv4(1), other = ipv4(2);
    CHECK_INT(quota_grant(&quota, &one, 600, S(5), error), 600);
    CHECK_INT(quota_grant(&quota, &one, 600, S(5), error), 0);
    CHECK(strstr(error, "400 B left"));
    CHECK_INT(quota_grant(&quota, &other, 600, S(5), error), 600);
    CHECK_INT(quota_grant(&quota, &one, 0, S(5), error), 400); /* all that is left */
    CHECK_INT(quota_grant(&quota, &one, 0, S(6), error), 0);   /* 10 bytes, less than a block */
    CHECK_INT(quota_grant(&quota, &one, 200, S(25), error), 200);
    quota_return(&quota, &one, 200, 50);
    quota_return(&quota, &one, 400, 410); /* a test that exceeded its grant by 10 */
    CHECK_INT(quota_grant(&quota, &one, 0, S(25), error), 140);
    CHECK_INT(quota_grant(&quota, &one, 0, S(1000), error), 1000);
    free(quota.list);
}

static void test_ipv6_counts_by_network(void) {
    struct quota quota = quota_of("1000/100");
    union endpoint one = ipv6("2001:db8:0:1::1"), beside = ipv6("2001:db8:0:1:ffff::2"),
                   other = ipv6("2001:db8:0:2::1");
    CHECK_INT(quota_grant(&quota, &one, 1000, S(1), error), 1000);
    CHECK_INT(quota_grant(&quota, &beside, 32, S(1), error), 0);
    CHECK_INT(quota_grant(&quota, &other, 32, S(1), error), 32);
    free(quota.list);
}

static void test_a_flood_of_addresses_hides_no_use(void) {
    struct quota quota = quota_of("1000/100000");
    union endpoint heavy = ipv4(1), runs = ipv4(2);
    CHECK_INT(quota_grant(&quota, &heavy, 1000, S(1), error), 1000);
    quota_return(&quota, &heavy, 1000, 1000);
    CHECK_INT(quota_grant(&quota, &runs, 32, S(1), error), 32);
    for (uint32_t i = 0; i < 3 * MAX_QUOTA_ADDRESSES; i++) {
        union endpoint next = ipv4(100 + i);
        CHECK_INT(quota_grant(&quota, &next, 100, S(1), error), 100);
        quota_return(&quota, &next, 100, 100);
    }
    CHECK_INT(quota.count, MAX_QUOTA_ADDRESSES);
    CHECK_INT(quota_grant(&quota, &heavy, 100, S(1), error), 0);
    CHECK_INT(quota_grant(&quota, &runs, 969, S(1), error), 0);
    CHECK_INT(quota_grant(&quota, &runs, 968, S(1), error), 968);
    free(quota.list);
}

int main(void) {
    test_texts();
    test_a_bucket_fills_evenly();
    test_ipv6_counts_by_network();
    test_a_flood_of_addresses_hides_no_use();
    return 0;
}
