// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits files: a CSV with a row for each limit.
//!
//! The header names the columns, in any order: `name`, `rate`, one or more key columns (`dst`, `src`, `five_tuple`, `vlan`,
//! `vni`, `teid`), and, if wanted, `burst`, `excess`, `on_excess`, `meter`, `peak`, `excess_rate`; an empty cell of these takes
//! the default. A users file has `weight` and `ceiling` in their place. A five_tuple reads `udp 10.0.0.1:53 -> 10.1.2.3:1000` or `tcp [2001:db8::1]:443 -> [2001:db8::2]:50000`.

use crate::diagnostics::{Diagnostic, Errors, Place, Problem, did_you_mean, quote};
use crate::fields;
use crate::matching::{BIT_Q8, MaskedKey};
use crate::reader::parse_word;
use crate::row_keys::{self, KeyCells, KeyColumn};
use crate::terms::{METERS, ON_EXCESS, Terms};
use crate::units;

/// Largest limits file.
pub const LIMITS_BYTES_MAX: usize = 1 << 30;
/// Errors that are listed of one limits file; further ones are counted.
pub const ROW_ERRORS_MAX: usize = 20;
/// Longest name of a row, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// A limits file: what errors call it, and its bytes.
#[derive(Debug, Default, Clone)]
pub struct LimitsText {
    /// Its path, as messages show it.
    pub name: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}

impl LimitsText {
    /// The place of a whole line, from 1.
    pub(crate) fn line_place(&self, line: usize) -> Place {
        let text = self.bytes.split(|&byte| byte == b'\n').nth(line.saturating_sub(1)).unwrap_or_default();
        let text = String::from_utf8_lossy(text.trim_ascii_end());
        Place::new(&self.name, line, 1, text.chars().count() + 1, &text)
    }

    /// The text, or where it stops being one.
    fn text(&self) -> Result<&str, Box<Diagnostic>> {
        std::str::from_utf8(&self.bytes).map_err(|error| Box::new(not_utf8(&self.name, &self.bytes, error)))
    }
}

/// The error for bytes that are not UTF-8.
#[must_use]
pub fn not_utf8(name: &str, bytes: &[u8], error: std::str::Utf8Error) -> Diagnostic {
    let before = &bytes[..error.valid_up_to()];
    let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
    let end = bytes[start..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |length| start + length);
    let text = String::from_utf8_lossy(bytes[start..end].trim_ascii_end());
    let place = Place::new(name, line, column, column + 1, &text);
    Diagnostic::new(place, Problem::new("this byte is not UTF-8", "save the file as UTF-8"))
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Name,
    Rate,
    Key(KeyColumn),
    Burst,
    Excess,
    OnExcess,
    Meter,
    Peak,
    ExcessRate,
    Horizon,
    Backlog,
    CeThreshold,
    Weight,
    Ceiling,
}

const COLUMNS: [(&str, Column); 19] = [
    ("name", Column::Name),
    ("rate", Column::Rate),
    ("dst", Column::Key(KeyColumn::Dst)),
    ("src", Column::Key(KeyColumn::Src)),
    ("five_tuple", Column::Key(KeyColumn::FiveTuple)),
    ("vlan", Column::Key(KeyColumn::Vlan)),
    ("vni", Column::Key(KeyColumn::Vni)),
    ("teid", Column::Key(KeyColumn::Teid)),
    ("burst", Column::Burst),
    ("excess", Column::Excess),
    ("on_excess", Column::OnExcess),
    ("meter", Column::Meter),
    ("peak", Column::Peak),
    ("excess_rate", Column::ExcessRate),
    ("horizon", Column::Horizon),
    ("backlog", Column::Backlog),
    ("ce_threshold", Column::CeThreshold),
    ("weight", Column::Weight),
    ("ceiling", Column::Ceiling),
];

/// Columns that say on what terms a row is limited.
pub fn term_columns() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().filter(|(_, column)| column.is_term()).map(|&(name, _)| name)
}

/// What the rows of a file are about.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a> {
    /// Limits, on whatever terms.
    Limits,
    /// Users that are told apart by these columns.
    Users(&'a [KeyColumn]),
}

