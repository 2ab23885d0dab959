/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_table.h"

#include <stdlib.h>

struct ref_table ref_table_new(uint32_t room)
{
	struct ref_table table = { calloc(room, sizeof(struct ref_table_entry)), 0, room };

	if (!table.entries)
		abort();
	return table;
}

void ref_table_free(struct ref_table *table)
{
	free(table->entries);
}

struct ref_table_entry *ref_table_find(struct ref_table *table, uint64_t tag_hash, uint64_t place_hash)
{
	uint32_t i;

	for (i = 0; i < table->count; i++)
		if (table->entries[i].tag_hash == tag_hash && table->entries[i].place_hash == place_hash)
			return &table->entries[i];
	return NULL;
}

struct ref_table_entry *ref_table_at(struct ref_table *table, uint32_t slot)
{
	uint32_t i;

	for (i = 0; i < table->count; i++)
		if (table->entries[i].slot == slot)
			return &table->entries[i];
	return NULL;
}

void ref_table_add(struct ref_table *table, const struct ref_table_entry *entry)
{
	if (table->count == table->room)
		abort();
	table->entries[table->count++] = *entry;
}

void ref_table_remove(struct ref_table *table, struct ref_table_entry *entry)
{
	*entry = table->entries[--table->count];
}

uint32_t ref_table_first(uint64_t place_hash, uint32_t bucket_count)
{
	return (uint32_t)((place_hash >> 32) * bucket_count / (UINT64_C(1) << 32));
}

uint32_t ref_table_second(uint64_t tag_hash, uint64_t place_hash, uint32_t bucket_count)
{
	uint64_t tag_high = tag_hash >> 32;
	uint64_t sum = 2 * (tag_high * (bucket_count / 2) / (UINT64_C(1) << 32)) + 1;

	return (uint32_t)((sum + bucket_count - ref_table_first(place_hash, bucket_count)) % bucket_count);
}
