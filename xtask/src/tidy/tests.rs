// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each rule with a good and a bad example.

use super::{File, Rule, algo, layout, prose, source};

const MIT: &str = "SPDX-License-Identifier: MIT OR Apache-2.0";
const DUAL: &str = "SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)";
const HEADER: &str = "algo/include/penstock/x.h";

fn findings(rule: Rule, files: &[(&str, &str)]) -> Vec<String> {
    let tree: Vec<File> =
        files.iter().map(|&(path, text)| File { path: path.to_owned(), text: text.to_owned() }).collect();
    rule(&tree).into_iter().map(|finding| finding.place).collect()
}

#[track_caller]
fn good(rule: Rule, files: &[(&str, &str)]) {
    assert_eq!(findings(rule, files), [""; 0]);
}

/// The rule objects to exactly this place.
#[track_caller]
fn bad(rule: Rule, files: &[(&str, &str)], place: &str) {
    assert_eq!(findings(rule, files), [place]);
}

#[test]
fn licence_is_the_folders() {
    let (mit, dual) = (format!("// {MIT}\n"), format!("/* {DUAL} */\n"));
    good(source::licence, &[("xtask/src/a.rs", &mit), (HEADER, &dual), ("notes.md", "no line needed")]);
    good(source::licence, &[("tools/run", &format!("#!/bin/sh\n# {MIT}\n"))]);
    bad(source::licence, &[("xtask/src/a.rs", "fn main() {}\n")], "xtask/src/a.rs:1");
    bad(source::licence, &[(HEADER, &mit)], "algo/include/penstock/x.h:1");
    bad(source::licence, &[("crates/a/src/a.rs", &dual)], "crates/a/src/a.rs:1");
    bad(source::licence, &[("tools/run", "#!/bin/sh\n")], "tools/run:1");
}

#[test]
fn length_depends_on_being_a_test() {
    let (most, more) = ("\n".repeat(500), "\n".repeat(501));
    good(
        source::length,
        &[("a.rs", &most), ("algo/test/test_a.c", &more), ("algo/ref/ref_a.c", &more), ("long.md", &more)],
    );
    bad(source::length, &[("a.rs", &more)], "a.rs:501");
    bad(source::length, &[("a/tests/b.rs", &"\n".repeat(901))], "a/tests/b.rs:901");
}

#[test]
fn nothing_is_left_unfinished() {
    good(source::unfinished, &[("a.rs", "// to do is a verb, and a TODOS is nothing\n")]);
    let note = format!("fn f() {{}}\n// {} later\n", concat!("TO", "DO"));
    bad(source::unfinished, &[("a.rs", &note)], "a.rs:2");
}

#[test]
fn machine_paths_are_those_of_people_and_workplaces() {
    good(prose::machine_paths, &[("a.md", "src/work/x, target/root/y, ./home/z, example.com/home/\n")]);
    for folder in ["work", "root", "home", "Users"] {
        bad(prose::machine_paths, &[("a.md", &format!("\nsee /{folder}/me/x\n"))], "a.md:2");
    }
}

#[test]
fn banned_words_do_not_count_in_comments() {
    good(algo::banned_words, &[(HEADER, "/* no float,\n no double */\nuint64_t time_ns; // rand()\n")]);
    good(algo::banned_words, &[("algo/ref/ref_x.c", "double x;\n")]);
    for line in [
        "double x;",
        "float y;",
        "__int128 z;",
        "int (*callback)(int);",
        "x = clock_gettime(0, 0);",
        "x = rand();",
        "p = malloc(4);",
        "printf(s);",
    ] {
        bad(algo::banned_words, &[(HEADER, &format!("/* one\n two */\n{line}\n"))], "algo/include/penstock/x.h:3");
    }
}

#[test]
fn quantities_end_in_their_unit() {
    let members =
        "struct s {\n\tuint64_t rate_Bps, burst_bytes;\n\tuint32_t rate, rates[3];\n\tuint64_t idle_q32;\n};\n";
    good(algo::units, &[(HEADER, members)]);
    good(algo::units, &[(HEADER, "PST_INLINE void f(uint64_t idle_ns, uint32_t bytes)\n{\n\tuint64_t wait = 1;\n}\n")]);
    bad(algo::units, &[(HEADER, "struct s {\n\tuint64_t rate;\n};\n")], "algo/include/penstock/x.h:2");
    bad(algo::units, &[(HEADER, "struct s {\n\tuint32_t count, burst;\n};\n")], "algo/include/penstock/x.h:2");
    bad(
        algo::units,
        &[(HEADER, "PST_INLINE void f(int a,\n\t\tuint64_t *delay)\n{\n}\n")],
        "algo/include/penstock/x.h:2",
    );
}