impl Rows<'_> {
    fn have(self, column: Column) -> bool {
        match (self, column) {
            (_, Column::Name) => true,
            (Rows::Limits, column) => !column.is_of_user(),
            (Rows::Users(keys), Column::Key(key)) => keys.contains(&key),
            (Rows::Users(_), column) => column.is_of_user(),
        }
    }

    fn columns(self) -> Vec<&'static str> {
        COLUMNS.iter().filter(|(_, column)| self.have(*column)).map(|&(name, _)| name).collect()
    }

    fn needs(self) -> &'static str {
        match self {
            Rows::Limits => "every row has a name, a rate and all key columns",
            Rows::Users(_) => "every row has a name and all key columns",
        }
    }

    /// A row of a users file is about one user.
    fn check_key(self, column: KeyColumn, key: &KeyCells) -> Result<(), Problem> {
        if matches!(self, Rows::Limits) || key.is_whole() {
            return Ok(());
        }
        let message = format!("a prefix is many users: they are told apart by `{}`", column.name());
        Err(Problem::new(message, "write a row for each address"))
    }

    fn example(self) -> String {
        let columns = match self {
            Rows::Limits => "dst,rate".to_owned(),
            Rows::Users(keys) => keys.iter().map(|key| key.name()).chain(["weight"]).collect::<Vec<_>>().join(","),
        };
        format!("the first line names the columns, such as `name,{columns}`")
    }
}

impl Column {
    fn is_of_user(self) -> bool {
        matches!(self, Column::Weight | Column::Ceiling)
    }

    fn is_term(self) -> bool {
        !self.is_of_user() && !matches!(self, Column::Name | Column::Rate | Column::Key(_))
    }

    /// Whether a cell may be empty.
    fn is_optional(self) -> bool {
        self.is_term() || self.is_of_user()
    }

    fn name(self) -> &'static str {
        COLUMNS.iter().find(|&&(_, column)| column == self).map_or("", |&(name, _)| name)
    }
}

/// A row that is sound in itself.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Row<'a> {
    pub name: &'a str,
    pub key: MaskedKey,
    pub specificity_q8: u32,
    pub rate_bps: u64,
    /// What the row says itself.
    pub terms: Terms,
    pub line: u32,
}

