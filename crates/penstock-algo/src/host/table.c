/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The writer's side of a plane: rows of its tables, and limits whose rate changes or which go on at another place. Others may
 * charge meanwhile, be it in the kernel: what PST_ONE_THREAD leaves out is in.
 */
#include "meter.h"

#include <penstock/pipeline.h>

uint32_t pst_host_table_insert(struct pst_bucket *buckets, uint32_t bucket_count, const struct pst_hash_secret *secret,
			       const struct pst_tuple *tuple, const struct pst_key *value, uint16_t profile, uint32_t rate,
			       uint64_t state, uint32_t *owners, struct pst_table_insertion *insertion);
uint32_t pst_host_table_find(struct pst_bucket *buckets, uint32_t bucket_count, const struct pst_hash_secret *secret,
			     const struct pst_tuple *tuple, const struct pst_key *value);
void pst_host_table_remove(struct pst_bucket *buckets, uint32_t bucket_count, uint32_t slot);
void pst_host_table_heal(struct pst_bucket *buckets, uint32_t bucket_count);
void pst_host_table_change(struct pst_bucket *buckets, uint32_t bucket_count, uint32_t slot, const struct pst_profile *profile,
			   uint32_t rate, struct pst_meter_state *meter, uint64_t now_ns);
void pst_host_limit_change(struct pst_limit *limit, const struct pst_profile *profile, uint32_t rate,
			   struct pst_meter_state *meter, uint64_t now_ns);
uint64_t pst_host_limiter_move(const struct pst_profile *before, uint32_t before_rate, const struct pst_profile *after,
			       uint32_t after_rate, uint64_t vft_ticks, uint64_t now_ns);
void pst_host_limiter_catch_up(const struct pst_profile *before, uint32_t before_rate, const struct pst_profile *after,
			       uint32_t after_rate, const struct pst_limiter_copy *copy, uint64_t *vft_ticks,
			       uint64_t now_ns);
void pst_host_meter_catch_up(const struct pst_profile *before, uint32_t before_rate, const struct pst_profile *after,
			     uint32_t after_rate, const struct pst_limiter_copy copies[2], struct pst_meter_state *state,
			     uint64_t now_ns);
uint64_t pst_host_limiter_queue_ns(const struct pst_profile *profile, uint32_t rate, uint64_t vft_ticks, uint64_t now_ns);
uint64_t pst_host_limiter_window_ns(const struct pst_profile *profile, uint32_t rate);

/* Inserts an entry and keeps `owners`, by slot, in step with what it moved. Returns enum pst_table_result. */
uint32_t pst_host_table_insert(struct pst_bucket *buckets, uint32_t bucket_count, const struct pst_hash_secret *secret,
			       const struct pst_tuple *tuple, const struct pst_key *value, uint16_t profile, uint32_t rate,
			       uint64_t state, uint32_t *owners, struct pst_table_insertion *insertion)
{
	struct pst_table table = { buckets, bucket_count };
	struct pst_table_entry entry = { state, rate, profile };
	struct pst_place place = pst_table_place(pst_hash_key(secret, tuple, value), bucket_count);
	enum pst_table_result result = pst_table_insert(&table, &place, &entry, insertion);
	uint32_t i;

	if (result != PST_TABLE_DONE)
		return result;
	for (i = 0; i < insertion->move_count; i++)
		owners[insertion->moves[i].to_slot] = owners[insertion->moves[i].from_slot];
	return result;
}

/* The slot of a key, or PST_NONE. */
uint32_t pst_host_table_find(struct pst_bucket *buckets, uint32_t bucket_count, const struct pst_hash_secret *secret,
			     const struct pst_tuple *tuple, const struct pst_key *value)
{
	struct pst_table table = { buckets, bucket_count };
	struct pst_place place = pst_table_place(pst_hash_key(secret, tuple, value), bucket_count);
	struct pst_slot_view view;

	return pst_table_find(&table, &place, &view) == PST_FOUND_ENTRY ? pst_table_slot(&view) : PST_NONE;
}

void pst_host_table_remove(struct pst_bucket *buckets, uint32_t bucket_count, uint32_t slot)
{
	struct pst_table table = { buckets, bucket_count };

	pst_table_remove(&table, slot);
}

void pst_host_table_heal(struct pst_bucket *buckets, uint32_t bucket_count)
{
	struct pst_table table = { buckets, bucket_count };

	pst_table_heal(&table);
}

/*
 * The same of an RFC meter: who finds its row finds both the new rate and the buckets in its time, or is told to come again. A packet
 * that found it before is judged by the old rate: one for each other CPU.
 */
static void meter_change(struct pst_bucket *bucket, uint32_t index, const struct pst_profile *profile, uint32_t rate,
			 struct pst_meter_state *meter, uint64_t now_ns)
{
	uint32_t before_rate = bucket->rates[index];

	pst_bucket_open(bucket);
	__atomic_store_n(&bucket->rates[index], rate, __ATOMIC_RELAXED);
	pst_host_meter_change(profile, before_rate, profile, rate, meter, now_ns);
	pst_bucket_close(bucket);
}

