// SPDX-License-Identifier: MIT OR Apache-2.0
//! A long wire between the middle and a receiver: Penstock's own delay lines, half of a round trip each way, in a namespace between them.

use crate::LabError;
use crate::enforce::Live;
use crate::netns::Namespace;
use crate::quantity::Time;
use std::sync::Mutex;

/// The wire's device towards the middle.
const NEAR: &str = "near";
/// And towards the receiver.
const FAR: &str = "far";

/// As late as timers are here, so that a wire is as long as it says.
const SPIN: &str = "80us";

/// A wire in place. Dropping it takes it out.
#[derive(Debug)]
pub struct Wire {
    // In this order they go. Nobody asks for the lines again; the lock lets threads share what has a wire.
    _lines: Mutex<Live>,
    _namespace: Namespace,
}

impl Wire {
    /// Puts a wire between a device that is made in the middle, and one that is made at a host.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn between(middle: (&Namespace, &str), host: (&Namespace, &str), round_trip: Time) -> Result<Self, LabError> {
        let namespace = Namespace::create("wire")?;
        let name = namespace.name();
        middle.0.ip(&format!("link add {} type veth peer name {NEAR} netns {name}", middle.1))?;
        namespace.ip(&format!("link add {FAR} type veth peer name {} netns {}", host.1, host.0.name()))?;
        for device in [NEAR, FAR] {
            namespace.exec(&format!("ethtool -K {device} tx off tso off gso off gro off"))?;
            namespace.ip(&format!("link set {device} up"))?;
        }
        let lines = Live::start(&policy(round_trip), &namespace)?;
        Ok(Self { _lines: Mutex::new(lines), _namespace: namespace })
    }
}

fn policy(round_trip: Time) -> String {
    let (there, back) = (round_trip.0 / 2, round_trip.0 - round_trip.0 / 2);
    format!(
        "penstock: 1
shaper: {{ spin: {SPIN} }}
ports: {{ near: {{ device: {NEAR}, rate: 100Gbit/s }}, far: {{ device: {FAR}, rate: 100Gbit/s }} }}
forward: [ [ near, far ] ]
links:
  - {{ name: there, port: far, delay: {there}ns, classes: [] }}
  - {{ name: back, port: near, delay: {back}ns, classes: [] }}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_make_the_round_trip() {
        let text = policy(Time(1_250_001));
        let policy = penstock_policy::Policy::parse("wire", &text).unwrap();
        let times = policy.links.iter().map(|link| link.delay.unwrap().time_ns);
        assert_eq!(times.sum::<u64>(), 1_250_001);
    }
}
