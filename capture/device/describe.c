/* SPDX-License-Identifier: Apache-2.0 */
/* Describes an interface by ethtool ioctls, which need no privilege. A question that the driver
 * does not answer leaves its field empty. */
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device/device.h"

#define SPEED_UNKNOWN_MBIT 65535u

/* Asks the driver. Returns false if it does not support the question. */
static bool ask(int fd, const char *name, void *question) {
    struct ifreq request = {.ifr_data = question};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    return !ioctl(fd, SIOCETHTOOL, &request);
}

/* Offloads are part of the description, because they make captured packets differ from those on the
 * wire: joined segments, missing checksums. */
static void describe_offloads(int fd, const char *name, struct description *description) {
    static const struct {
        const char *name;
        uint32_t command, mask;
    } offloads[] = {
        {"rx-checksumming", ETHTOOL_GRXCSUM, ~0u},
        {"tx-checksumming", ETHTOOL_GTXCSUM, ~0u},
        {"tso", ETHTOOL_GTSO, ~0u},
        {"gso", ETHTOOL_GGSO, ~0u},
        {"gro", ETHTOOL_GGRO, ~0u},
        {"lro", ETHTOOL_GFLAGS, ETH_FLAG_LRO},
        {"rx-vlan", ETHTOOL_GFLAGS, ETH_FLAG_RXVLAN},
    };
    size_t used = 0;
    for (size_t i = 0; i < sizeof offloads / sizeof *offloads; i++) {
        struct ethtool_value question = {.cmd = offloads[i].command};
        if (!ask(fd, name, &question))
            continue;
        used += (size_t)snprintf(description->comment + used, sizeof description->comment - used,
                                 "%s%s %s", used ? ", " : "offloads: ", offloads[i].name,
                                 question.data & offloads[i].mask ? "on" : "off");
    }
}

/* Driver, firmware and bus identify the adapter, if time stamps or drops look wrong. */
static void describe_driver(int fd, const char *name, struct description *description) {
    struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
    if (!ask(fd, name, &driver))
        return;
    snprintf(description->hardware, sizeof description->hardware, "%.31s %.31s%s%.31s",
             driver.driver, driver.fw_version, *driver.fw_version ? " " : "", driver.bus_info);
    size_t end = strlen(description->hardware);
    while (end && description->hardware[end - 1] == ' ')
        description->hardware[--end] = '\0';
}

static void describe_address(int fd, const char *name, struct description *description) {
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (ioctl(fd, SIOCGIFHWADDR, &request) || request.ifr_hwaddr.sa_family != ARPHRD_ETHER)
        return;
    memcpy(description->mac, request.ifr_hwaddr.sa_data, sizeof description->mac);
    description->has_mac = true;
}

/* Virtual interfaces report no speed, or one that means unknown. */
static void describe_speed(int fd, const char *name, struct description *description) {
    struct ethtool_cmd command = {.cmd = ETHTOOL_GSET};
    if (!ask(fd, name, &command))
        return;
    uint32_t mbit = ethtool_cmd_speed(&command);
    if (mbit && mbit != (uint32_t)SPEED_UNKNOWN && mbit != SPEED_UNKNOWN_MBIT)
        description->speed_bps = mbit * UINT64_C(1000000);
}

void device_describe(const char *name, struct description *description) {
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    describe_offloads(fd, name, description);
    describe_driver(fd, name, description);
    describe_address(fd, name, description);
    describe_speed(fd, name, description);
    close(fd);
}