#[test]
fn headers_open_with_their_essay() {
    let whole = "/*\n * What         x\n * Units        y\n * Invariants   I1\n */\n#ifndef X_H\n";
    good(algo::header_sections, &[(HEADER, whole), ("algo/include/penstock/wire.h", "")]);
    let without_units = whole.replace("Units", "Sizes");
    bad(algo::header_sections, &[(HEADER, &without_units)], "algo/include/penstock/x.h:1");
}

#[test]
fn functions_stay_short() {
    let function = |lines| format!("int f(void)\n{{\n{}}}\n", "\tx++;\n".repeat(lines));
    good(algo::function_length, &[("a.c", &function(70))]);
    bad(algo::function_length, &[("a.c", &function(71))], "a.c:2");
}

#[test]
fn headers_include_siblings_only() {
    let sibling = ("algo/include/penstock/types.h", "#include <stdint.h>\n#include <stdbool.h>\n");
    good(layout::includes, &[sibling, (HEADER, "#include \"types.h\"\n")]);
    bad(layout::includes, &[sibling, (HEADER, "\n#include <string.h>\n")], "algo/include/penstock/x.h:2");
    bad(layout::includes, &[(HEADER, "#include \"types.h\"\n")], "algo/include/penstock/x.h:1");
}

#[test]
fn crates_know_only_those_below() {
    let policy = "crates/penstock-policy/Cargo.toml";
    good(layout::crates, &[(policy, "[dependencies]\npenstock-algo.workspace = true\n")]);
    good(layout::crates, &[(policy, "[dev-dependencies]\npenstock-packet.workspace = true\n")]);
    for name in ["penstock-packet", "penstock-dataplane", "penstock", "penstock-unheard-of"] {
        bad(layout::crates, &[(policy, &format!("[dependencies]\n{name} = {{}}\n"))], &format!("{policy}:2"));
    }
    bad(layout::crates, &[("crates/penstock-new/Cargo.toml", "")], "crates/penstock-new/Cargo.toml:1");
}

#[test]
fn headers_have_tests() {
    let test = "#include <penstock/x.h>\n";
    good(layout::untested_headers, &[(HEADER, ""), ("algo/test/test_x.c", test)]);
    good(layout::untested_headers, &[("algo/include/penstock/types.h", "")]);
    good(
        layout::untested_headers,
        &[(HEADER, ""), ("algo/include/penstock/x_part.h", ""), ("algo/test/test_x.c", test)],
    );
    bad(layout::untested_headers, &[(HEADER, ""), ("algo/ref/ref_x.c", test)], "algo/include/penstock/x.h:1");
}

#[test]
fn links_lead_somewhere() {
    let page = ("docs/a.md", "[up](../README.md#top), [folder](adr/), [site](https://example.org/x.md)\n");
    let tree = [page, ("README.md", ""), ("docs/adr/1.md", "")];
    good(prose::broken_links, &tree);
    good(prose::broken_links, &[("a.md", "```\n[code](nowhere.md)\n```\n")]);
    bad(prose::broken_links, &tree[..2], "docs/a.md:1");
}

#[test]
fn pages_are_linked_from_another() {
    let linked = [("README.md", "[a](docs/a.md)\n"), ("docs/a.md", "")];
    good(prose::unlinked_pages, &linked);
    bad(prose::unlinked_pages, &[("README.md", ""), ("docs/a.md", "[myself](a.md)\n")], "docs/a.md:1");
}

#[test]
fn changelog_keeps_its_form() {
    let log = "# Changelog\n\n## [Unreleased]\n\n### Added\n- x\n\n## [0.1.0] - 2026-11-21\n";
    good(prose::changelog, &[("CHANGELOG.md", log)]);
    bad(prose::changelog, &[("CHANGELOG.md", &log.replace("Added", "News"))], "CHANGELOG.md:5");
    bad(prose::changelog, &[("CHANGELOG.md", &log.replace(" - 2026", ", 2026"))], "CHANGELOG.md:8");
    bad(prose::changelog, &[("CHANGELOG.md", &log.replace("[Unreleased]", "Soon"))], "CHANGELOG.md:3");
    bad(prose::changelog, &[("CHANGELOG.md", "# Changelog\n")], "CHANGELOG.md:1");
    bad(prose::changelog, &[], "CHANGELOG.md");
}
