/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * vectors.h: a strict reader of golden vectors (vectors/README.md), for cmocka tests.
 *
 * vectors_next reads one directive; the getters fail the test, with file and line, when a key is missing or is not a
 * number, and the next vectors_next fails it when a key was never asked for: neither side can misspell in silence.
 */
#ifndef PENSTOCK_TEST_VECTORS_H
#define PENSTOCK_TEST_VECTORS_H

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VECTORS_FIELDS_MAX 32

struct vectors_field {
	const char *key;
	char *value;
	bool is_output; /* stands after "->" */
	bool is_used;
};

struct vectors {
	FILE *file;
	const char *path;
	unsigned int line;
	unsigned int directives;
	char text[1024];
	const char *verb;
	struct vectors_field fields[VECTORS_FIELDS_MAX];
	unsigned int count;
};

static inline void vectors_open(struct vectors *v, const char *path)
{
	memset(v, 0, sizeof(*v));
	v->path = path;
	v->file = fopen(path, "r");
	if (!v->file)
		fail_msg("%s: %s", path, strerror(errno));
}

static inline void vectors_split(struct vectors *v)
{
	bool is_output = false;
	char *word, *rest = NULL;

	v->verb = strtok_r(v->text, " \n", &rest);
	while ((word = strtok_r(NULL, " \n", &rest))) {
		char *equals = strchr(word, '=');

		if (strcmp(word, "->") == 0) {
			is_output = true;
			continue;
		}
		if (!equals || equals == word || !equals[1])
			fail_msg("%s:%u: '%s' is not key=value", v->path, v->line, word);
		if (v->count == VECTORS_FIELDS_MAX)
			fail_msg("%s:%u: too many fields", v->path, v->line);
		*equals = '\0';
		v->fields[v->count++] = (struct vectors_field){ word, equals + 1, is_output, false };
	}
}

/* Reads the next directive; false, and the file closed, at the end of it. */
static inline bool vectors_next(struct vectors *v)
{
	unsigned int i;

	for (i = 0; i < v->count; i++) {
		if (!v->fields[i].is_used)
			fail_msg("%s:%u: nobody asked for '%s'", v->path, v->line, v->fields[i].key);
	}
	v->count = 0;
	while (fgets(v->text, sizeof(v->text), v->file)) {
		v->line++;
		if (!strchr(v->text, '\n'))
			fail_msg("%s:%u: line too long or cut", v->path, v->line);
		if (v->text[0] == '#' || v->text[0] == '\n')
			continue;
		vectors_split(v);
		v->directives++;
		return true;
	}
	fclose(v->file);
	v->file = NULL;
	return false;
}

static inline bool vectors_is(const struct vectors *v, const char *verb)
{
	return strcmp(v->verb, verb) == 0;
}

static inline char *vectors_find(struct vectors *v, const char *key, bool is_output)
{
	unsigned int i;

	for (i = 0; i < v->count; i++) {
		if (v->fields[i].is_output == is_output && strcmp(v->fields[i].key, key) == 0) {
			v->fields[i].is_used = true;
			return v->fields[i].value;
		}
	}
	return NULL;
}

static inline bool vectors_has(struct vectors *v, const char *key)
{
	return vectors_find(v, key, false) != NULL;
}

static inline const char *vectors_value(struct vectors *v, const char *key, bool is_output)
{
	const char *value = vectors_find(v, key, is_output);

	if (!value)
		fail_msg("%s:%u: no '%s'%s", v->path, v->line, key, is_output ? " after ->" : "");
	return value;
}

/* The number at `index` of a value that is a list divided by commas. */
static inline uint64_t vectors_number(struct vectors *v, const char *value, unsigned int index)
{
	const char *at = value;
	char *end = NULL;
	uint64_t number;

	for (; index > 0; index--) {
		at = strchr(at, ',');
		if (!at)
			fail_msg("%s:%u: '%s' is too short a list", v->path, v->line, value);
		at++;
	}
	errno = 0;
	number = strtoull(at, &end, 0);
	if (errno || end == at || *at == '-' || (*end != '\0' && *end != ','))
		fail_msg("%s:%u: '%s' is not a number", v->path, v->line, value);
	return number;
}

static inline const char *vectors_in_text(struct vectors *v, const char *key)
{
	return vectors_value(v, key, false);
}

static inline const char *vectors_out_text(struct vectors *v, const char *key)
{
	return vectors_value(v, key, true);
}

static inline uint64_t vectors_in(struct vectors *v, const char *key)
{
	return vectors_number(v, vectors_value(v, key, false), 0);
}

static inline uint64_t vectors_out(struct vectors *v, const char *key)
{
	return vectors_number(v, vectors_value(v, key, true), 0);
}

/* An input that may be left out. */
static inline uint64_t vectors_in_or(struct vectors *v, const char *key, uint64_t otherwise)
{
	return vectors_has(v, key) ? vectors_in(v, key) : otherwise;
}

/* The place of `text` in a list of names; fails when it is none of them. */
static inline uint8_t vectors_name(struct vectors *v, const char *text, const char *const *names, uint8_t count)
{
	uint8_t i;

	for (i = 0; i < count; i++) {
		if (strcmp(text, names[i]) == 0)
			return i;
	}
	fail_msg("%s:%u: '%s' is not a name known here", v->path, v->line, text);
	return 0;
}

/* enum pst_color of the words green, yellow, red. */
static inline uint8_t vectors_color(struct vectors *v, const char *text)
{
	static const char *const names[] = { "green", "yellow", "red" };

	return vectors_name(v, text, names, 3);
}

#endif /* PENSTOCK_TEST_VECTORS_H */
