// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows, their order, which of them are shown, and which one is chosen.

use super::column::{COLUMNS, Column, TREE_COLUMNS};
use super::history::History;
use penstock_api::v1;
use penstock_node::limits::fits;
use std::collections::{HashMap, HashSet};

/// What a row is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    Link,
    /// Or a limit.
    #[default]
    Class,
    /// The users of a class.
    Users,
}

/// A class or a limit; in a tree of shares also a link, and the users of a class.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    pub kind: Kind,
    pub name: String,
    /// Name of the row above it in a tree; empty for a link.
    pub parent: String,
    /// None where its link shares nothing.
    pub share: Option<v1::Share>,
    pub limit_bps: Option<u64>,
    /// Rows of its limits file.
    pub rows: u64,
    pub is_shadow: bool,
    /// None where it is not counted on its own.
    pub counters: Option<v1::Counters>,
    /// None until there are two readings.
    pub rates: Option<v1::Rates>,
    pub history: History,
}

impl Row {
    /// Packets dropped of those offered over the last interval; none if there was none.
    pub fn dropped_share(&self) -> Option<f64> {
        self.share(|rates| rates.dropped_packets_per_second)
    }

    /// Packets marked of those offered over the last interval.
    pub fn marked_share(&self) -> Option<f64> {
        self.share(|rates| rates.marked_packets_per_second)
    }

    /// What it asks for.
    pub fn demand_bps(&self) -> Option<u64> {
        self.share.as_ref().filter(|_| self.kind != Kind::Users).map(|share| share.demand_bps)
    }

    /// What it may have; of users without entries, each.
    pub fn share_bps(&self) -> Option<u64> {
        let share = self.share.as_ref()?;
        if self.kind == Kind::Users { share.users?.limit_bps } else { Some(share.share_bps) }
    }

    /// Of what passed below it.
    pub fn fairness(&self) -> Option<f64> {
        let share = self.share.as_ref().filter(|_| self.kind != Kind::Users)?;
        share.fairness.or_else(|| share.users?.fairness)
    }

    /// Its name below that of its parent.
    pub fn label(&self) -> String {
        match (self.kind, self.share.and_then(|share| share.users)) {
            (Kind::Users, Some(v1::Users { entries: 0, .. })) => "each user".to_owned(),
            (Kind::Users, Some(users)) => format!("{} of {} users", users.active, users.entries),
            _ => {
                let own = self.name.strip_prefix(&self.parent).and_then(|rest| rest.strip_prefix('/'));
                own.unwrap_or(&self.name).to_owned()
            }
        }
    }

    /// The users of a class, in a row below it.
    fn of_users(class: &Self) -> Option<Self> {
        class.share?.users?;
        let (name, parent) = (format!("{} users", class.name), class.name.clone());
        Some(Self { kind: Kind::Users, name, parent, share: class.share, ..Self::default() })
    }

    fn share(&self, part: impl Fn(&v1::Rates) -> f64) -> Option<f64> {
        let rates = self.rates.as_ref().filter(|rates| rates.offered_packets_per_second > 0.0)?;
        // Counters are read while packets are counted: one may be ahead of the other.
        Some((part(rates) / rates.offered_packets_per_second).min(1.0))
    }
}

impl From<v1::ClassReading> for Row {
    fn from(class: v1::ClassReading) -> Self {
        Self {
            name: class.path,
            limit_bps: class.limit_bps,
            rows: class.rows,
            is_shadow: class.shadow,
            counters: class.counters,
            rates: class.rates,
            history: History::default(),
            kind: Kind::Class,
            parent: class.parent,
            share: class.share,
        }
    }
}

impl From<v1::LinkReading> for Row {
    fn from(link: v1::LinkReading) -> Self {
        Self {
            kind: Kind::Link,
            name: link.name,
            limit_bps: Some(link.rate_bps),
            counters: link.counters,
            rates: link.rates,
            share: link.share,
            ..Self::default()
        }
    }
}

/// Links, classes and users, as a tree has them: each behind its parent.
pub fn rows_of(links: Vec<v1::LinkReading>, classes: Vec<v1::ClassReading>) -> Vec<Row> {
    let mut rows: Vec<Row> = links.into_iter().map(Row::from).collect();
    for mut class in classes.into_iter().map(Row::from) {
        if class.parent.is_empty() {
            class.parent = class.name.split('/').next().unwrap_or_default().to_owned();
        }
        let users = Row::of_users(&class);
        rows.push(class);
        rows.extend(users);
    }
    rows
}

