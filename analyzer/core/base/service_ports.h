/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of services from 1024 on, so that an end of a connection is known as the server if its
 * handshake was not captured: registered by IANA, and others that their software uses by default.
 */
#ifndef WIRETALE_SERVICE_PORTS_H
#define WIRETALE_SERVICE_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYSTEM_PORTS 1024u /* ports below it are of services (RFC 6335 section 6) */

/* Ascending. Ephemeral ports of Windows XP and BSD (1024 to 5000) are among them: both ends may
 * have such a port, so that one alone decides. */
static const uint16_t service_ports[] = {
    /* clang-format off */
    1080, 1194, 1433, 1434, 1521, 1701, 1720, 1723, 1812, 1813, 1883, 2000, 2049, 2055, 2082, 2083,
    2086, 2087, 2095, 2096, 2181, 2222, 2375, 2376, 2379, 2380, 2404, 2483, 2484, 2775, 3000, 3128,
    3260, 3268, 3269, 3306, 3389, 3478, 3690, 3868, 4222, 4369, 4443, 4500, 4730, 4840, 5000, 5001,
    5038, 5060, 5061, 5201, 5222, 5223, 5269, 5432, 5601, 5671, 5672, 5683, 5684, 5900, 5901, 5938,
    5984, 5985, 5986, 6000, 6001, 6002, 6010, 6379, 6443, 6514, 6633, 6653, 6667, 6697, 7000, 7001,
    7077, 7443, 7474, 7687, 8000, 8008, 8009, 8080, 8081, 8086, 8088, 8090, 8123, 8125, 8161, 8200,
    8291, 8333, 8443, 8500, 8530, 8531, 8554, 8600, 8728, 8883, 8888, 9000, 9001, 9042, 9090, 9091,
    9092, 9093, 9100, 9160, 9200, 9300, 9418, 9443, 9600, 9999, 10000, 10050, 10051, 10250, 11211,
    15672, 16509, 18080, 20000, 25565, 25672, 26257, 27017, 27018, 27019, 28015, 32400, 34962,
    34963, 34964, 44818, 47808, 48898, 50000, 50051, 61613, 61614, 61616,
    /* clang-format on */
};

static inline bool is_service_port(uint16_t port) {
    size_t least = 0, most = sizeof service_ports / sizeof *service_ports;
    if (port < SYSTEM_PORTS)
        return port;
    while (least < most) {
        size_t middle = (least + most) / 2;
        if (service_ports[middle] < port)
            least = middle + 1;
        else
            most = middle;
    }
    return least < sizeof service_ports / sizeof *service_ports && service_ports[least] == port;
}

#endif
