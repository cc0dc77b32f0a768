/*
 * The lab kernel's only source of randomness.
 *
 * A User-Mode Linux kernel is an ordinary process: it seeds its random number generator
 * by calling getrandom() of the C library. Preloading this object answers that call with
 * a stream that is a function of LAB_ENTROPY_SEED alone, so that ports, socket hashes,
 * netem draws and /dev/urandom inside the guest repeat from run to run.
 *
 * Generator: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", OOPSLA 2014). It is for repetition, not for secrets.
 *
 * Preload it with LD_BIND_NOW=1: lazy binding would need more stack than the kernel has.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

static uint64_t state;
static int seeded;

static uint64_t next_word(void)
{
	uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static void fill(unsigned char *out, size_t length)
{
	if (!seeded) {
		const char *text = getenv("LAB_ENTROPY_SEED");

		state = text ? strtoull(text, NULL, 10) : 0;
		seeded = 1;
	}
	while (length > 0) {
		uint64_t word = next_word();

		for (int i = 0; i < 8 && length > 0; i++, length--) {
			*out++ = (unsigned char)word;
			word >>= 8;
		}
	}
}

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	(void)flags;
	fill(buffer, length);
	return (ssize_t)length;
}

int getentropy(void *buffer, size_t length)
{
	fill(buffer, length);
	return 0;
}