impl From<v1::Limit> for Row {
    fn from(limit: v1::Limit) -> Self {
        let name = if limit.row.is_empty() { limit.name } else { limit.row };
        Self { name, limit_bps: Some(limit.rate_bps), counters: limit.counters, rates: limit.rates, ..Self::default() }
    }
}

/// Rows as a person wants to see them.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// In the daemon's order.
    rows: Vec<Row>,
    pub sort: Column,
    /// Against the column's own direction.
    pub is_reversed: bool,
    /// A part of the name, or a pattern with `*`, as `limits list` has it.
    pub filter: String,
    /// Name of the chosen row; the first row if there is none such.
    chosen: String,
    /// Shown as a tree, with links and users; siblings are sorted.
    is_tree: bool,
}

impl Default for Table {
    /// The busiest first.
    fn default() -> Self {
        let (rows, filter, chosen) = Default::default();
        Self { rows, sort: Column::Offered, is_reversed: false, filter, chosen, is_tree: false }
    }
}

impl Table {
    /// New readings. Histories go on by name; a reading without rates is none.
    pub fn update(&mut self, rows: impl IntoIterator<Item = Row>, samples_max: usize) {
        let mut histories: HashMap<String, History> = self.rows.drain(..).map(|row| (row.name, row.history)).collect();
        self.rows = rows.into_iter().collect();
        for row in &mut self.rows {
            row.history = histories.remove(&row.name).unwrap_or_default();
            if let Some(rates) = &row.rates {
                row.history.push(rates.passed_bps, samples_max);
            }
        }
    }

    /// How many classes or limits there are, shown or not.
    pub fn len(&self) -> usize {
        self.rows.iter().filter(|row| row.kind == Kind::Class).count()
    }

