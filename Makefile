# SPDX-License-Identifier: MIT OR Apache-2.0
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help setup build demo test check lint bench lab fuzz gen clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing (Debian: apt); nothing to do when all is there
	@tools/setup

build: ## build the command line, optimised: target/release/penstock
	@tools/setup build
	cargo build --release --package penstock

demo: ## four tenants send TCP and UDP through a box that enforces demo/live.yaml in the kernel
	@tools/setup build demo
	cargo build --release --package penstock
	@demo/run

test: setup lint ## everything that must hold; asks nothing, and does setup itself
	@mkdir -p out; status=0; \
	{ $(MAKE) -C algo check test fuzz SECONDS=5 && cargo test --workspace --no-fail-fast; } 2>&1 \
		| tee out/test.log || status=1; \
	tools/count-tests out/test.log; exit $$status

check: lint ## the fast part of test: formats, lints, house rules, unit tests; needs no root
	$(MAKE) -C algo check
	cargo test --workspace --lib --bins

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- --deny warnings
	cargo xtask gen --check
	cargo xtask tidy

bench: build ## time decisions beside DPDK's rte_meter, and, as root, the kernel program beside hash maps and qdiscs, and the shaper and fair shares beside HTB
	@tools/setup build bench demo
	$(MAKE) -C bench run

lab: ## run the papers' experiments, about half an hour, as root: out/lab/; IDS="switchrl/fig7 .." runs some
	@tools/setup build demo lab
	cargo build --release --package penstock
	@$${CARGO_TARGET_DIR:-target}/release/penstock lab run $${IDS:-all} && $${CARGO_TARGET_DIR:-target}/release/penstock lab report

fuzz: ## hand the parsers hostile input for half a minute each
	@tools/setup build test
	$(MAKE) -C algo fuzz

gen: ## write Rust's copy of wire.h anew
	cargo xtask gen

clean: ## remove what was built
	cargo clean
	rm -rf build out
