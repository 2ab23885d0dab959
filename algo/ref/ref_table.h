/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * ref_table.h: what a table promises, without a table: a list that is searched from its start.
 *
 * It knows keys by their whole 128-bit hash, and it follows slots only by what an insertion reports of its moves.
 */
#ifndef PENSTOCK_REF_TABLE_H
#define PENSTOCK_REF_TABLE_H

#include <penstock/wire.h>

struct ref_table_entry {
	uint64_t tag_hash;
	uint64_t place_hash;
	uint64_t state;
	uint32_t rate;
	uint32_t slot;
	uint16_t profile;
};

struct ref_table {
	struct ref_table_entry *entries;
	uint32_t count;
	uint32_t room;
};

struct ref_table ref_table_new(uint32_t room);
void ref_table_free(struct ref_table *table);
struct ref_table_entry *ref_table_find(struct ref_table *table, uint64_t tag_hash, uint64_t place_hash);
struct ref_table_entry *ref_table_at(struct ref_table *table, uint32_t slot);
void ref_table_add(struct ref_table *table, const struct ref_table_entry *entry);
void ref_table_remove(struct ref_table *table, struct ref_table_entry *entry);

/* The buckets of a key, by the definition in table.h with divisions. */
uint32_t ref_table_first(uint64_t place_hash, uint32_t bucket_count);
uint32_t ref_table_second(uint64_t tag_hash, uint64_t place_hash, uint32_t bucket_count);

#endif /* PENSTOCK_REF_TABLE_H */
