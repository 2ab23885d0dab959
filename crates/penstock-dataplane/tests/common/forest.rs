// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random trees of classes as policies, who floods their leaves, and what exact water-filling gives them.

use penstock_algo::plane::Rng;
use penstock_packet::{Batch, CaptureError, Format, Frame, FrameSource, Interface, LinkType, Progress};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write;

/// Charged for each packet: IP packet and Ethernet header.
pub const PACKET_BYTES: u32 = 1000;

/// A class. Rates are bit/s.
#[derive(Debug, Clone, Default)]
pub struct Node {
    pub weight: f64,
    pub guarantee: f64,
    pub ceiling: f64,
    /// What a leaf sends.
    pub demand: f64,
    pub children: Vec<Node>,
    /// What water-filling gives it.
    pub share: f64,
}

impl Node {
    pub fn leaf(weight: f64, demand: f64) -> Self {
        Self { weight, ceiling: f64::INFINITY, demand, ..Self::default() }
    }

    pub fn inner(weight: f64, children: Vec<Node>) -> Self {
        Self { weight, ceiling: f64::INFINITY, children, ..Self::default() }
    }

    /// Leaves in file order.
    pub fn leaves(&self) -> Vec<&Node> {
        if self.children.is_empty() { vec![self] } else { self.children.iter().flat_map(Node::leaves).collect() }
    }

    fn wants(&mut self) -> f64 {
        if !self.children.is_empty() {
            self.demand = self.children.iter_mut().map(Node::wants).sum();
        }
        self.demand.min(self.ceiling)
    }

    fn at(&self, alpha: f64) -> f64 {
        self.demand.min(self.ceiling).min(self.guarantee.max(self.weight * alpha))
    }

    /// Weighted max-min with floors and ceilings, level by level: INTERFACE, "share".
    pub fn fill(&mut self, rate: f64) {
        self.wants();
        self.pour(rate);
    }

    fn pour(&mut self, rate: f64) {
        self.share = rate;
        let used = |alpha: f64| self.children.iter().map(|child| child.at(alpha)).sum::<f64>();
        let (mut low, mut high) = (0.0, 1.0);
        while high < 1e18 && used(high) < rate {
            high *= 2.0;
        }
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if used(middle) < rate { low = middle } else { high = middle }
        }
        for child in &mut self.children {
            child.pour(child.at(high));
        }
    }

    /// A tree of this depth below it, with as many leaves as `left` allows.
    pub fn grow(rng: &mut Rng, depth: u32, left: &mut u32, rate: f64) -> Self {
        let mut draw = |below: u32| rng.next_u32() % below;
        let weight = f64::from(1 + draw(4));
        let has_ceiling = draw(5) == 0;
        let ceiling = if has_ceiling { rate * (0.1 + f64::from(draw(60)) / 100.0) } else { f64::INFINITY };
        if depth == 0 || *left < 2 || draw(4) == 0 {
            let demand = rate * 0.3 * (f64::from(draw(2000)) / 1000.0 - 1.0).mul_add(1.5, 0.0).exp();
            return Self { ceiling, ..Self::leaf(weight, demand) };
        }
        let count = 2 + draw(4).min(*left - 2);
        *left -= count - 1;
        let children = (0..count).map(|_| Self::grow(rng, depth - 1, left, rate / f64::from(count) * 1.5)).collect();
        Self { ceiling, ..Self::inner(weight, children) }
    }

    fn write(&self, text: &mut String, indent: usize, name: &str, leaf: &mut usize) {
        let pad = " ".repeat(indent);
        // Writing to a string cannot fail.
        let _ = write!(text, "{pad}- name: {name}\n{pad}  weight: {}\n", self.weight);
        if self.guarantee > 0.0 {
            let _ = writeln!(text, "{pad}  guarantee: {:.0}bit/s", self.guarantee);
        }
        if self.ceiling.is_finite() {
            let _ = writeln!(text, "{pad}  ceiling: {:.0}bit/s", self.ceiling);
        }
        if self.children.is_empty() {
            let _ = writeln!(text, "{pad}  match: [ {{ dst: 10.0.{}.{} }} ]", *leaf / 256, *leaf % 256);
            *leaf += 1;
            return;
        }
        let _ = writeln!(text, "{pad}  children:");
        for (index, child) in self.children.iter().enumerate() {
            child.write(text, indent + 4, &format!("c{index}"), leaf);
        }
    }

    /// The policy of a link whose classes are this node's children.
    pub fn policy(&self, rate: f64) -> String {
        let mut text = format!(
            "penstock: 1\nname: forest\nports: {{ p: {{ rate: 100Gbit/s }} }}\nlinks:\n  - name: l\n    port: p\n    rate: {rate:.0}bit/s\n    unmatched: drop\n    classes:\n"
        );
        let mut leaf = 0;
        for (index, child) in self.children.iter().enumerate() {
            child.write(&mut text, 6, &format!("c{index}"), &mut leaf);
        }
        text
    }
}

