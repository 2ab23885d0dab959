// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames as text, and what keys do to them.

#![allow(clippy::unwrap_used)] // a test may panic

use super::*;
use crate::live::top::keys::{After, press};
use crate::live::top::shared_tests::readings as shared_readings;
use crate::live::top::state::{Limits, News};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const NOW_NS: u64 = 1_700_000_300_000_000_000;

fn status() -> v1::StatusReply {
    let policy = v1::PolicyStatus {
        name: "edge".into(),
        generation: 3,
        since_unix_ns: NOW_NS - 300_000_000_000,
        ..v1::PolicyStatus::default()
    };
    v1::StatusReply { dataplane: "xdp".into(), policy: Some(policy), ..v1::StatusReply::default() }
}

/// `offered_bps` in packets of 1000 bytes, of which some are dropped.
fn rates(offered_bps: f64, dropped: f64) -> v1::Rates {
    v1::Rates {
        offered_bps,
        passed_bps: offered_bps * (1.0 - dropped),
        offered_packets_per_second: offered_bps / 8_000.0,
        dropped_packets_per_second: offered_bps / 8_000.0 * dropped,
        marked_packets_per_second: offered_bps / 80_000.0,
    }
}

fn class(path: &str, limit_bps: Option<u64>, rows: u64, rates: v1::Rates) -> v1::ClassReading {
    let counters = v1::Counters {
        offered_packets: 1_000_000,
        dropped_packets: 125_000,
        marked_packets: 10_000,
        ..v1::Counters::default()
    };
    v1::ClassReading {
        path: path.into(),
        limit_bps,
        rows,
        counters: Some(counters),
        rates: Some(rates),
        shadow: path.ends_with("trial"),
        ..v1::ClassReading::default()
    }
}

/// The rates of gold go up over a minute.
fn readings(step: u32) -> v1::Readings {
    let gold_bps = f64::from(step) * 1e6;
    let classes = vec![
        class("down/gold", Some(50_000_000), 0, rates(gold_bps, 0.0)),
        class("down/tenants", None, 2_000_000, rates(812_345_678.0, 0.125)),
        class("down/a-class-with-a-rather-long-name", Some(1_000_000_000), 0, rates(1_000.0, 0.0)),
        class("down/trial", Some(5_000_000), 0, v1::Rates { passed_bps: 10e6, ..rates(10e6, 0.5) }),
        class("down/idle", None, 0, rates(0.0, 0.0)),
    ];
    let link = v1::LinkReading { rates: Some(rates(900e6, 0.125)), ..v1::LinkReading::default() };
    let reason = |reason: &str, packets, packets_per_second| v1::ReasonReading {
        reason: reason.into(),
        packets,
        packets_per_second,
    };
    v1::Readings {
        interval_ns: 1_000_000_000,
        links: vec![link],
        classes,
        reasons: vec![reason("short_ipv4", 3, 0.0), reason("over_rate", 1_250_000, 12_693.0)],
        ..v1::Readings::default()
    }
}

fn view() -> View {
    let mut view = View::new(1_000_000_000);
    view.take(News::Status(Box::new(status())));
    (1..=60).for_each(|step| view.take(News::Readings(Box::new(readings(step)))));
    view
}

fn limits(view: &View, total: u64) -> Limits {
    let limit = |row: &str, rate_bps, rates| v1::Limit {
        name: format!("down/tenants/{row}"),
        row: row.into(),
        rate_bps,
        counters: Some(v1::Counters::default()),
        rates: Some(rates),
        ..v1::Limit::default()
    };
    let limits = vec![limit("acme", 10_000_000, rates(12e6, 0.25)), limit("borealis", 20_000_000, rates(4e6, 0.0))];
    Limits { wanted: view.wanted().unwrap(), total, limits }
}

fn drawn_with(view: &View, width: u16, height: u16, theme: Theme) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view, theme, NOW_NS)).unwrap();
    terminal
}

