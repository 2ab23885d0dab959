// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known, and what a person chose to see of it. No time, no terminal, no daemon.

use super::history::samples_max;
use super::table::{Kind, Row, Table, rows_of};
use penstock_api::v1;

/// What the daemon told.
#[derive(Debug)]
pub enum News {
    Status(Box<v1::StatusReply>),
    Readings(Box<v1::Readings>),
    Limits(Limits),
    /// There are no readings, and why.
    Trouble(String),
}

/// Limits that a person wants to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Whose.
    pub class: String,
    /// A part of the row's name, or a pattern with `*`.
    pub filter: String,
}

/// Limits with their readings.
#[derive(Debug)]
pub struct Limits {
    pub wanted: Wanted,
    /// How many fit; those that are watched may be fewer.
    pub total: u64,
    pub limits: Vec<v1::Limit>,
}

/// The limits of one class.
#[derive(Debug, Default)]
pub struct Opened {
    pub class: String,
    pub table: Table,
    /// The filter that the daemon knows.
    pub filter: String,
    /// How many fit that filter; none until the daemon has told.
    pub total: Option<u64>,
}

/// Rates of all links together, bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Totals {
    pub offered_bps: f64,
    pub passed_bps: f64,
}

/// All that is drawn.
#[derive(Debug)]
pub struct View {
    pub interval_ns: u64,
    pub status: v1::StatusReply,
    /// Why there are no readings at the moment.
    pub trouble: Option<String>,
    pub totals: Option<Totals>,
    /// The most frequent first.
    pub reasons: Vec<v1::ReasonReading>,
    pub classes: Table,
    /// Some link shares what it has.
    pub has_shares: bool,
    /// A person does not want to see a tree.
    pub is_flat: bool,
    pub opened: Option<Opened>,
    /// A filter is being typed.
    pub is_typing: bool,
    pub is_helping: bool,
}

impl View {
    /// Nothing is known yet.
    pub fn new(interval_ns: u64) -> Self {
        Self {
            interval_ns,
            status: v1::StatusReply::default(),
            trouble: None,
            totals: None,
            reasons: Vec::new(),
            classes: Table::default(),
            has_shares: false,
            is_flat: false,
            opened: None,
            is_typing: false,
            is_helping: false,
        }
    }

    /// The table that is shown.
    pub fn table(&self) -> &Table {
        self.opened.as_ref().map_or(&self.classes, |opened| &opened.table)
    }

    /// The table that is shown.
    pub fn table_mut(&mut self) -> &mut Table {
        self.opened.as_mut().map_or(&mut self.classes, |opened| &mut opened.table)
    }

    /// The limits that the daemon should tell about.
    pub fn wanted(&self) -> Option<Wanted> {
        self.opened.as_ref().map(|opened| Wanted { class: opened.class.clone(), filter: opened.filter.clone() })
    }

    /// Shows the limits of the chosen class.
    pub fn open(&mut self) {
        let class = self.classes.chosen().filter(|row| row.kind == Kind::Class);
        if let (None, Some(class)) = (&self.opened, class) {
            self.opened = Some(Opened { class: class.name.clone(), ..Opened::default() });
        }
    }

    /// What was typed holds, for the daemon too.
    pub fn type_end(&mut self) {
        self.is_typing = false;
        if let Some(opened) = &mut self.opened
            && opened.filter != opened.table.filter
        {
            opened.filter.clone_from(&opened.table.filter);
            opened.total = None;
        }
    }

    /// Takes the filter away; the limits if there is none.
    pub fn back(&mut self) {
        let had_filter = !std::mem::take(&mut self.table_mut().filter).is_empty();
        if !had_filter && !self.is_typing {
            self.opened = None;
        }
        self.type_end();
    }

    /// What the daemon told.
    pub fn take(&mut self, news: News) {
        match news {
            News::Status(status) => self.status = *status,
            News::Readings(readings) => self.read(*readings),
            News::Limits(news) => self.read_limits(news),
            News::Trouble(why) => self.trouble = Some(why),
        }
    }

    fn read(&mut self, readings: v1::Readings) {
        self.trouble = None;
        self.totals = totals(&readings);
        self.reasons = readings.reasons;
        self.reasons.sort_by(|one, other| {
            let rates = other.packets_per_second.total_cmp(&one.packets_per_second);
            rates.then_with(|| other.packets.cmp(&one.packets))
        });
        self.has_shares = readings.links.iter().any(|link| link.share.is_some());
        self.choose_form();
        self.classes.update(rows_of(readings.links, readings.classes), samples_max(self.interval_ns));
    }

    fn choose_form(&mut self) {
        self.classes.set_tree(self.has_shares && !self.is_flat);
    }

    /// A tree, or classes beside each other.
    pub fn turn(&mut self) {
        self.is_flat = self.has_shares && !self.is_flat;
        self.choose_form();
    }

    fn read_limits(&mut self, news: Limits) {
        // Of what was wanted before, perhaps.
        if self.wanted().as_ref() == Some(&news.wanted)
            && let Some(opened) = &mut self.opened
        {
            opened.total = Some(news.total);
            opened.table.update(news.limits.into_iter().map(Row::from), samples_max(self.interval_ns));
        }
    }
}

/// None until there are two readings.
pub fn totals(readings: &v1::Readings) -> Option<Totals> {
    let rates: Option<Vec<&v1::Rates>> = readings.links.iter().map(|link| link.rates.as_ref()).collect();
    rates.map(|rates| Totals {
        offered_bps: rates.iter().map(|rates| rates.offered_bps).sum(),
        passed_bps: rates.iter().map(|rates| rates.passed_bps).sum(),
    })
}
