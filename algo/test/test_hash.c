/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* hash.h: masks and salts, and few collisions for keys as regular as real address plans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <penstock/hash.h>
#include <penstock/rng.h>

#define KEYS 2000000U
#define TAG_BITS 48 /* of which a bucket's key keeps (wire.h) */

static uint64_t draw(uint64_t *rng)
{
	return (uint64_t)pst_rng_next(rng) << 32 | pst_rng_next(rng);
}

static struct pst_hash_secret draw_secret(uint64_t seed)
{
	struct pst_hash_secret secret;
	uint64_t rng = pst_rng_seed(seed);
	int i;

	for (i = 0; i < PST_HASH_SECRET_WORDS; i++)
		secret.words[i] = draw(&rng);
	return secret;
}

static struct pst_tuple tuple_of(uint8_t words)
{
	struct pst_tuple tuple;
	int i;

	memset(&tuple, 0, sizeof(tuple));
	tuple.words = words;
	tuple.salt = UINT64_C(0x1234567890abcdef);
	for (i = 0; i < PST_KEY_WORDS; i++)
		tuple.mask.words[i] = (words >> i) & 1 ? UINT64_MAX : 0;
	return tuple;
}

static bool same(struct pst_hash a, struct pst_hash b)
{
	return a.tag == b.tag && a.place == b.place;
}

static void test_i1_masked_bits_do_not_matter(void **state)
{
	struct pst_hash_secret secret = draw_secret(1);
	uint64_t rng = pst_rng_seed(2);
	int i, word, bit;

	(void)state;
	for (i = 0; i < 2000; i++) {
		struct pst_tuple tuple = tuple_of(0);
		struct pst_key key;
		struct pst_hash hash;

		for (word = 0; word < PST_KEY_WORDS; word++) {
			key.words[word] = draw(&rng);
			tuple.mask.words[word] = draw(&rng) % 3 ? draw(&rng) & draw(&rng) : 0;
			if (tuple.mask.words[word])
				tuple.words |= (uint8_t)(1U << word);
		}
		hash = pst_hash_key(&secret, &tuple, &key);
		for (word = 0; word < PST_KEY_WORDS; word++) {
			for (bit = 0; bit < 64; bit++) {
				struct pst_key other = key;
				bool counts = (tuple.mask.words[word] >> bit) & 1;

				other.words[word] ^= UINT64_C(1) << bit;
				assert_true(same(hash, pst_hash_key(&secret, &tuple, &other)) == !counts);
			}
		}
	}
}

/* The form that a host's processor likes and the plain one give the same bits: tables are shared between hosts. */
static void test_lanes_of_all_forms(void **state)
{
	struct pst_hash_secret secret = draw_secret(3);
	uint64_t rng = pst_rng_seed(4);
	int i, word;

	(void)state;
	for (i = 0; i < 100000; i++) {
		struct pst_tuple tuple = tuple_of((uint8_t)i);
		struct pst_key key;

		for (word = 0; word < PST_KEY_WORDS; word++) {
			tuple.mask.words[word] &= draw(&rng) | draw(&rng);
			key.words[word] = draw(&rng);
		}
		assert_true(same(pst_hash_lanes(&secret, &tuple, &key), pst_hash_lanes_plain(&secret, &tuple, &key)));
	}
}

static void test_i2_salt_and_secret_matter(void **state)
{
	struct pst_hash_secret secret = draw_secret(1), other_secret = draw_secret(2);
	struct pst_tuple tuple = tuple_of(0x08), other_salt = tuple;
	struct pst_key key = { { 0, 0, 0, 42, 0, 0, 0, 0 } };
	struct pst_hash hash = pst_hash_key(&secret, &tuple, &key);

	(void)state;
	other_salt.salt++;
	assert_true(hash.tag != pst_hash_key(&secret, &other_salt, &key).tag);
	assert_true(hash.place != pst_hash_key(&secret, &other_salt, &key).place);
	assert_true(hash.tag != pst_hash_key(&other_secret, &tuple, &key).tag);
	assert_true(hash.place != pst_hash_key(&other_secret, &tuple, &key).place);
}

/* Who knew the secret could make keys that fall together in one lane; the other lane still tells them apart. */
static void test_one_lane_does_not_follow_the_other(void **state)
{
	struct pst_hash_secret secret = draw_secret(4);
	const struct pst_tuple tuple = tuple_of(0x08);
	struct pst_key a = { { 0 } }, b = { { 0 } };
	uint32_t i;

	(void)state;
	for (i = 1; i <= 1000; i++) {
		uint64_t zero_of_tag = (uint64_t)(0 - (uint32_t)(secret.words[3] >> 32)) << 32;
		uint64_t zero_of_place = (uint64_t)(0 - (uint32_t)(secret.words[5] >> 32)) << 32;

		a.words[3] = zero_of_tag;
		b.words[3] = zero_of_tag | i;
		assert_true(pst_hash_key(&secret, &tuple, &a).tag == pst_hash_key(&secret, &tuple, &b).tag);
		assert_true(pst_hash_key(&secret, &tuple, &a).place != pst_hash_key(&secret, &tuple, &b).place);
		a.words[3] = zero_of_place;
		b.words[3] = zero_of_place | i;
		assert_true(pst_hash_key(&secret, &tuple, &a).place == pst_hash_key(&secret, &tuple, &b).place);
		assert_true(pst_hash_key(&secret, &tuple, &a).tag != pst_hash_key(&secret, &tuple, &b).tag);
	}
}

