/* SPDX-License-Identifier: Apache-2.0 */
/* Opens an interface with libpcap, in the order that libpcap demands: options before
 * pcap_activate(); link type, filter and direction after it. An interface may disappear and return
 * any number of times, so the same steps also run in the reading thread. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/log.h"
#include "device/device.h"
#include "device/headers.h"

#define TIMEOUT_MS 100 /* until the kernel delivers a block that is not full */
#define ANY        "any"

static bool is_number(const char *text) {
    return *text && text[strspn(text, "0123456789")] == '\0';
}

/* A number is the index of an interface, unless an interface has it as its name. */
bool device_name(struct device *device, const char *wanted) {
    char name[IF_NAMESIZE];
    if (is_number(wanted) && !if_nametoindex(wanted)) {
        if (!if_indextoname((unsigned)strtoul(wanted, NULL, 10), name))
            return false;
        wanted = name;
    }
    return snprintf(device->name, sizeof device->name, "%s", wanted) < (int)sizeof device->name;
}

bool device_is_any(const struct device *device) {
    return !strcmp(device->name, ANY);
}

/* `any` always exists. */
static bool device_exists(const struct device *device) {
    return device_is_any(device) || if_nametoindex(device->name);
}

#define SNAPLEN_FILTERED 256

/* libpcap filters packets that were in the ring when the filter was set, after they were cut. If
 * the bytes that the filter needs were cut off, such packets would be lost without being counted.
 */
static uint64_t snaplen_to_ask(const struct settings *settings) {
    bool cut_later = settings->filter && settings->snaplen < SNAPLEN_FILTERED;
    return cut_later ? SNAPLEN_FILTERED : settings->snaplen;
}

/* Translates libpcap's error. Some drivers report a missing interface by other errors, so its
 * existence counts. */
static enum open_result result_of(struct device *device, int status) {
    const char *more = pcap_geterr(device->handle);
    device_refuse(device, "%s%s%s", pcap_statustostr(status), *more ? ": " : "", more);
    switch (status) {
    case PCAP_ERROR_NO_SUCH_DEVICE:
    case PCAP_ERROR_IFACE_NOT_UP: return OPEN_ABSENT;
    case PCAP_ERROR_PERM_DENIED:
    case PCAP_ERROR_PROMISC_PERM_DENIED: return OPEN_DENIED;
    default: return device_exists(device) ? OPEN_WRONG : OPEN_ABSENT;
    }
}

/* The list of sources differs between interfaces, so an unknown name and an unsupported one are
 * different errors. */
static enum open_result set_time_source(struct device *device) {
    const char *wanted = device->capture->settings->time_source;
    int type = wanted ? pcap_tstamp_type_name_to_val(wanted) : 0;
    if (type == PCAP_ERROR)
        return device_refuse(device, "-j %s: no such time source", wanted);
    if (wanted && pcap_set_tstamp_type(device->handle, type))
        return device_refuse(device, "-j %s: not on %s; --list shows what it has", wanted,
                             device->name);
    return OPEN_DONE;
}

/* Nanosecond time stamps are tried first. If the source only has microseconds, they are multiplied
 * when packets are read. */
static enum open_result activate(struct device *device) {
    const struct settings *settings = device->capture->settings;
    pcap_set_snaplen(device->handle, (int)snaplen_to_ask(settings));
    pcap_set_promisc(device->handle, !settings->no_promiscuous);
    pcap_set_timeout(device->handle, TIMEOUT_MS);
    pcap_set_immediate_mode(device->handle, settings->immediate);
    pcap_set_buffer_size(device->handle, (int)settings->ring_bytes);
    pcap_set_tstamp_precision(device->handle, PCAP_TSTAMP_PRECISION_NANO);
    if (set_time_source(device) != OPEN_DONE)
        return OPEN_WRONG;
    int status = pcap_activate(device->handle);
    if (status == PCAP_ERROR_TSTAMP_PRECISION_NOTSUP) {
        pcap_set_tstamp_precision(device->handle, PCAP_TSTAMP_PRECISION_MICRO);
        status = pcap_activate(device->handle);
    }
    return status < 0 ? result_of(device, status) : OPEN_DONE;
}

/* `any` needs the newer header (SLL2), because only that has the interface of each packet. */
static enum open_result set_link_type(struct device *device) {
    const char *wanted = device->capture->settings->link_type;
    if (wanted) {
        int type = pcap_datalink_name_to_val(wanted);
        if (type < 0)
            return device_refuse(device, "-y %s: no such link type", wanted);
        if (pcap_set_datalink(device->handle, type))
            return device_refuse(device, "-y: %s", pcap_geterr(device->handle));
    } else if (device_is_any(device)) {
        (void)pcap_set_datalink(device->handle, DLT_LINUX_SLL2);
    }
    return OPEN_DONE;
}

/* LINKTYPE_ values equal those of DLT_, except for some that differ between systems
 * (pcap-linktype(7)). */
static int file_link_type(int dlt) {
    static const int other[][2] = {{DLT_ATM_RFC1483, 100},
                                   {DLT_RAW, 101},
                                   {DLT_SLIP_BSDOS, 102},
                                   {DLT_PPP_BSDOS, 103},
                                   {DLT_ATM_CLIP, 106}};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (other[i][0] == dlt)
            return other[i][1];
    return dlt;
}

