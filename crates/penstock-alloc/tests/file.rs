// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network files: what is written is read back, and no text makes a panic.
#![allow(clippy::unwrap_used)] // a test may panic

use penstock_alloc::file::BUFFER_DEFAULT_BYTES;
use penstock_alloc::model::{Aggregate, Class, Limit, LimitKind, LocalPolicy, Network, Port, PortId};
use penstock_alloc::problems;
use penstock_policy::diagnostics::Source;
use proptest::prelude::*;
use std::collections::HashSet;

fn parse(text: &str) -> Result<Network, penstock_policy::Errors> {
    Network::parse(&Source::new("n.yaml", text.to_owned()))
}

/// Names as people give them, and as nobody should.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][0-9]{1,2}-[a-z][0-9]",
        "[a-zA-Z0-9.:_/#,\\[\\]{}&*!|>'\"%@`?=~\\\\-]{1,12}",
        "[äßéλ中𝔘\u{200d}\u{feff}\u{ad}]{1,4}",
        Just("null".to_owned()),
        Just("~".to_owned()),
        Just("1e3".to_owned()),
    ]
}

fn rate_bps() -> impl Strategy<Value = u64> {
    prop_oneof![1_000_u64..10_000, Just(100_000_000_000), 1_000_000_u64..1_000_000_000]
}

fn limit() -> impl Strategy<Value = Option<Limit>> {
    let kind = prop_oneof![Just(LimitKind::Soft), Just(LimitKind::Hard)];
    proptest::option::of((rate_bps(), kind).prop_map(|(rate_bps, kind)| Limit { rate_bps, kind }))
}

fn distinct(names: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    names.into_iter().filter(|name| seen.insert(name.clone())).collect()
}

prop_compose! {
    fn ports()(
        names in proptest::collection::vec(name(), 1..8).prop_map(distinct),
        switches in proptest::collection::vec(name(), 8).prop_map(distinct),
        rates_bps in proptest::collection::vec(rate_bps(), 8),
        buffers in proptest::collection::vec(prop_oneof![Just(BUFFER_DEFAULT_BYTES), 0_u64..1_000_000], 8),
    ) -> Vec<Port> {
        let port = |(index, name): (usize, String)| Port {
            name,
            switch: switches[index % switches.len()].clone(),
            rate_bps: rates_bps[index],
            buffer_bytes: buffers[index],
        };
        names.into_iter().enumerate().map(port).collect()
    }
}

prop_compose! {
    fn class()(
        name in name(),
        priority in prop_oneof![Just(0), any::<u32>()],
        weight in prop_oneof![Just(1), 1_u32..1 << 24],
        limit in limit(),
        demand_bps in proptest::option::of(rate_bps()),
        safe_bps in proptest::option::of(rate_bps()),
        paths in proptest::collection::vec(proptest::collection::vec(0_u32..8, 1..6), 1..20),
    ) -> Class {
        Class { name, priority, weight, limit, demand_bps, safe_bps, paths }
    }
}

/// Paths of ports that exist, and that meet no switch twice.
fn mended(path: &[PortId], ports: &[Port]) -> Vec<PortId> {
    let mut switches = HashSet::new();
    let count = u32::try_from(ports.len()).unwrap();
    let path = path.iter().map(|port| port % count);
    path.filter(|port| switches.insert(&ports[*port as usize].switch)).collect()
}