/// A column of a row, by name, and what is wrong with it.
pub(crate) type RowProblem = (&'static str, Problem);

/// What takes the rows of a file.
pub(crate) trait Sink {
    /// At most `rows` rows follow; `has_terms`: they may have terms of their own. Returns whether to go on.
    fn start(&mut self, rows: usize, has_terms: bool) -> bool;
    /// Takes a row, or finds fault with it.
    fn take(&mut self, row: &Row<'_>) -> Result<(), RowProblem>;
    /// Whether the row of that name is left out for this problem, which is no error then.
    fn leave_out(&mut self, row: &str, problem: &Problem) -> bool;
}

/// Reads a file. Errors are listed up to [`ROW_ERRORS_MAX`], then counted.
pub(crate) fn read(file: &LimitsText, rows: Rows<'_>, errors: &mut Errors, sink: &mut impl Sink) {
    let text = match file.text() {
        Ok(text) => text,
        Err(diagnostic) => {
            errors.push(*diagnostic);
            return;
        }
    };
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let mut record = csv::StringRecord::new();
    let mut columns: Vec<Column> = Vec::new();
    let mut faults = Faults { file, text, errors, listed: 0, unlisted: 0 };
    // Reading from memory, of text known to be UTF-8, has nothing to fail with.
    while reader.read_record(&mut record).unwrap_or(false) {
        let at = RecordAt::new(&record, text);
        if columns.is_empty() {
            let Some(found) = header(&record, rows, &at, &mut faults) else { break };
            columns = found;
            let count = text.as_bytes().iter().filter(|&&byte| byte == b'\n').count();
            if !sink.start(count, columns.iter().any(|column| column.is_term())) {
                break;
            }
            continue;
        }
        if record.len() != columns.len() {
            let message = format!("fields in this row: {}, in the header: {}", record.len(), columns.len());
            let is_open = record.iter().any(|field| field.contains('\n'));
            faults.push(&at, None, Problem::new(message, if is_open { "is a quote left open?" } else { "" }));
            continue;
        }
        let result = row(&columns, &record, rows, at.line).and_then(|row| sink.take(&row));
        if let Err((name, problem)) = result {
            let of_name = columns.iter().zip(&record).find(|(column, _)| **column == Column::Name);
            if of_name.is_some_and(|(_, row)| sink.leave_out(row.trim_ascii(), &problem)) {
                continue;
            }
            let column = columns.iter().position(|column| column.name() == name);
            faults.push(&at, column, problem);
        }
    }
    if columns.is_empty() && faults.listed == 0 {
        faults.push(&RecordAt { line: 1, byte: 0 }, None, Problem::new("the file is empty", rows.example()));
    }
    faults.finish();
}

/// Where a record starts.
struct RecordAt {
    line: u32,
    byte: usize,
}

impl RecordAt {
    /// The reader's position is before the empty lines that it skips.
    fn new(record: &csv::StringRecord, text: &str) -> Self {
        let (mut byte, mut line) = record.position().map_or((0, 1), |position| (position.byte(), position.line()));
        let bytes = text.as_bytes();
        while let Some(end @ (b'\n' | b'\r')) = usize::try_from(byte).ok().and_then(|byte| bytes.get(byte)) {
            line += u64::from(*end == b'\n');
            byte += 1;
        }
        Self { line: u32::try_from(line).unwrap_or(u32::MAX), byte: usize::try_from(byte).unwrap_or(usize::MAX) }
    }
}

/// Errors of one file.
struct Faults<'a> {
    file: &'a LimitsText,
    text: &'a str,
    errors: &'a mut Errors,
    listed: usize,
    unlisted: u64,
}

impl Faults<'_> {
    /// An error at a column of a record, or at all of it.
    fn push(&mut self, at: &RecordAt, column: Option<usize>, problem: Problem) {
        if self.listed >= ROW_ERRORS_MAX {
            self.unlisted += 1;
            return;
        }
        self.listed += 1;
        let rest = self.text.get(at.byte..).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default().trim_end();
        let (start, end) = column.map_or((0, line.len()), |column| field_span(line, column));
        let chars = |bytes: usize| line.get(..bytes).map_or(1, |text| text.chars().count() + 1);
        let place = Place::new(&self.file.name, at.line as usize, chars(start), chars(end), line);
        self.errors.push(Diagnostic::new(place, problem));
    }

    fn finish(self) {
        if self.unlisted > 0 {
            self.errors.push_unlisted(&self.file.name, self.unlisted);
        }
    }
}

/// Bytes of a field within its line; quotes may hold commas.
fn field_span(line: &str, column: usize) -> (usize, usize) {
    let (mut start, mut index, mut quoted) = (0, 0, false);
    for (byte, char) in line.char_indices() {
        match char {
            '"' => quoted = !quoted,
            ',' if !quoted && index == column => return (start, byte),
            ',' if !quoted => {
                index += 1;
                start = byte + 1;
            }
            _ => {}
        }
    }
    (start, line.len())
}

fn header(record: &csv::StringRecord, rows: Rows<'_>, at: &RecordAt, faults: &mut Faults<'_>) -> Option<Vec<Column>> {
    let names = rows.columns();
    let mut columns = Vec::new();
    for (index, name) in record.iter().enumerate() {
        let name = name.trim_ascii().trim_start_matches('\u{feff}');
        match COLUMNS.iter().find(|&&(known, column)| known == name && rows.have(column)) {
            Some(&(_, column)) if columns.contains(&column) => {
                let message = format!("the column {} is here twice", quote(name));
                faults.push(at, Some(index), Problem::new(message, "remove one"));
            }
            Some(&(_, column)) => columns.push(column),
            None => {
                let help = did_you_mean(name, "columns", &names);
                faults.push(at, Some(index), Problem::new(format!("unknown column {}", quote(name)), help));
            }
        }
    }
    let needed: Vec<Column> = match rows {
        Rows::Limits => vec![Column::Name, Column::Rate],
        Rows::Users(keys) => [Column::Name].into_iter().chain(keys.iter().map(|&key| Column::Key(key))).collect(),
    };
    for needed in needed.iter().filter(|needed| !columns.contains(needed)) {
        let message = format!("the column `{}` is missing", needed.name());
        faults.push(at, None, Problem::new(message, rows.example()));
    }
    let mut lacks = |message: &str, help: &str| faults.push(at, None, Problem::new(message, help));
    let keys = columns.iter().filter_map(|column| if let Column::Key(key) = column { Some(*key) } else { None });
    let keys: Vec<KeyColumn> = keys.collect();
    match rows {
        Rows::Limits if keys.is_empty() => {
            lacks("no key column: which packets is a row about?", "add one of: dst, src, five_tuple, vlan, vni, teid");
        }
        Rows::Users(_) if !columns.iter().any(|column| column.is_of_user()) => {
            lacks("neither `weight` nor `ceiling`: what do rows say of their users?", "add one of them, or both");
        }
        _ => {}
    }
    if let Some(problem) = row_keys::five_tuple_and_address(&keys) {
        faults.push(at, None, problem);
    }
    (faults.listed == 0).then_some(columns)
}