/* A classic file has one link type for all packets. */
static bool fits_file(const struct device *device) {
    const struct description_list *others = &device->capture->descriptions;
    return device->capture->settings->format != RECORD_PCAP || !others->count ||
           others->items[0].link_type == (uint32_t)device->file_link_type;
}

/* The interface is described each time that it is opened, because its speed, address or offloads
 * may have changed. Counts of an unchanged description are continued. */
static enum open_result add_description(struct device *device) {
    const struct settings *settings = device->capture->settings;
    struct description_list *list = &device->capture->descriptions;
    if (!fits_file(device))
        return device_refuse(
            device, "its link type %d is not that of %s, and a classic file (--pcap) has only one",
            device->file_link_type, list->items[0].name);
    struct description described = {.device = device->number,
                                    .filter = settings->filter,
                                    .link_type = (uint32_t)device->file_link_type,
                                    .snaplen = settings->snaplen};
    snprintf(described.name, sizeof described.name, "%s", device->name);
    snprintf(described.facts, sizeof described.facts,
             "wiretale.link/1 time_stamps=%.31s promiscuous=%s",
             settings->time_source ? settings->time_source : "host",
             settings->no_promiscuous || device_is_any(device) ? "no" : "yes");
    device_describe(device->name, &described);
    const char *only = device_direction_filter(device);
    snprintf(described.comment, sizeof described.comment, "%s%s%s%s", only ? "only " : "",
             only ? only : "", only && settings->headers ? "; " : "",
             settings->headers ? "headers only" : "");
    int number = description_add(list, &described);
    if (number < 0)
        return device_refuse(device, "the interface has changed too often");
    device->description = (uint32_t)number;
    device->counts = &list->items[number].counts;
    return OPEN_DONE;
}

/* After pcap_activate() the properties of the handle are known: link type, time stamps and
 * direction. */
static enum open_result set_up(struct device *device) {
    static const enum record_direction known[] = {[CHOOSE_IN] = RECORD_INBOUND,
                                                  [CHOOSE_OUT] = RECORD_OUTBOUND,
                                                  [CHOOSE_BOTH] = RECORD_UNKNOWN};
    enum open_result result;
    if ((result = activate(device)) != OPEN_DONE || (result = set_link_type(device)) != OPEN_DONE ||
        (result = device_set_filter(device)) != OPEN_DONE ||
        (result = device_set_match(device)) != OPEN_DONE ||
        (result = device_set_direction(device)) != OPEN_DONE)
        return result;
    if (pcap_setnonblock(device->handle, 1, device->reason) < 0)
        return device_refuse(device, "non-blocking mode: %s", pcap_geterr(device->handle));
    device->file_link_type = file_link_type(pcap_datalink(device->handle));
    if (device->capture->settings->headers && !headers_known(device->file_link_type))
        return device_refuse(device,
                             "--headers: the headers of link type %s are not known; -s 256?",
                             pcap_datalink_val_to_name(pcap_datalink(device->handle)));
    if (device->capture->mirror && device->file_link_type != DLT_EN10MB)
        return device_refuse(device, "--mirror: expected an Ethernet interface by its name");
    device->time_factor =
        pcap_get_tstamp_precision(device->handle) == PCAP_TSTAMP_PRECISION_NANO ? 1 : 1000;
    device->direction = known[device->capture->settings->direction];
    return add_description(device);
}

enum open_result device_open(struct device *device) {
    if (!device_exists(device)) {
        device_refuse(device, "no such interface");
        return OPEN_ABSENT;
    }
    device->index = if_nametoindex(device->name);
    device->handle = pcap_create(device->name, device->reason);
    if (!device->handle)
        return OPEN_WRONG;
    enum open_result result = set_up(device);
    if (result != OPEN_DONE) {
        pcap_close(device->handle);
        device->handle = NULL;
        return result;
    }
    device->fd = pcap_get_selectable_fd(device->handle);
    fcntl(device->fd, F_SETFD, FD_CLOEXEC); /* libpcap leaves it inheritable */
    device->counted = (struct pcap_stat){0};
    return OPEN_DONE;
}

/* While no chunk is empty, the ring fills because of the disk. */
static void count_drops(struct device *device, uint32_t dropped) {
    struct interface_counts *counts = device->counts;
    if (!device->is_behind) {
        counter_add(&counts->dropped_kernel, dropped);
        return;
    }
    counter_add(&counts->received, dropped);
    counter_add(device->capture->queue.is_held ? &counts->dropped_held : &counts->dropped_queue,
                dropped);
}

/* libpcap's counters have 32 bits and restart with each handle, so differences are added. That of
 * the interface comes from /sys and falls back to 0 when the interface is removed. */
void device_count(struct device *device) {
    struct pcap_stat now, last = device->counted;
    if (!device->handle || !device->counts || pcap_stats(device->handle, &now))
        return;
    counter_add(&device->counts->kernel_received, now.ps_recv - last.ps_recv);
    count_drops(device, now.ps_drop - last.ps_drop);
    if (now.ps_ifdrop - last.ps_ifdrop > INT32_MAX)
        now.ps_ifdrop = last.ps_ifdrop;
    counter_add(&device->counts->dropped_interface, now.ps_ifdrop - last.ps_ifdrop);
    device->counted = now;
}

/* Counts are kept, because the interface may return under the same description. */
void device_close(struct device *device) {
    if (!device->handle)
        return;
    device_count(device); /* the next handle continues with these counts */
    pcap_close(device->handle);
    device->handle = NULL;
}