/// A frame, without the spaces at the ends of its lines.
fn drawn(view: &View, width: u16, height: u16) -> String {
    let terminal = drawn_with(view, width, height, Theme::of("xterm", "").unwrap());
    let cells = terminal.backend().buffer().content();
    let lines = cells.chunks(usize::from(width)).map(|line| {
        let line: String = line.iter().map(ratatui::buffer::Cell::symbol).collect();
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned() + "\n"
}

fn keys(view: &mut View, codes: &[KeyCode]) -> After {
    codes.iter().fold(After::GoOn, |_, &code| press(view, KeyEvent::new(code, KeyModifiers::NONE)))
}

fn text(view: &mut View, typed: &str) {
    typed.chars().for_each(|letter| {
        keys(view, &[KeyCode::Char(letter)]);
    });
}

#[test]
fn classes_at_80_by_24() {
    assert_eq!(
        drawn(&view(), 80, 24),
        "\
edge: generation 3, for 5 min, data plane xdp                           every 1s
offered 900.0 Mbit/s, passed 787.5 Mbit/s, dropped 112.5 Mbit/s (12.5 %)
5 classes                                                         rates in bit/s
class                      limit offered▼   passed  dropped   marked last 60 s
down/tenants                   -  812.3 M  710.8 M   12.5 %   10.0 %  ██████████
down/gold                50.00 M  60.00 M  60.00 M    0.0 %   10.0 %  ▁▂▃▄▅▆▇███
down/trial                5.00 M  10.00 M  10.00 M  ~50.0 %   10.0 %  ██████████
…ith-a-rather-long-name   1.00 G   1.00 k   1.00 k    0.0 %   10.0 %  ▁▁▁▁▁▁▁▁▁▁
down/idle                      -        0        0        -        -











down/tenants, 2.00 M rows: 1.00 M packets, dropped 12.5 %, marked 1.0 %
over_rate 12.69 k/s (1.25 M in all), short_ipv4 0/s (3 in all)

? help  / filter  < > sort  r reverse  Enter limits of the class  q quit
"
    );
}

#[test]
fn classes_at_120_by_40() {
    assert_eq!(
        drawn(&view(), 120, 40),
        "\
edge: generation 3, for 5 min, data plane xdp                                                                   every 1s
offered 900.0 Mbit/s, passed 787.5 Mbit/s, dropped 112.5 Mbit/s (12.5 %)
5 classes                                                                                                 rates in bit/s
class                                                 limit offered▼   passed  dropped   marked last 60 s
down/tenants                                              -  812.3 M  710.8 M   12.5 %   10.0 %     ████████████████████
down/gold                                           50.00 M  60.00 M  60.00 M    0.0 %   10.0 %     ▁▁▂▂▃▃▄▄▅▅▆▆▇▇██████
down/trial                                           5.00 M  10.00 M  10.00 M  ~50.0 %   10.0 %     ████████████████████
down/a-class-with-a-rather-long-name                 1.00 G   1.00 k   1.00 k    0.0 %   10.0 %     ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
down/idle                                                 -        0        0        -        -



























down/tenants, 2.00 M rows: 1.00 M packets, dropped 12.5 %, marked 1.0 %
over_rate 12.69 k/s (1.25 M in all), short_ipv4 0/s (3 in all)

? help  / filter  < > sort  r reverse  Enter limits of the class  q quit
"
    );
}

#[test]
fn limits_of_a_class_wait_for_the_daemon_and_then_say_how_many_there_are() {
    let mut view = view();
    keys(&mut view, &[KeyCode::Enter]);
    let asking = drawn(&view, 80, 24);
    assert!(asking.contains("down/tenants: asking for its limits") && asking.contains("\nmeasuring\n"), "{asking}");
    let told = limits(&view, 2_000_000);
    view.take(News::Limits(told));
    assert_eq!(
        drawn(&view, 80, 14),
        "\
edge: generation 3, for 5 min, data plane xdp                           every 1s
offered 900.0 Mbit/s, passed 787.5 Mbit/s, dropped 112.5 Mbit/s (12.5 %)
down/tenants: 2 of 2.00 M limits                                  rates in bit/s
limit of                   limit offered▼   passed  dropped   marked last 60 s
acme                     10.00 M  12.00 M   9.00 M   25.0 %   10.0 %           █
borealis                 20.00 M   4.00 M   4.00 M    0.0 %   10.0 %           ▂




acme, limit 10Mbit/s: 0 packets, dropped -, marked -
over_rate 12.69 k/s (1.25 M in all), short_ipv4 0/s (3 in all)

? help  / filter  < > sort  r reverse  Esc back to the classes  q quit
"
    );
    // Limits of a class that is not shown any more change nothing.
    let late = limits(&view, 2);
    keys(&mut view, &[KeyCode::Esc, KeyCode::Down, KeyCode::Char('l')]);
    view.take(News::Limits(late));
    assert!(drawn(&view, 80, 24).contains("down/gold: asking for its limits"));
}

#[test]
fn a_limit_that_is_not_counted_is_said_not_to_be() {
    let mut view = view();
    keys(&mut view, &[KeyCode::Enter]);
    let mut told = limits(&view, 2);
    told.limits.iter_mut().for_each(|limit| (limit.counters, limit.rates) = (None, None));
    view.take(News::Limits(told));
    let frame = drawn(&view, 80, 24);
    assert!(frame.contains("\nacme, limit 10Mbit/s: not counted on its own\n"), "{frame}");
    assert!(!frame.contains("0 packets"), "{frame}");
}

#[test]
fn trouble_is_told_in_full_and_gone_with_the_next_reading() {
    let mut view = view();
    let why =
        "no daemon listens on /run/penstock/node.sock; start one with `penstock node` or `systemctl start penstock`";
    view.take(News::Trouble(why.into()));
    let frame = drawn(&view, 80, 24);
    let words = frame.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("No readings: {why}. Trying again; what is below is old.")), "{frame}");
    assert!(frame.contains("down/tenants ") && frame.contains("q quit"), "{frame}");
    view.take(News::Readings(Box::new(readings(61))));
    assert!(!drawn(&view, 80, 24).contains("No readings"));
}

