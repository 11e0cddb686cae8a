/* SPDX-License-Identifier: Apache-2.0 */
/* Lower bound for readers that use libpcap: calls pcap_next_ex() for each packet and counts. If the
 * file is damaged, it exits with status 1. */
#include <err.h>
#include <pcap/pcap.h>
#include <stdio.h>

int main(int argc, char **argv) {
    char text[PCAP_ERRBUF_SIZE];
    if (argc != 2)
        errx(2, "usage: libpcap_loop FILE");
    pcap_t *capture = pcap_open_offline(argv[1], text);
    if (!capture)
        errx(1, "%s", text);
    struct pcap_pkthdr *header;
    const u_char *data;
    unsigned long long packets = 0, bytes = 0;
    int got;
    while ((got = pcap_next_ex(capture, &header, &data)) == 1) {
        packets++;
        bytes += header->caplen;
    }
    if (got == PCAP_ERROR)
        errx(1, "%s: %s", argv[1], pcap_geterr(capture));
    printf("%llu packets, %llu bytes\n", packets, bytes);
    pcap_close(capture);
    return 0;
}