fn row<'a>(
    columns: &[Column],
    record: &'a csv::StringRecord,
    rows: Rows<'_>,
    line: u32,
) -> Result<Row<'a>, RowProblem> {
    let mut row = match rows {
        Rows::Limits => Row { line, ..Row::default() },
        // Who has no ceiling may send at any rate.
        Rows::Users(_) => Row {
            line,
            rate_bps: units::RATE_MAX_BPS,
            terms: Terms { weight: 1, ..Terms::default() },
            ..Row::default()
        },
    };
    let mut key = KeyCells::default();
    for (&column, cell) in columns.iter().zip(record) {
        let cell = cell.trim_ascii();
        let result = match column {
            _ if cell.is_empty() && !column.is_optional() => {
                let message = format!("a row without a {}", column.name());
                Err(Problem::new(message, rows.needs()))
            }
            Column::Name => name(cell).map(|name| row.name = name),
            Column::Key(column) => key.take(column, cell).and_then(|()| rows.check_key(column, &key)),
            _ if cell.is_empty() => Ok(()),
            Column::Rate | Column::Ceiling => units::parse_rate(cell).map(|rate_bps| row.rate_bps = rate_bps),
            _ => term(&mut row.terms, column, cell),
        };
        result.map_err(|problem| (column.name(), problem))?;
    }
    (row.key, row.specificity_q8) = (key.key, key.bits * BIT_Q8);
    Ok(row)
}

fn name(cell: &str) -> Result<&str, Problem> {
    if cell.len() > NAME_BYTES_MAX || cell.chars().any(char::is_control) {
        let help = format!("at most {NAME_BYTES_MAX} bytes, no control characters");
        return Err(Problem::new(format!("{} is not a name", quote(cell)), help));
    }
    Ok(cell)
}

fn term(terms: &mut Terms, column: Column, cell: &str) -> Result<(), Problem> {
    match column {
        Column::Burst => terms.burst = Some(units::parse_depth(cell)?),
        Column::Excess => terms.excess = Some(units::parse_depth(cell)?),
        Column::OnExcess => terms.on_excess = Some(parse_word(cell, "`on_excess`", &ON_EXCESS)?),
        Column::Meter => terms.meter = Some(parse_word(cell, "`meter`", &METERS)?),
        Column::Peak => terms.peak_bps = Some(units::parse_rate(cell)?),
        Column::ExcessRate => terms.excess_rate_bps = Some(units::parse_rate(cell)?),
        Column::Horizon => terms.horizon_ns = Some(units::parse_time(cell)?),
        Column::Backlog => terms.backlog_bytes = Some(units::parse_size(cell)?),
        Column::CeThreshold => terms.ce_threshold_ns = Some(units::parse_time(cell)?),
        Column::Weight => terms.weight = user_weight(cell)?,
        _ => {}
    }
    Ok(())
}

fn user_weight(cell: &str) -> Result<u16, Problem> {
    let weight = fields::parse_digits(cell).and_then(|weight| u16::try_from(weight).ok()).filter(|&weight| weight > 0);
    weight.ok_or_else(|| Problem::new(format!("{} is not a weight", quote(cell)), "a whole number from 1 to 65535"))
}