#[test]
fn nothing_is_known_at_first_and_nothing_may_be_in_force() {
    let mut view = View::new(1_000_000_000);
    assert!(drawn(&view, 80, 24).contains("\nmeasuring\n"));
    view.take(News::Status(Box::new(v1::StatusReply { dataplane: "xdp".into(), ..v1::StatusReply::default() })));
    assert!(drawn(&view, 80, 24).starts_with("no policy, data plane xdp "));
}

#[test]
fn help_fits_and_every_key_of_the_last_line_is_in_it() {
    let mut view = view();
    keys(&mut view, &[KeyCode::Char('?')]);
    let frame = drawn(&view, 80, 24);
    assert!(HELP.lines().all(|line| frame.contains(line)), "{frame}");
    keys(&mut view, &[KeyCode::Char('x')]);
    assert!(drawn(&view, 80, 24).contains("down/tenants "));
}

#[test]
fn keys_choose_the_column_and_the_order() {
    let mut view = view();
    let titles = |view: &View| drawn(view, 80, 24).lines().nth(3).unwrap().to_owned();
    keys(&mut view, &[KeyCode::Right]);
    assert!(titles(&view).contains("passed▼"));
    keys(&mut view, &[KeyCode::Char('>'), KeyCode::Char('r')]);
    assert!(titles(&view).contains("dropped▲"));
    keys(&mut view, &[KeyCode::Char('r'), KeyCode::Right, KeyCode::Right]);
    assert!(titles(&view).ends_with("last 60 s▼"));
    keys(&mut view, &[KeyCode::Right]);
    assert!(titles(&view).starts_with("class▲"));
    keys(&mut view, &[KeyCode::Char('<')]);
    assert!(titles(&view).ends_with("last 60 s▼"));
}