prop_compose! {
    fn network()(
        ports in ports(),
        classes in proptest::collection::vec(class(), 0..8),
        local in proptest::collection::vec((any::<prop::sample::Index>(), limit(), proptest::option::of(1_u32..9)), 0..8),
        aggregates in proptest::collection::vec((name(), rate_bps(), proptest::collection::vec(any::<prop::sample::Index>(), 1..20)), 0..4),
    ) -> Network {
        let mut seen = HashSet::new();
        let mut classes: Vec<Class> = classes.into_iter().filter(|class| seen.insert(class.name.clone())).collect();
        for class in &mut classes {
            for path in &mut class.paths {
                *path = mended(path, &ports);
            }
        }
        let met = classes.iter().enumerate().flat_map(|(index, class)| class.paths.iter().flatten().map(move |&port| (index, port)));
        let met: Vec<(usize, PortId)> = met.collect();
        let mut seen = HashSet::new();
        let local = if met.is_empty() { Vec::new() } else { local };
        let local = local.into_iter().filter_map(|(at, limit, weight)| {
            let (class, port) = *at.get(&met);
            let priority = (limit.is_none() && weight.is_none()).then_some(7);
            let policy = LocalPolicy { port, class: u32::try_from(class).unwrap(), priority, weight, limit };
            seen.insert((port, class)).then_some(policy)
        });
        let local = local.collect();
        let mut names: HashSet<String> = ports.iter().map(|port| port.name.clone()).collect();
        let member = |at: prop::sample::Index| u32::try_from(at.index(classes.len())).unwrap();
        let members = |of: Vec<prop::sample::Index>| {
            let mut seen = HashSet::new();
            of.into_iter().map(member).filter(|class| seen.insert(*class)).collect()
        };
        let aggregates = if classes.is_empty() { Vec::new() } else { aggregates };
        let aggregates = aggregates.into_iter().filter(|(name, ..)| names.insert(name.clone()));
        let aggregate = |(name, rate_bps, classes)| Aggregate { name, rate_bps, classes: members(classes) };
        let aggregates = aggregates.map(aggregate).collect();
        Network { local, ports, classes, aggregates }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn what_is_written_is_read_back(network in network()) {
        let text = network.to_yaml();
        match parse(&text) {
            Ok(read) => prop_assert_eq!(&read, &network),
            Err(errors) => prop_assert!(false, "{}\n{}", errors, text),
        }
        // Classes that come behind the ports are read one by one; the order of the sections says nothing.
        let (head, tail) = text.split_at(text.find("\nclasses:").unwrap() + 1);
        let (start, ports) = head.split_at(head.find("\nports:").unwrap() + 1);
        prop_assert_eq!(parse(&format!("{start}{tail}{ports}")).ok(), Some(network));
    }

    /// Hard limits that do not fit are told of a file as of the network, with their places.
    #[test]
    fn what_does_not_fit_has_a_place_in_the_file(network in network()) {
        let (read, unfit) = Network::parse_checked(&Source::new("n.yaml", network.to_yaml())).unwrap();
        prop_assert_eq!(&read, &network);
        let messages: Vec<String> = unfit.diagnostics().iter().map(|one| one.problem.message.clone()).collect();
        prop_assert_eq!(messages, problems(&network));
        for one in unfit.diagnostics() {
            prop_assert!((1..=3).contains(&one.related.len()) && one.place.column() > 1, "{}", unfit);
        }
    }

    #[test]
    fn no_text_makes_a_panic(network in network(), edits in proptest::collection::vec((any::<prop::sample::Index>(), edit()), 1..6)) {
        let mut text: Vec<char> = network.to_yaml().chars().collect();
        for (at, edit) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + edit.0).min(text.len());
            text.splice(at..end, edit.1.chars());
        }
        let text: String = text.into_iter().collect();
        match parse(&text) {
            // What passes is a network: it can be written and read again.
            Ok(read) => prop_assert_eq!(parse(&read.to_yaml()).ok(), Some(read)),
            Err(errors) => {
                prop_assert!(!errors.diagnostics().is_empty());
                for diagnostic in errors.diagnostics() {
                    prop_assert!(diagnostic.place.line() > 0 && diagnostic.place.column() > 0, "{}", errors);
                }
                prop_assert!(errors.render(false).contains("n.yaml:"));
            }
        }
    }
}

/// So many characters are replaced by those.
fn edit() -> impl Strategy<Value = (usize, String)> {
    let words = prop_oneof![
        Just(String::new()),
        Just("[".to_owned()),
        Just("{ ".to_owned()),
        Just("]".to_owned()),
        Just("\n  - ".to_owned()),
        Just("&a *a".to_owned()),
        Just("rate: 99999999999999999999999Tbit/s".to_owned()),
        Just("\u{0}\u{85}é".to_owned()),
        ".{0,6}",
    ];
    (0_usize..12, words)
}
