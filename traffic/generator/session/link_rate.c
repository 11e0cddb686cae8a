/* SPDX-License-Identifier: Apache-2.0 */
#include "session/link_rate.h"

#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "transfer/units.h"

/* Their speed is a constant of the driver, whatever they carry. */
static const char *const nominal_drivers[] = {"veth",        "tun",        "bridge", "dummy",
                                              "openvswitch", "virtio_net", "vmxnet3"};

static bool ask_interface(int fd, const char *name, void *answer) {
    struct ifreq request = {.ifr_data = answer};
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    return !ioctl(fd, SIOCETHTOOL, &request);
}

static bool is_nominal(int fd, const char *name) {
    struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
    if (!ask_interface(fd, name, &driver))
        return true;
    driver.driver[sizeof driver.driver - 1] = 0;
    for (size_t i = 0; i < sizeof nominal_drivers / sizeof *nominal_drivers; i++)
        if (!strcmp(driver.driver, nominal_drivers[i]))
            return true;
    return false;
}

static uint64_t interface_bps(const char *name) {
    struct ethtool_cmd settings = {.cmd = ETHTOOL_GSET};
    uint64_t bps = 0;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    if (!is_nominal(fd, name) && ask_interface(fd, name, &settings)) {
        uint32_t speed = ethtool_cmd_speed(&settings); /* Mbit/s */
        bps = speed == (uint32_t)SPEED_UNKNOWN ? 0 : speed * UINT64_C(1000000);
    }
    close(fd);
    return bps;
}

uint64_t link_rate_bps(const union endpoint *own) {
    const char *emulated = getenv(LINK_RATE_VARIABLE);
    double bps, pps;
    struct ifaddrs *list = NULL;
    uint64_t found = 0;
    if (emulated && units_rate(emulated, &bps, &pps) && bps >= 1 && bps < 1e15)
        return (uint64_t)bps;
    if (getifaddrs(&list))
        return 0;
    for (struct ifaddrs *at = list; at && !found; at = at->ifa_next)
        if (at->ifa_addr && at->ifa_addr->sa_family == own->address.sa_family &&
            !(at->ifa_flags & IFF_LOOPBACK) &&
            endpoint_same_host((const union endpoint *)at->ifa_addr, own))
            found = interface_bps(at->ifa_name);
    freeifaddrs(list);
    return found;
}
