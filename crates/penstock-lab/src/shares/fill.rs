// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weighted hierarchical max-min shares, exactly: water is poured into a tree, level by level.

/// A place in a tree. Rates are in any one unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Node {
    /// The root has none.
    pub parent: Option<usize>,
    /// Its part of what siblings share.
    pub weight: f64,
    /// What it gets in any case, if it asks for it.
    pub guarantee: f64,
    /// Of the root: what there is.
    pub ceiling: f64,
    /// What it asks for itself; what is below it asks for the rest.
    pub demand: f64,
}

/// What each node gets.
pub fn fill(nodes: &[Node]) -> Vec<f64> {
    let mut children = vec![Vec::new(); nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            children[parent].push(index);
        }
    }
    let mut tree = Tree { nodes, children, demands: vec![0.0; nodes.len()], got: vec![0.0; nodes.len()] };
    for root in (0..nodes.len()).filter(|&index| nodes[index].parent.is_none()) {
        let all = tree.ask(root);
        tree.pour(root, all);
    }
    tree.got
}

struct Tree<'a> {
    nodes: &'a [Node],
    children: Vec<Vec<usize>>,
    demands: Vec<f64>,
    got: Vec<f64>,
}

impl Tree<'_> {
    fn ask(&mut self, index: usize) -> f64 {
        let below: f64 = self.children[index].clone().into_iter().map(|child| self.ask(child)).sum();
        self.demands[index] = (self.nodes[index].demand + below).min(self.nodes[index].ceiling);
        self.demands[index]
    }

    fn pour(&mut self, index: usize, amount: f64) {
        self.got[index] = amount;
        let children = self.children[index].clone();
        let level = self.level(&children, amount);
        for child in children {
            let share = self.share(child, level);
            self.pour(child, share);
        }
    }

    /// What a child has when the water stands so high, for a weight of 1.
    fn share(&self, child: usize, level: f64) -> f64 {
        let node = &self.nodes[child];
        self.demands[child].min(node.guarantee.max(node.weight * level))
    }

    /// How high it stands when children share an amount: no higher than whoever asks for most, by its weight.
    fn level(&self, children: &[usize], amount: f64) -> f64 {
        let full = |&child: &usize| self.demands[child] / self.nodes[child].weight;
        let mut high = children.iter().map(full).fold(0.0, f64::max);
        let taken = |level: f64| children.iter().map(|&child| self.share(child, level)).sum::<f64>();
        if taken(high) <= amount {
            return high;
        }
        let mut low = 0.0;
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if taken(middle) <= amount {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(parent: usize, demand: f64) -> Node {
        Node { parent: Some(parent), weight: 1.0, guarantee: 0.0, ceiling: f64::INFINITY, demand }
    }

    fn root(rate: f64) -> Node {
        Node { parent: None, weight: 1.0, guarantee: 0.0, ceiling: rate, demand: 0.0 }
    }

    fn assert_near(got: &[f64], wanted: &[f64]) {
        let near = got.len() == wanted.len() && got.iter().zip(wanted).all(|(got, wanted)| (got - wanted).abs() < 1e-6);
        assert!(near, "{got:?} is not {wanted:?}");
    }

    /// HSDBA, section 6.2.2: A asks for 9 and B for 3 of 10: B has its 3, and A's children 7 / 3 each.
    #[test]
    fn figure_8a_of_hsdba() {
        let nodes = [root(10.0), node(0, 0.0), node(0, 0.0), node(1, 3.0), node(1, 3.0), node(1, 3.0), node(2, 3.0)];
        assert_near(&fill(&nodes)[1..], &[7.0, 3.0, 7.0 / 3.0, 7.0 / 3.0, 7.0 / 3.0, 3.0]);
    }

    #[test]
    fn weights_guarantees_and_ceilings_count() {
        let mut nodes = [root(100.0), node(0, 100.0), node(0, 100.0), node(0, 100.0), node(0, 5.0)];
        (nodes[1].weight, nodes[2].guarantee, nodes[3].ceiling) = (3.0, 50.0, 10.0);
        // 50 are held, 5 asked for; of 45 weights of 3 and 1 make 33.75 and 11.25, and the ceiling lets 1.25 of these go.
        assert_near(&fill(&nodes)[1..], &[35.0, 50.0, 10.0, 5.0]);
    }

    #[test]
    fn what_fits_is_given() {
        assert_near(&fill(&[root(10.0), node(0, 4.0), node(0, 5.0)]), &[9.0, 4.0, 5.0]);
        assert_near(&fill(&[root(10.0)]), &[0.0]);
    }
}