static void key_sequential_dst(struct pst_key *key, uint32_t i)
{
	key->words[0] = UINT64_C(0x0a000000) + i;
}

static void key_src_dst_grid(struct pst_key *key, uint32_t i)
{
	key->words[0] = (UINT64_C(0xac100000) + i % 1415) << 32 | (UINT64_C(0x0a000000) + i / 1415);
}

static void key_ports_grid(struct pst_key *key, uint32_t i)
{
	key->words[0] = UINT64_C(0xac100001) << 32 | (UINT64_C(0x0a000000) + (i >> 16));
	key->words[1] = UINT64_C(0x1411) << 48 | (uint64_t)(i & 0xff) << 16 | (i >> 8 & 0xff) | 0x10002000;
}

static void key_ipv6_halves(struct pst_key *key, uint32_t i)
{
	key->words[3] = UINT64_C(0x20010db800000000) + (uint64_t)(i >> 4) * 256;
	key->words[4] = UINT64_C(0x100) + (i & 15);
}

static int compare_words(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static unsigned int count_pairs(uint64_t *words, uint32_t count)
{
	unsigned int pairs = 0;
	uint32_t i;

	qsort(words, count, sizeof(words[0]), compare_words);
	for (i = 1; i < count; i++)
		pairs += words[i] == words[i - 1];
	return pairs;
}

/*
 * Universality: 2^-32 a pair over the secret in one lane is at most 466 pairs among 2 M keys; that is the bound for a
 * 48-bit tag too (which adds 0.007). Both lanes together, which is what finds an entry: 2^-64, none.
 */
static void test_collisions_of_regular_keys(void **state)
{
	static void (*const plans[])(struct pst_key *, uint32_t) = {
		key_sequential_dst, key_src_dst_grid, key_ports_grid, key_ipv6_halves,
	};
	uint64_t *tags = malloc(KEYS * sizeof(*tags)), *both = malloc(KEYS * sizeof(*both));
	const struct pst_tuple tuple = tuple_of(0x1f);
	uint32_t i;
	size_t plan;

	(void)state;
	assert_true(tags && both);
	for (plan = 0; plan < sizeof(plans) / sizeof(plans[0]); plan++) {
		struct pst_hash_secret secret = draw_secret(plan);
		struct pst_key key = { { 0 } };
		unsigned int pairs;

		for (i = 0; i < KEYS; i++) {
			struct pst_hash hash;

			plans[plan](&key, i);
			hash = pst_hash_key(&secret, &tuple, &key);
			tags[i] = hash.tag >> (64 - TAG_BITS);
			both[i] = pst_hash_mix(hash.tag) ^ hash.place;
		}
		pairs = count_pairs(tags, KEYS);
		assert_in_range(pairs, 0, plan == 0 ? 0 : 466);
		assert_int_equal(count_pairs(both, KEYS), 0);
	}
	free(tags);
	free(both);
}

/* Sequential keys thrown into 2^20 bins, by the highest and the lowest of the bits in use: empty bins e^(-KEYS / 2^20) = 14.85 % of them, +- 5 sigma (0.2 %). */
static void test_places_spread_evenly(void **state)
{
	uint8_t *bins = calloc(1U << 20, 2);
	const struct pst_tuple tuple = tuple_of(0x1f);
	struct pst_hash_secret secret = draw_secret(3);
	struct pst_key key = { { 0 } };
	uint32_t empty[2] = { 0, 0 }, i;

	(void)state;
	assert_non_null(bins);
	for (i = 0; i < KEYS; i++) {
		uint64_t place;

		key_sequential_dst(&key, i);
		place = pst_hash_key(&secret, &tuple, &key).place;
		bins[place >> 44] = 1;
		bins[(1U << 20) + ((place >> 32) & 0xfffff)] = 1;
	}
	for (i = 0; i < 1U << 20; i++) {
		empty[0] += !bins[i];
		empty[1] += !bins[(1U << 20) + i];
	}
	assert_in_range(empty[0], 153600, 157800);
	assert_in_range(empty[1], 153600, 157800);
	free(bins);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_i1_masked_bits_do_not_matter),
		cmocka_unit_test(test_lanes_of_all_forms),
		cmocka_unit_test(test_i2_salt_and_secret_matter),
		cmocka_unit_test(test_one_lane_does_not_follow_the_other),
		cmocka_unit_test(test_collisions_of_regular_keys),
		cmocka_unit_test(test_places_spread_evenly),
	};

	return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
