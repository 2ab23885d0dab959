// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows, their order, which of them are shown, and which one is chosen.

use super::column::Column;
use super::history::History;
use penstock_api::v1;
use penstock_node::limits::fits;
use std::collections::HashMap;

/// A class or a limit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    pub name: String,
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
        }
    }
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
}

impl Default for Table {
    /// The busiest first.
    fn default() -> Self {
        let (rows, filter, chosen) = Default::default();
        Self { rows, sort: Column::Offered, is_reversed: false, filter, chosen }
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

    /// How many there are, shown or not.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The rows that fit the filter, in order.
    pub fn shown(&self) -> Vec<&Row> {
        let mut shown: Vec<&Row> = self.rows.iter().filter(|row| fits(&self.filter, &row.name)).collect();
        let is_ascending = self.sort.is_ascending() != self.is_reversed;
        shown.sort_by(|one, other| {
            let order = self.sort.compare(one, other);
            if is_ascending { order } else { order.reverse() }
        });
        shown
    }

    /// Where the chosen row is among those shown.
    pub fn chosen_index(&self, shown: &[&Row]) -> usize {
        shown.iter().position(|row| row.name == self.chosen).unwrap_or(0)
    }

    /// The chosen row.
    pub fn chosen(&self) -> Option<&Row> {
        let shown = self.shown();
        shown.get(self.chosen_index(&shown)).copied()
    }

    /// Chooses the row so many further down, or up; the last one or the first one at the ends.
    pub fn step(&mut self, down: isize) {
        let shown = self.shown();
        let at = self.chosen_index(&shown).saturating_add_signed(down).min(shown.len().saturating_sub(1));
        self.chosen = shown.get(at).map_or_else(String::new, |row| row.name.clone());
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
        let shown = table.shown();
        assert_eq!((shown[0].name.as_str(), table.chosen_index(&shown)), ("d/b", 0));
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