/// Each leaf sends evenly, give or take half a gap.
pub struct Flood {
    due: BinaryHeap<Reverse<(u64, usize)>>,
    gaps_ns: Vec<f64>,
    frame: Vec<u8>,
    rng: Rng,
    /// Until when it sends.
    pub until_ns: u64,
    /// Whose packet each one was.
    pub sent: Vec<usize>,
    interfaces: Vec<Interface>,
}

impl Flood {
    pub fn new(demands_bps: &[f64], seed: u64) -> Self {
        let mut frame = vec![0; 42];
        frame[12] = 0x08;
        frame[14] = 0x45;
        let ip_bytes = u16::try_from(PACKET_BYTES - 14).unwrap();
        frame[16..18].copy_from_slice(&ip_bytes.to_be_bytes());
        frame[22] = 64;
        frame[23] = 17;
        frame[26..30].copy_from_slice(&[172, 16, 0, 1]);
        frame[30] = 10;
        frame[38..40].copy_from_slice(&(ip_bytes - 20).to_be_bytes());
        let mut rng = Rng::new(seed);
        let gaps_ns: Vec<f64> = demands_bps.iter().map(|bps| f64::from(PACKET_BYTES) * 8e9 / bps).collect();
        let due = gaps_ns.iter().enumerate().map(|(leaf, gap)| Reverse((draw(&mut rng, *gap), leaf))).collect();
        let interface = Interface { name: None, linktype: 1, snap_bytes: 65_535 };
        Self { due, gaps_ns, frame, rng, until_ns: 0, sent: Vec::new(), interfaces: vec![interface] }
    }
}

/// Between nothing and this.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // times of a test
fn draw(rng: &mut Rng, most: f64) -> u64 {
    (f64::from(rng.next_u32()) / 4_294_967_296.0 * most) as u64
}

impl FrameSource for Flood {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, CaptureError> {
        batch.clear();
        while batch.len() < 512 {
            let Some(Reverse((time_ns, leaf))) = self.due.peek().copied() else { break };
            if time_ns >= self.until_ns {
                break;
            }
            self.due.pop();
            self.sent.push(leaf);
            self.frame[32] = u8::try_from(leaf / 256).unwrap();
            self.frame[33] = u8::try_from(leaf % 256).unwrap();
            let link = LinkType::Ethernet;
            batch.push(&Frame { time_ns, wire_bytes: PACKET_BYTES, link, interface: 0, data: &self.frame });
            let gap = self.gaps_ns[leaf];
            let next_ns = time_ns + draw(&mut self.rng, gap) + half(gap);
            self.due.push(Reverse((next_ns, leaf)));
        }
        Ok(!batch.is_empty())
    }

    fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    fn format(&self) -> Format {
        Format::Pcap
    }

    fn progress(&self) -> Progress {
        Progress { done: 0, total: None }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // times of a test
fn half(gap_ns: f64) -> u64 {
    (gap_ns / 2.0) as u64
}
