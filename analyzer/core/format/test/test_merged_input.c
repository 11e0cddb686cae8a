/* SPDX-License-Identifier: Apache-2.0 */
/* Packet by packet as libpcap reads them: every sample, and every capture beside the repository. */
#include "format/merged_input.h"

#include <pcap.h>
#include <string.h>

#include "common/test/check.h"
#include "common/test/folder.h"

#define FCS_MAX 4

static unsigned files, packets_compared, refused_by_libpcap, shorter_in_libpcap, groups_kept;

/* libpcap 1.10.3 takes the unsigned seconds and microseconds of a pcap file as signed: beyond 2^31,
 * 2^32 of either are missing there. */
static bool same_time(int64_t ours, int64_t theirs) {
    return ours == TIME_UNKNOWN || (ours - theirs) % (INT64_C(1000) << 32) == 0;
}

/* Without the frame check sequence, which libpcap leaves at the end. */
static bool same_packet(const struct packet *ours, const struct pcap_pkthdr *header,
                        const uint8_t *data) {
    int64_t time_ns = (int64_t)header->ts.tv_sec * 1000000000 + header->ts.tv_usec;
    return same_time(ours->time_ns, time_ns) && ours->captured <= header->caplen &&
           ours->captured + FCS_MAX >= header->caplen && ours->length <= header->len &&
           ours->length + FCS_MAX >= header->len && !memcmp(ours->data, data, ours->captured);
}

/* libpcap gives up at an interface of another link type and at blocks of a broken length; we go on
 * behind the former and stop at the latter, never before it. */
static void compare(const char *path, pcap_t *theirs, struct merged_input *ours) {
    struct pcap_pkthdr *header;
    const uint8_t *data;
    struct packet packet;
    for (uint64_t frame = 1; pcap_next_ex(theirs, &header, &data) == 1; frame++) {
        if (merged_input_read(ours, &packet, 1) != 1) {
            fprintf(stderr, "%s: libpcap has a frame %llu, we do not: %s\n", path,
                    (unsigned long long)frame, merged_input_damage(ours, 0)->text);
            exit(1);
        }
        CHECK_INT(packet.frame, frame);
        if (!same_packet(&packet, header, data)) {
            fprintf(stderr, "%s: frame %llu differs\n", path, (unsigned long long)frame);
            exit(1);
        }
        packets_compared++;
    }
    shorter_in_libpcap += merged_input_read(ours, &packet, 1) == 1;
}

#define GROUP 3u

/* Reads packets of a group, and further ones without a move of the window. */
static size_t read_group(struct merged_input *files, struct packet packets[2 * GROUP]) {
    size_t count = merged_input_read(files, packets, GROUP);
    return count + (count ? merged_input_read_on(files, packets + count, GROUP) : 0);
}

static uint64_t sum_of(const struct packet *packets, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < packets[i].captured; k++)
            sum = sum * 31 + packets[i].data[k];
    return sum;
}

/* The data of kept packets stay as they were while the next groups are read. */
static void check_kept(const char *path) {
    const char *const paths[] = {path, path};
    for (size_t count = 1; count <= 2; count++) {
        struct error error = {0};
        struct merged_input *files = merged_input_open(paths, NULL, count, &error);
        struct packet packets[2][2 * GROUP];
        struct packet_bytes kept[2] = {{0}, {0}};
        size_t had[2] = {0};
        uint64_t sums[2] = {0};
        unsigned turn = 0;
        while (files && (had[turn] = read_group(files, packets[turn]))) {
            sums[turn] = sum_of(packets[turn], had[turn]);
            CHECK(merged_input_keep(files, packets[turn], had[turn], &kept[turn]));
            turn = !turn;
            CHECK(sum_of(packets[turn], had[turn]) == sums[turn]);
            groups_kept++;
        }
        merged_input_close(files);
        free(kept[0].bytes);
        free(kept[1].bytes);
    }
}

static void compare_file(const char *path) {
    char pcap_error[PCAP_ERRBUF_SIZE];
    struct error error = {0};
    struct merged_input *ours = merged_input_open(&path, NULL, 1, &error);
    pcap_t *theirs =
        pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, pcap_error);
    files++;
    if (theirs && !ours) {
        fprintf(stderr, "libpcap reads it, we do not: %s\n", error.text);
        exit(1);
    }
    refused_by_libpcap += !theirs && ours;
    if (theirs)
        compare(path, theirs, ours);
    if (theirs)
        pcap_close(theirs);
    merged_input_close(ours);
}

static void check_not_a_capture(void) {
    struct error error = {0};
    const char *path = "/proc/version", *missing = "/nonexistent/x.pcap";
    CHECK(!merged_input_open(&path, NULL, 1, &error));
    CHECK_INT(error.kind, ERROR_UNREADABLE);
    CHECK(strstr(error.text, "/proc/version: not a capture (expected pcap or pcapng"));
    CHECK(!merged_input_open(&missing, NULL, 1, &error));
    CHECK(strstr(error.text, "No such file"));
}

int main(void) {
    CHECK(each_capture("sample_pcaps", compare_file));
    if (!each_capture("../shared/captures/tcpdump-tests", compare_file))
        printf("    ../shared/captures is missing: left out\n");
    check_not_a_capture();
    CHECK(each_capture("sample_pcaps", check_kept));
    CHECK(files >= 5 && packets_compared > 500 && groups_kept > 500);
    printf(
        "    %u files, %u packets as libpcap reads them; %u files that only we read, %u further\n",
        files, packets_compared, refused_by_libpcap, shorter_in_libpcap);
    return 0;
}
