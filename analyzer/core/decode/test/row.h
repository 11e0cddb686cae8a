/* SPDX-License-Identifier: Apache-2.0 */
/* A packet made by hand and the expected result, and the headers that such packets consist of. */
#ifndef WIRETALE_ROW_H
#define WIRETALE_ROW_H

#include <stdint.h>

#define LOOPBACK 0 /* link types as in capture files */
#define ETHER    1
#define PPP      9
#define RAW      101
#define HDLC     104
#define WLAN     105
#define COOKED   113
#define PRISM    119
#define RADIOTAP 127
#define PPI      192
#define COOKED_2 276

struct row {
    const char *name;
    uint16_t link_type;
    const char *bytes;   /* those captured, in hexadecimal digits; blanks are skipped. `+1` at the
                            end:   bytes on the wire that were not captured */
    const char *decoded; /* as describe() has it */
};

/* A header of the least length; without its last byte, which was on the wire; without it on the
 * wire. */
#define LEAST_KEPT(name, link, bytes, last, decoded, cut, absent)                                  \
    {name, link, bytes last, decoded}, {name ", cut", link, bytes " +1", cut}, {                   \
        name ", absent", link, bytes, absent                                                       \
    }

/* The same if both reasons are those of a layer. */
#define LEAST(name, layer, link, bytes, last, decoded, kept)                                       \
    LEAST_KEPT(name, link, bytes, last, decoded, layer "-cut" kept, layer "-short" kept)

/* The same in an IP packet, whose header has the length: `below` is one byte less than `ip`. */
#define LEAST_IN(name, ip, below, bytes, last, decoded, cut, absent)                               \
    {name, RAW, ip bytes last, decoded}, {name ", cut", RAW, ip bytes " +1", cut}, {               \
        name ", absent", RAW, below bytes, absent                                                  \
    }

#define TWICE(x)   x x
#define TIMES_4(x) TWICE(x) TWICE(x)
#define TIMES_6(x) TIMES_4(x) TWICE(x)
#define TIMES_7(x) TIMES_6(x) x
#define TIMES_8(x) TIMES_4(x) TIMES_4(x)
#define ZERO_4     "00000000 "
#define ZERO_7     "00000000 000000 "
#define ZERO_8     "00000000 00000000 "

/* Link headers; the parameters are digits too. Destination, source, type or length: */
#define ETHERNET(type) "020000000001 020000000002 " type " "
#define ETHER_CUT      "020000000001 020000000002 08" /* all but a byte */
#define SNAP(type)     "aaaa03 000000 " type " "      /* 802.2, organization, EtherType */
#define VLAN(id, type) id " " type " "
#define VLANS_7(type)  ETHERNET("8100") TIMES_6(VLAN("0005", "8100")) VLAN("0005", type)
#define VLANS_8(type)  ETHERNET("8100") TIMES_7(VLAN("0005", "8100")) VLAN("0005", type)
#define MPLS           "000101ff " /* label 16, the only one */

/* IP; a length of 0 (V4_TCP) lets the frame end it. Version and header length, traffic class, total
 * length, identification; fragment; time to live, protocol, addresses. check_network() has them. */
#define V4_START(first, len)             first " b8 " len " 0001 "
#define V4_REST(protocol)                " 40 " protocol " 0000 0a000001 0a000002 "
#define V4(len, protocol)                V4_START("45", len) "0000" V4_REST(protocol)
#define V4_IHL(first, len)               V4_START(first, len) "0000" V4_REST("3b")
#define V4_FRAGMENT(len, word, protocol) V4_START("45", len) word V4_REST(protocol)
#define V4_TCP                           V4("0000", "06")
#define V6_ADDRESSES                     "fd000000000000000000000000000001 fe" ZERO_7 ZERO_7 "02 "
#define V6(len, next)                    "6b800000 " len " " next " 40 " V6_ADDRESSES
#define EMPTY                            V4("0014", "3b")         /* 20 bytes, no next header */
#define EMPTY_6                          V6("0000", "3b")         /* 40 bytes */
#define OPTIONS_8(next)                  next "00 0104 00000000 " /* destination options: padding */

/* Ports 1024 and 80, sequence, acknowledgment, data offset, flags, window, checksum, urgent
 * pointer; ports, length, checksum. */
#define TCP(offset)         "0400 0050 00000001 00000002 " offset "1 11 1234 abcd 0000 "
#define UDP(port, len)      "0400 " port " " len " abcd "
#define INNER               ETHERNET("0800") EMPTY
#define VXLAN(port, header) V4("0046", "11") UDP(port, "0032") header " " INNER

#define IN_IP(len) V4(len, "04")

/* A UDP datagram, and the outer one that counts if nothing within it does. */
#define DATAGRAM(len, port, size) V4(len, "11") UDP(port, size)
#define OUTER(n, port)            "ipv4@0 20+" n " p17 1024>" port " t8"

/* 802.11: frame control in little-endian order, duration, three addresses, sequence. */
#define WLAN_START(control) control " 0000 020000000001 020000000002 020000000003 "
#define WLAN_DATA(control)  WLAN_START(control) "0000 "

/* Expected results. */
#define EMPTY_AT(offset)   "ipv4@" offset " 20+0 p59"
#define EMPTY_6_AT(offset) "ipv6@" offset " 40+0 p59"
#define VLANS_7_THEN       TIMES_7("vlan 5, ")
#define VLANS_8_THEN       TIMES_8("vlan 5, ")
#define GRE_OUTER(n)       "ipv4@0 20+" n " p47"
#define UDP_OUTER(port)    "ipv4@0 20+50 p17 1024>" port " t8"
#define NO_OPTIONS(n)      "ipv4@0 20+" n " p6 1024>80 t" n
#define OPTIONS(n, seen)   "ipv4@0 20+" n " p6 1024>80 t" n " options " seen

/* Linux cooked capture: packet type, ARPHRD, address length, address, protocol 4. */
#define COOKED_802_2 "0000 0001 0006 0200000000010000 0004 "

#endif
