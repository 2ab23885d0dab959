// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two inner classes of four leaves each, and what is theirs by weighted max-min, exactly.

/// A class, or the link.
#[derive(Debug, Clone)]
pub struct Node {
    pub weight: f64,
    /// Bits a second, as all here.
    pub ceiling: f64,
    /// Of a leaf: what is offered to it.
    pub demand: f64,
    pub share: f64,
    pub children: Vec<Node>,
}

impl Node {
    fn leaf(weight: f64, ceiling: f64) -> Self {
        Self { weight, ceiling, demand: 0.0, share: 0.0, children: Vec::new() }
    }

    fn inner(weight: f64, children: Vec<Node>) -> Self {
        Self { children, ..Self::leaf(weight, f64::INFINITY) }
    }

    /// Three quarters of a link are for leaves of weights 1 to 4, a quarter is for four equal ones. One of each has a ceiling.
    pub fn link(rate: f64, demand: f64) -> Self {
        let first = [1.0, 2.0, 3.0, 4.0]
            .map(|weight| Self::leaf(weight, if weight > 3.0 { 0.2 * rate } else { f64::INFINITY }));
        let second =
            [0.04, 1.0, 1.0, 1.0].map(|part| Self::leaf(1.0, if part < 1.0 { part * rate } else { f64::INFINITY }));
        let mut link = Self::inner(1.0, vec![Self::inner(3.0, first.into()), Self::inner(1.0, second.into())]);
        link.ask(demand);
        link.fill(rate);
        link
    }

    fn ask(&mut self, demand: f64) -> f64 {
        if !self.children.is_empty() {
            self.demand = self.children.iter_mut().map(|child| child.ask(demand)).sum();
        } else {
            self.demand = demand;
        }
        self.demand = self.demand.min(self.ceiling);
        self.demand
    }

    /// Raises the water until all is used or nobody asks for more.
    fn fill(&mut self, rate: f64) {
        self.share = rate.min(self.demand);
        let (mut low, mut high) = (0.0, self.share);
        for _ in 0..100 {
            let level = f64::midpoint(low, high);
            let used: f64 = self.children.iter().map(|child| child.demand.min(child.weight * level)).sum();
            if used < self.share { low = level } else { high = level }
        }
        self.children.iter_mut().for_each(|child| child.fill(child.demand.min(child.weight * high)));
    }

    pub fn leaves(&self) -> Vec<&Node> {
        if self.children.is_empty() { vec![self] } else { self.children.iter().flat_map(Node::leaves).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::Node;

    fn shares(demand: f64) -> Vec<f64> {
        Node::link(1.0, demand).leaves().iter().map(|leaf| (leaf.share * 1e4).round() / 1e4).collect()
    }

    #[test]
    fn water_finds_its_level() {
        // The first class has 0.75: weights 1, 2, 3 of 0.55, behind the one that has its ceiling of 0.2.
        assert_eq!(shares(1.0), [0.0917, 0.1833, 0.275, 0.2, 0.04, 0.07, 0.07, 0.07]);
        // Nobody asks for more than 0.15: the first takes 0.6, and the second has 0.4.
        assert_eq!(shares(0.15), [0.15, 0.15, 0.15, 0.15, 0.04, 0.12, 0.12, 0.12]);
    }
}