    /// Its columns.
    pub fn columns(&self) -> &'static [Column; 7] {
        if self.is_tree { &TREE_COLUMNS } else { &COLUMNS }
    }

    pub fn is_tree(&self) -> bool {
        self.is_tree
    }

    /// As a tree, in the policy's order at first, or not, the busiest first.
    pub fn set_tree(&mut self, is_tree: bool) {
        if self.is_tree != is_tree {
            (self.is_tree, self.is_reversed) = (is_tree, false);
            self.sort = if is_tree { Column::Name } else { Column::Offered };
        }
    }

    /// The rows that fit the filter, in order, and in a tree those above them. Each with how many rows it is below its link.
    pub fn shown_deep(&self) -> Vec<(usize, &Row)> {
        if self.is_tree {
            return self.tree();
        }
        let classes = self.rows.iter().filter(|row| row.kind == Kind::Class);
        let mut shown: Vec<&Row> = classes.filter(|row| fits(&self.filter, &row.name)).collect();
        self.sort(&mut shown);
        shown.into_iter().map(|row| (0, row)).collect()
    }

    /// The rows that are shown, in order.
    pub fn shown(&self) -> Vec<&Row> {
        self.shown_deep().into_iter().map(|(_, row)| row).collect()
    }

    /// Rows that are alike stay as they are.
    fn sort(&self, rows: &mut [&Row]) {
        let is_ascending = self.sort.is_ascending() != self.is_reversed;
        // In a tree names stand in the policy's order.
        if self.is_tree && self.sort == Column::Name {
            if !is_ascending {
                rows.reverse();
            }
            return;
        }
        rows.sort_by(|one, other| {
            let order = self.sort.compare(one, other);
            if is_ascending { order } else { order.reverse() }
        });
    }

    fn tree(&self) -> Vec<(usize, &Row)> {
        let mut below: HashMap<&str, Vec<&Row>> = HashMap::new();
        let mut wanted: HashSet<&str> = HashSet::new();
        // From the last on, for children lie behind their parents.
        for row in self.rows.iter().rev() {
            if fits(&self.filter, &row.name) || wanted.contains(row.name.as_str()) {
                wanted.insert(&row.parent);
                below.entry(&row.parent).or_default().push(row);
            }
        }
        for rows in below.values_mut() {
            rows.reverse();
            self.sort(rows);
        }
        let mut shown = Vec::new();
        let links = below.remove("").unwrap_or_default();
        let mut next: Vec<(usize, &Row)> = links.into_iter().rev().map(|row| (0, row)).collect();
        while let Some((depth, row)) = next.pop() {
            shown.push((depth, row));
            let children = below.remove(row.name.as_str()).unwrap_or_default();
            next.extend(children.into_iter().rev().map(|child| (depth + 1, child)));
        }
        shown
    }

    /// Where the chosen row is among those shown.
    pub fn chosen_index(&self, shown: &[(usize, &Row)]) -> usize {
        shown.iter().position(|(_, row)| row.name == self.chosen).unwrap_or(0)
    }

    /// The chosen row.
    pub fn chosen(&self) -> Option<&Row> {
        let shown = self.shown_deep();
        shown.get(self.chosen_index(&shown)).map(|(_, row)| *row)
    }

    /// Chooses the row so many further down, or up; the last one or the first one at the ends.
    pub fn step(&mut self, down: isize) {
        let shown = self.shown_deep();
        let at = self.chosen_index(&shown).saturating_add_signed(down).min(shown.len().saturating_sub(1));
        self.chosen = shown.get(at).map_or_else(String::new, |(_, row)| row.name.clone());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use super::*;

    fn row(name: &str, limit_bps: Option<u64>, offered_bps: f64, dropped: f64) -> Row {
        let rates = v1::Rates {
            offered_bps,
            passed_bps: offered_bps,
            offered_packets_per_second: offered_bps / 8000.0,
            dropped_packets_per_second: offered_bps / 8000.0 * dropped,
            marked_packets_per_second: 0.0,
        };
        Row { name: name.to_owned(), limit_bps, rates: Some(rates), ..Row::default() }
    }

    fn table() -> Table {
        let mut table = Table::default();
        let rows = [row("d/b", Some(5), 1e6, 0.5), row("d/a", None, 3e6, 0.0), row("d/c", Some(9), 0.0, 0.0)];
        table.update(rows, 60);
        table
    }

    fn order(table: &Table) -> Vec<&str> {
        table.shown().iter().map(|row| row.name.as_str()).collect()
    }

    #[test]
    fn every_column_sorts_and_reverses() {
        let expected = [
            (Column::Name, ["d/a", "d/b", "d/c"]),
            (Column::Limit, ["d/c", "d/b", "d/a"]),
            (Column::Offered, ["d/a", "d/b", "d/c"]),
            (Column::Passed, ["d/a", "d/b", "d/c"]),
            (Column::Dropped, ["d/b", "d/a", "d/c"]),
            (Column::Trend, ["d/a", "d/b", "d/c"]),
        ];
        let mut table = table();
        for (sort, names) in expected {
            (table.sort, table.is_reversed) = (sort, false);
            assert_eq!(order(&table), names, "{sort:?}");
            table.is_reversed = true;
            assert_eq!(order(&table), names.into_iter().rev().collect::<Vec<_>>(), "{sort:?}");
        }
        // What is alike stays as the policy has it.
        (table.sort, table.is_reversed) = (Column::Marked, false);
        assert_eq!(order(&table), ["d/b", "d/a", "d/c"]);
    }

    #[test]
    fn filters_are_those_of_limits_list() {
        let mut table = table();
        for (filter, expected) in [("b", vec!["d/b"]), ("d/*", vec!["d/a", "d/b", "d/c"]), ("x", vec![])] {
            filter.clone_into(&mut table.filter);
            assert_eq!(order(&table), expected);
        }
    }

    #[test]
    fn the_chosen_row_is_followed_by_name_and_ends_are_ends() {
        let mut table = table();
        table.step(1);
        assert_eq!(table.chosen().unwrap().name, "d/b");
        table.update([row("d/b", Some(5), 9e6, 0.5), row("d/a", None, 3e6, 0.0)], 60);
        let shown = table.shown_deep();
        assert_eq!((shown[0].1.name.as_str(), table.chosen_index(&shown)), ("d/b", 0));
        table.step(100);
        assert_eq!(table.chosen().unwrap().name, "d/a");
        table.step(-100);
        assert_eq!(table.chosen().unwrap().name, "d/b");
        table.update([], 60);
        table.step(1);
        assert!(table.chosen().is_none());
    }

    #[test]
    fn histories_go_on_by_name_and_wait_where_there_is_no_rate() {
        let mut table = table();
        table.update([Row { rates: None, ..row("d/a", None, 0.0, 0.0) }, row("d/new", None, 7e6, 0.0)], 60);
        let means: Vec<f64> = table.shown().iter().map(|row| row.history.mean_bps()).collect();
        assert_eq!(means, [7e6, 3e6]);
    }

    #[test]
    fn shares_are_of_packets_offered() {
        let share = |row: &Row| row.dropped_share();
        assert_eq!(share(&row("a", None, 8000.0, 0.5)), Some(0.5));
        assert_eq!(share(&row("a", None, 0.0, 0.0)), None);
        let mut shadow = row("a", None, 8000.0, 0.5);
        assert_eq!(Column::Dropped.text(&shadow), "50.0 %");
        shadow.is_shadow = true;
        assert_eq!(Column::Dropped.text(&shadow), "~50.0 %");
    }
}
