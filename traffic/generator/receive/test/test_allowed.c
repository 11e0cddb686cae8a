/* SPDX-License-Identifier: Apache-2.0 */
/* Networks of --allow, beside addresses inside of them and next to them. */
#include "receive/allowed.h"

#include <arpa/inet.h>

#include "common/test/check.h"

static union endpoint at(const char *address) {
    union endpoint endpoint = {0};
    if (inet_pton(AF_INET, address, &endpoint.ipv4.sin_addr) == 1)
        endpoint.address.sa_family = AF_INET;
    else if (inet_pton(AF_INET6, address, &endpoint.ipv6.sin6_addr) == 1)
        endpoint.address.sa_family = AF_INET6;
    CHECK(endpoint.address.sa_family);
    return endpoint;
}

static bool allows(const char *network, const char *address) {
    struct allowed_networks networks = {0};
    const char *expected;
    union endpoint peer = at(address);
    CHECK(allowed_networks_take(&networks, network, &expected));
    return allowed_networks_contain(&networks, &peer);
}

static void test_networks(void) {
    CHECK(allows("192.0.2.0/24", "192.0.2.255") && !allows("192.0.2.0/24", "192.0.3.0"));
    CHECK(allows("10.0.0.0/9", "10.127.255.255") && !allows("10.0.0.0/9", "10.128.0.0"));
    CHECK(allows("192.0.2.7", "192.0.2.7") && !allows("192.0.2.7", "192.0.2.6"));
    CHECK(allows("0.0.0.0/0", "203.0.113.9") && !allows("0.0.0.0/0", "2001:db8::1"));
    CHECK(allows("2001:db8::/33", "2001:db8:7fff::1") &&
          !allows("2001:db8::/33", "2001:db8:8000::"));
    CHECK(allows("::1", "::1") && !allows("::1", "::2") && !allows("::/0", "192.0.2.1"));
}

static void test_several_and_none(void) {
    struct allowed_networks networks = {0};
    const char *expected;
    union endpoint one = at("192.0.2.1"), other = at("198.51.100.1"), third = at("::1");
    CHECK(allowed_networks_contain(&networks, &one) && allowed_networks_contain(&networks, &third));
    CHECK(allowed_networks_take(&networks, "192.0.2.0/24", &expected));
    CHECK(allowed_networks_take(&networks, "::1", &expected));
    CHECK(allowed_networks_contain(&networks, &one) && allowed_networks_contain(&networks, &third));
    CHECK(!allowed_networks_contain(&networks, &other));
    while (networks.count < MAX_ALLOWED)
        CHECK(allowed_networks_take(&networks, "10.0.0.0/8", &expected));
    CHECK(!allowed_networks_take(&networks, "10.0.0.0/8", &expected));
}

static void test_what_is_none(void) {
    static const char *const wrong[] = {"",       "/8",         "10.0.0.1/8",    "10.0.0.0/33",
                                        "host",   "10.0.0.0/",  "10.0.0.0/8/8",  "2001:db8::/129",
                                        "10.0.0", "10.0.0.0/x", "2001:db8::1/64"};
    struct allowed_networks networks = {0};
    const char *expected;
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!allowed_networks_take(&networks, wrong[i], &expected));
    CHECK_INT(networks.count, 0);
}

int main(void) {
    test_networks();
    test_several_and_none();
    test_what_is_none();
    return 0;
}