/* Another rate for the entry in a slot. A window meter's queue keeps its bytes, and so does what an RFC meter's index stands for. */
void pst_host_table_change(struct pst_bucket *buckets, uint32_t bucket_count, uint32_t slot, const struct pst_profile *profile,
			   uint32_t rate, struct pst_meter_state *meter, uint64_t now_ns)
{
	struct pst_table table = { buckets, bucket_count };
	struct pst_bucket *bucket = &buckets[slot / PST_BUCKET_SLOTS];
	uint32_t index = slot % PST_BUCKET_SLOTS;
	struct pst_limiter_profile before, after;
	struct pst_table_conversion conversion = { &before, &after, now_ns };

	if (meter) {
		meter_change(bucket, index, profile, rate, meter, now_ns);
		return;
	}
	pst_limiter_resolve(&before, profile, bucket->rates[index]);
	pst_limiter_resolve(&after, profile, rate);
	pst_table_change(&table, slot, (uint16_t)bucket->keys[index], rate,
			 profile->meter == PST_METER_WINDOW ? &conversion : (struct pst_table_conversion *)0);
}

/*
 * The same for the limit of a class, which has no sequence: a packet that read the old rate and charges after the conversion
 * fails (its state is gone) and reads anew; one that read the old state and the new rate is charged at the new rate. An RFC meter's
 * packets that come between the rate and the conversion are charged at the new rate and converted as if at the old one: buckets are
 * wrong by what these packets cost, and never by more than they hold, since the conversion cuts to that.
 */
void pst_host_limit_change(struct pst_limit *limit, const struct pst_profile *profile, uint32_t rate,
			   struct pst_meter_state *meter, uint64_t now_ns)
{
	struct pst_limiter_profile before, after;
	uint64_t state = pst_table_load_u64(&limit->state);
	uint32_t before_rate = limit->rate;

	pst_limiter_resolve(&before, profile, before_rate);
	pst_limiter_resolve(&after, profile, rate);
	__atomic_store_n(&limit->rate, rate, __ATOMIC_RELEASE);
	if (meter)
		pst_host_meter_change(profile, before_rate, profile, rate, meter, now_ns);
	if (profile->meter != PST_METER_WINDOW)
		return;
	while (!pst_limiter_commit(&limit->state, &state, pst_limiter_convert(&before, &after, state, now_ns)))
		;
}

/* The state of a limiter that goes on at another place, under other terms. The same terms: the same state. */
uint64_t pst_host_limiter_move(const struct pst_profile *before, uint32_t before_rate, const struct pst_profile *after,
			       uint32_t after_rate, uint64_t vft_ticks, uint64_t now_ns)
{
	struct pst_limiter_profile old, new;

	pst_limiter_resolve(&old, before, before_rate);
	pst_limiter_resolve(&new, after, after_rate);
	if (old.rate == new.rate && old.window_ticks == new.window_ticks)
		return vft_ticks;
	return pst_limiter_convert(&old, &new, vft_ticks, now_ns);
}

/* Adds to a moved limiter what its old place was charged since, while packets are charged to the new one. */
void pst_host_limiter_catch_up(const struct pst_profile *before, uint32_t before_rate, const struct pst_profile *after,
			       uint32_t after_rate, const struct pst_limiter_copy *copy, uint64_t *vft_ticks,
			       uint64_t now_ns)
{
	struct pst_limiter_profile old, new;
	uint64_t state = pst_table_load_u64(vft_ticks);

	pst_limiter_resolve(&old, before, before_rate);
	pst_limiter_resolve(&new, after, after_rate);
	while (!pst_limiter_commit(vft_ticks, &state, pst_limiter_catch_up_behind(&old, &new, copy, state, now_ns)))
		;
}

/* One of an RFC meter's buckets: like a limiter that shapes, without a window: its state is the time at which it is full again. */
static void bucket_catch_up(uint32_t before_rate, uint32_t after_rate, const struct pst_limiter_copy *copy, uint64_t *word,
			    uint64_t now_ns)
{
	const struct pst_limiter_profile before = { 0, 0, before_rate, true }, after = { 0, 0, after_rate, true };
	uint64_t state = pst_table_load_u64(word);

	while (!pst_limiter_commit(word, &state, pst_limiter_catch_up(&before, &after, copy, state, now_ns)))
		;
}

void pst_host_meter_catch_up(const struct pst_profile *before, uint32_t before_rate, const struct pst_profile *after,
			     uint32_t after_rate, const struct pst_limiter_copy copies[2], struct pst_meter_state *state,
			     uint64_t now_ns)
{
	bool is_single = after->meter == PST_METER_RFC2697; /* both buckets at the CIR */

	bucket_catch_up(is_single ? before_rate : before->second_rate, is_single ? after_rate : after->second_rate,
			&copies[1], &state->excess_ticks, now_ns);
	bucket_catch_up(before_rate, after_rate, &copies[0], &state->committed_ticks, now_ns);
}

uint64_t pst_host_limiter_queue_ns(const struct pst_profile *profile, uint32_t rate, uint64_t vft_ticks, uint64_t now_ns)
{
	struct pst_limiter_profile resolved;

	pst_limiter_resolve(&resolved, profile, rate);
	return pst_limiter_queue(&resolved, vft_ticks, now_ns) >> PST_TICK_BITS;
}

uint64_t pst_host_limiter_window_ns(const struct pst_profile *profile, uint32_t rate)
{
	struct pst_limiter_profile resolved;

	pst_limiter_resolve(&resolved, profile, rate);
	return resolved.window_ticks >> PST_TICK_BITS;
}
