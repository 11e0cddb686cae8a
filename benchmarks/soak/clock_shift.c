/* SPDX-License-Identifier: Apache-2.0 */
/* Linked into the tracer of `make soak`, whose clock must be set although the machine's must not:
 * CLOCK_REALTIME and the times of packets are shifted together. SIGRTMIN+N sets the Nth step. */
#include <pcap/pcap.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#define US INT64_C(1000000)

static const int64_t steps_us[] = {0, 500000, 3600 * US, -3600 * US};
static _Atomic int64_t shift_us;

static void set_shift(int number) {
    atomic_store(&shift_us, steps_us[number - SIGRTMIN]);
}

static __attribute__((constructor)) void take_signals(void) {
    for (int i = 0; i < (int)(sizeof steps_us / sizeof *steps_us); i++)
        sigaction(SIGRTMIN + i,
                  &(struct sigaction){.sa_handler = set_shift, .sa_flags = SA_RESTART}, NULL);
}

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_pcap_dispatch(pcap_t *handle, int count, pcap_handler take, u_char *argument);
int __wrap_pcap_dispatch(pcap_t *handle, int count, pcap_handler take, u_char *argument);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
    int result = __real_clock_gettime(clock, now);
    if (clock == CLOCK_REALTIME && !result) {
        int64_t ns = now->tv_nsec + atomic_load(&shift_us) % US * 1000;
        now->tv_sec += atomic_load(&shift_us) / US + (ns >= 1000 * US) - (ns < 0);
        now->tv_nsec = ns >= 1000 * US ? ns - 1000 * US : ns < 0 ? ns + 1000 * US : ns;
    }
    return result;
}

struct taker {
    pcap_handler take;
    u_char *argument;
};

/* Times of packets are ns. */
static void take_shifted(u_char *argument, const struct pcap_pkthdr *header, const u_char *data) {
    const struct taker *taker = (const struct taker *)argument;
    struct pcap_pkthdr shifted = *header;
    int64_t shift = atomic_load(&shift_us), ns = shifted.ts.tv_usec + shift % US * 1000;
    shifted.ts.tv_sec += shift / US + (ns >= 1000 * US) - (ns < 0);
    shifted.ts.tv_usec = ns >= 1000 * US ? ns - 1000 * US : ns < 0 ? ns + 1000 * US : ns;
    taker->take(taker->argument, &shifted, data);
}

int __wrap_pcap_dispatch(pcap_t *handle, int count, pcap_handler take, u_char *argument) {
    struct taker taker = {take, argument};
    return __real_pcap_dispatch(handle, count, take_shifted, (u_char *)&taker);
}