#[test]
fn filters_are_typed_kept_and_cleared() {
    let mut view = view();
    let has = |view: &View, expected: &str| {
        let frame = drawn(view, 80, 24);
        assert!(frame.contains(expected), "{expected}:\n{frame}");
    };
    text(&mut view, "/goldq");
    has(&view, "filter: goldq_");
    has(&view, "\nnothing fits\n");
    keys(&mut view, &[KeyCode::Backspace, KeyCode::Enter]);
    has(&view, "1 of 5 classes with `gold` ");
    assert!(!drawn(&view, 80, 24).contains("down/tenants"));
    // The filter of limits is for the daemon, too, once it is typed.
    keys(&mut view, &[KeyCode::Enter]);
    text(&mut view, "/ac");
    assert_eq!(view.wanted().unwrap().filter, "");
    keys(&mut view, &[KeyCode::Enter]);
    assert_eq!((view.wanted().unwrap().class.as_str(), view.wanted().unwrap().filter.as_str()), ("down/gold", "ac"));
    keys(&mut view, &[KeyCode::Esc]);
    assert_eq!(view.wanted().unwrap().filter, "");
    keys(&mut view, &[KeyCode::Esc]);
    assert_eq!(view.wanted(), None);
    keys(&mut view, &[KeyCode::Esc]);
    has(&view, "\n5 classes ");
}

#[test]
fn q_and_ctrl_c_quit_but_q_can_be_typed() {
    let mut view = view();
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(keys(&mut view, &[KeyCode::Char('/'), KeyCode::Char('q')]), After::GoOn);
    assert_eq!(press(&mut view, ctrl_c), After::Quit);
    assert_eq!(keys(&mut view, &[KeyCode::Esc, KeyCode::Char('?'), KeyCode::Char('q')]), After::Quit);
    assert_eq!(keys(&mut view, &[KeyCode::Char('q')]), After::Quit);
}

#[test]
fn the_page_follows_the_chosen_row() {
    let mut view = View::new(1_000_000_000);
    let classes = (0..100).map(|index| class(&format!("down/c{index:02}"), None, 0, rates(1e6, 0.0))).collect();
    view.take(News::Readings(Box::new(v1::Readings { classes, ..readings(1) })));
    assert!(drawn(&view, 80, 24).contains("down/c00 ") && !drawn(&view, 80, 24).contains("down/c50 "));
    keys(&mut view, &[KeyCode::PageDown; 5]);
    let frame = drawn(&view, 80, 24);
    assert!(frame.contains("down/c50 ") && frame.contains("down/c50: ") && !frame.contains("down/c00 "), "{frame}");
    keys(&mut view, &[KeyCode::End]);
    assert!(drawn(&view, 80, 24).contains("down/c99: "));
    keys(&mut view, &[KeyCode::Home]);
    assert!(drawn(&view, 80, 24).contains("down/c00: "));
}

#[test]
fn any_size_can_be_drawn() {
    let mut view = view();
    for is_helping in [false, true] {
        view.is_helping = is_helping;
        for (width, height) in [(1, 1), (71, 24), (80, 11), (72, 12), (73, 13), (300, 100)] {
            let frame = drawn(&view, width, height);
            assert_eq!(frame.contains("q quit") || frame.contains("q: quit"), width >= 72 && height >= 12, "{frame}");
        }
    }
}

#[test]
fn without_colors_nothing_is_colored_and_the_chosen_row_still_shows() {
    let colors = |no_color| {
        let terminal = drawn_with(&view(), 80, 24, Theme::of("xterm", no_color).unwrap());
        let cells = terminal.backend().buffer().content().to_vec();
        let colored = cells.iter().filter(|cell| cell.fg != ratatui::style::Color::Reset).count();
        let chosen = cells.iter().filter(|cell| cell.modifier.contains(ratatui::style::Modifier::REVERSED)).count();
        (colored > 0, chosen)
    };
    assert_eq!((colors(""), colors("1")), ((true, 80), (false, 80)));
}

fn shared() -> View {
    let mut view = View::new(1_000_000_000);
    view.take(News::Status(Box::new(status())));
    view.take(News::Readings(Box::new(shared_readings())));
    view
}

