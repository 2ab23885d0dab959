# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Included by ../Makefile. fuzz/fuzz_<noun>.c is a libFuzzer target, fuzz/seed_<noun>.c writes its first inputs.
#
#   make fuzz SECONDS=600      each target for that long; what it learns stays in $(BUILD)/corpus/<noun>

SECONDS ?= 30
FUZZ_NOUNS := $(patsubst fuzz/fuzz_%.c,%,$(wildcard fuzz/fuzz_*.c))
FUZZ_FLAGS := $(CFLAGS) -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all

.PHONY: fuzz
fuzz: $(FUZZ_NOUNS:%=$(BUILD)/fuzz_%) $(FUZZ_NOUNS:%=$(BUILD)/seed_%)
	@for noun in $(FUZZ_NOUNS); do \
		mkdir -p $(BUILD)/corpus/$$noun && $(BUILD)/seed_$$noun $(BUILD)/corpus/$$noun && \
		$(BUILD)/fuzz_$$noun -max_total_time=$(SECONDS) -max_len=1024 -timeout=5 -print_final_stats=1 \
			-artifact_prefix=$(BUILD)/ $(BUILD)/corpus/$$noun || exit 1; \
	done

FUZZ_REFS_packet := ref/ref_packet.c

$(BUILD)/fuzz_%: fuzz/fuzz_%.c | $(BUILD)
	clang $(FUZZ_FLAGS) -MMD -MP -MF $@.d -o $@ $< $(FUZZ_REFS_$*)

$(BUILD)/seed_%: fuzz/seed_%.c | $(BUILD)
	$(CC) $(CFLAGS) -MMD -MP -MF $@.d -o $@ $<