#[test]
fn shares_at_80_by_24_are_a_tree() {
    let mut view = shared();
    keys(&mut view, &[KeyCode::Down]);
    assert_eq!(
        drawn(&view, 80, 24),
        "\
edge: generation 3, for 5 min, data plane xdp                           every 1s
offered 1.01 Gbit/s, passed 1.01 Gbit/s, dropped 0 bit/s (0.0 %)
7 classes                                                         rates in bit/s
class▲                    demand    share   passed  dropped     fair last 60 s
down                      2.18 G   1.00 G   1.00 G    0.0 %    0.998           █
  gold                   800.0 M  400.0 M  400.0 M    0.0 %    1.000           █
    a                    400.0 M  300.0 M  300.0 M    0.0 %        -           █
    b                    400.0 M  100.0 M  100.0 M    0.0 %        -           █
  homes                  900.0 M  400.0 M  400.0 M    0.0 %        -           █
    each user                  -  40.00 M        -        -        -
  shops                  480.0 M  200.0 M  200.0 M    0.0 %    0.990           █
    6 of 64 users              -        -        -        -        -
up                             -        -   8.00 M    0.0 %        -           ▁
  small                        -        -   1.00 M    0.0 %        -           ▂
  big                          -        -   7.00 M    0.0 %        -           █





down/gold, weight 2, guarantee 200Mbit/s, ceiling 500Mbit/s: 10 packets, dropped
no packet was dropped, marked or held

? help  / filter  < > sort  r reverse  t classes  Enter limits  q quit
"
    );
}

#[test]
fn in_a_tree_siblings_are_sorted_filters_keep_what_is_above_and_t_turns_it_off() {
    let names = |view: &View| {
        let shown = view.classes.shown_deep();
        shown.iter().map(|(depth, row)| format!("{depth} {}", row.label())).collect::<Vec<_>>().join(", ")
    };
    let mut view = shared();
    let all = "0 down, 1 gold, 2 a, 2 b, 1 homes, 2 each user, 1 shops, 2 6 of 64 users, 0 up, 1 small, 1 big";
    assert_eq!(names(&view), all);
    keys(&mut view, &[KeyCode::Char('r')]);
    assert!(names(&view).starts_with("0 up, 1 big, 1 small, 0 down, 1 shops, 2 6 of 64 users, 1 homes"));
    keys(&mut view, &[KeyCode::Char('r'), KeyCode::Right]);
    assert!(names(&view).starts_with("0 down, 1 homes, 2 each user, 1 gold, 2 a, 2 b, 1 shops"), "by demand");
    text(&mut view, "/gold/b");
    assert_eq!(names(&view), "0 down, 1 gold, 2 b");
    // Limits are those of classes, and of nothing else.
    keys(&mut view, &[KeyCode::Enter, KeyCode::Enter]);
    assert_eq!(view.wanted(), None);
    keys(&mut view, &[KeyCode::End, KeyCode::Enter]);
    assert_eq!(view.wanted().unwrap().class, "down/gold/b");
    keys(&mut view, &[KeyCode::Backspace, KeyCode::Esc, KeyCode::Char('t')]);
    let frame = drawn(&view, 80, 24);
    assert!(
        frame.contains("limit offered▼") && frame.contains("\ndown/gold ") && !frame.contains("each user"),
        "{frame}"
    );
    // A person's choice stays.
    view.take(News::Readings(Box::new(shared_readings())));
    assert!(!view.classes.is_tree());
    keys(&mut view, &[KeyCode::Char('t')]);
    assert_eq!(names(&view), all);
    // A reload to a policy that shares nothing.
    view.take(News::Readings(Box::new(readings(1))));
    assert!(!view.classes.is_tree() && drawn(&view, 80, 24).contains("Enter limits of the class"));
    keys(&mut view, &[KeyCode::Char('t')]);
    assert!(!view.is_flat, "there is nothing to turn");
}
