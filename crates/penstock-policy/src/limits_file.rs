// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits files: a CSV with a row for each limit.
//!
//! The header names the columns, in any order: `name`, `rate`, one or more key columns (`dst`, `src`, `five_tuple`, `vlan`,
//! `vni`, `teid`), and, if wanted, `burst`, `excess`, `on_excess`, `meter`, `peak`, `excess_rate`; an empty cell of these takes
//! the default. A five_tuple reads `udp 10.0.0.1:53 -> 10.1.2.3:1000` or `tcp [2001:db8::1]:443 -> [2001:db8::2]:50000`.

use crate::diagnostics::{Diagnostic, Errors, Place, Problem, did_you_mean, quote};
use crate::fields;
use crate::matching::{BIT_Q8, MaskedKey, Prefix};
use crate::terms::{METERS, ON_EXCESS, Terms};
use crate::units;
use crate::validate::parse_word;

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
    Src,
    Dst,
    FiveTuple,
    Vlan,
    Vni,
    Teid,
    Burst,
    Excess,
    OnExcess,
    Meter,
    Peak,
    ExcessRate,
    Horizon,
    Backlog,
    CeThreshold,
}

const COLUMNS: [(&str, Column); 17] = [
    ("name", Column::Name),
    ("rate", Column::Rate),
    ("dst", Column::Dst),
    ("src", Column::Src),
    ("five_tuple", Column::FiveTuple),
    ("vlan", Column::Vlan),
    ("vni", Column::Vni),
    ("teid", Column::Teid),
    ("burst", Column::Burst),
    ("excess", Column::Excess),
    ("on_excess", Column::OnExcess),
    ("meter", Column::Meter),
    ("peak", Column::Peak),
    ("excess_rate", Column::ExcessRate),
    ("horizon", Column::Horizon),
    ("backlog", Column::Backlog),
    ("ce_threshold", Column::CeThreshold),
];

/// Columns that say on what terms a row is limited.
pub fn term_columns() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().filter(|(_, column)| column.is_term()).map(|&(name, _)| name)
}

impl Column {
    fn is_key(self) -> bool {
        use Column::{Dst, FiveTuple, Src, Teid, Vlan, Vni};
        matches!(self, Dst | Src | FiveTuple | Vlan | Vni | Teid)
    }

    fn is_term(self) -> bool {
        !self.is_key() && !matches!(self, Column::Name | Column::Rate)
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
pub(crate) fn read(file: &LimitsText, errors: &mut Errors, sink: &mut impl Sink) {
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
            let Some(found) = header(&record, &at, &mut faults) else { break };
            columns = found;
            let rows = text.as_bytes().iter().filter(|&&byte| byte == b'\n').count();
            if !sink.start(rows, columns.iter().any(|column| column.is_term())) {
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
        let result = row(&columns, &record, at.line).and_then(|row| sink.take(&row));
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
        let help = "the first line names the columns, such as `name,dst,rate`";
        faults.push(&RecordAt { line: 1, byte: 0 }, None, Problem::new("the file is empty", help));
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

fn header(record: &csv::StringRecord, at: &RecordAt, faults: &mut Faults<'_>) -> Option<Vec<Column>> {
    let names = COLUMNS.map(|(name, _)| name);
    let mut columns = Vec::new();
    for (index, name) in record.iter().enumerate() {
        let name = name.trim_ascii().trim_start_matches('\u{feff}');
        match COLUMNS.iter().find(|&&(known, _)| known == name) {
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
    let mut lacks = |message: &str, help: &str| faults.push(at, None, Problem::new(message, help));
    for needed in [Column::Name, Column::Rate] {
        if !columns.contains(&needed) {
            let help = "the first line names the columns, such as `name,dst,rate`";
            lacks(&format!("the column `{}` is missing", needed.name()), help);
        }
    }
    if !columns.iter().any(|column| column.is_key()) {
        lacks("no key column: which packets is a row about?", "add one of: dst, src, five_tuple, vlan, vni, teid");
    }
    if columns.contains(&Column::FiveTuple) && (columns.contains(&Column::Src) || columns.contains(&Column::Dst)) {
        lacks("a five_tuple has source and destination: `src` and `dst` say them again", "remove them");
    }
    (faults.listed == 0).then_some(columns)
}

fn row<'a>(columns: &[Column], record: &'a csv::StringRecord, line: u32) -> Result<Row<'a>, RowProblem> {
    let mut row = Row { line, ..Row::default() };
    let mut key = KeyCells::default();
    for (&column, cell) in columns.iter().zip(record) {
        let cell = cell.trim_ascii();
        let result = match column {
            _ if cell.is_empty() && !column.is_term() => {
                let message = format!("a row without a {}", column.name());
                Err(Problem::new(message, "every row has a name, a rate and all key columns"))
            }
            Column::Name => name(cell).map(|name| row.name = name),
            Column::Rate => units::parse_rate(cell).map(|rate_bps| row.rate_bps = rate_bps),
            _ if column.is_key() => key.take(column, cell),
            _ if cell.is_empty() => Ok(()),
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
        _ => {}
    }
    Ok(())
}

/// The key columns of a row, gathered.
#[derive(Default)]
struct KeyCells {
    key: MaskedKey,
    bits: u32,
    family: Option<u8>,
}

impl KeyCells {
    fn take(&mut self, column: Column, cell: &str) -> Result<(), Problem> {
        match column {
            Column::Dst => {
                let prefix = fields::parse_prefix(cell)?;
                self.key.require_dst(prefix);
                self.address(prefix)
            }
            Column::Src => {
                let prefix = fields::parse_prefix(cell)?;
                self.key.require_src(prefix);
                self.address(prefix)
            }
            Column::FiveTuple => {
                let flow = parse_five_tuple(cell)?;
                self.key.require_src(flow.src);
                self.key.require_dst(flow.dst);
                self.key.require_flow(flow.proto, flow.sport, flow.dport);
                self.bits += 8 + 16 + 16;
                self.address(flow.src)?;
                self.address(flow.dst)
            }
            Column::Vlan => {
                self.key.require_vlan(fields::parse_number(cell, "VLAN identifier", 4_094)?);
                self.bits += 12;
                Ok(())
            }
            Column::Vni => {
                self.key.require_vni(fields::parse_number(cell, "VNI", (1 << 24) - 1)?);
                self.bits += 24;
                Ok(())
            }
            _ => {
                self.key.require_teid(fields::parse_number(cell, "TEID", u32::MAX)?);
                self.bits += 32;
                Ok(())
            }
        }
    }

    fn address(&mut self, prefix: Prefix) -> Result<(), Problem> {
        self.bits += u32::from(prefix.length) + u32::from(self.family.is_none());
        if self.family.is_some_and(|family| family != prefix.family) {
            let message = "one address is IPv4 and the other IPv6: no packet has both";
            return Err(Problem::new(message, "use addresses of one family"));
        }
        self.family = Some(prefix.family);
        Ok(())
    }
}

/// One direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FiveTuple {
    /// tcp, udp or sctp.
    pub proto: u8,
    /// Source address.
    pub src: Prefix,
    /// Source port.
    pub sport: u16,
    /// Destination address.
    pub dst: Prefix,
    /// Destination port.
    pub dport: u16,
}

/// `udp 10.0.0.1:53 -> 10.1.2.3:1000`.
///
/// # Errors
/// Anything else.
pub fn parse_five_tuple(text: &str) -> Result<FiveTuple, Problem> {
    let shape = || {
        let help = "such as `udp 10.0.0.1:53 -> 10.1.2.3:1000` or `tcp [2001:db8::1]:443 -> [2001:db8::2]:50000`";
        Problem::new(format!("{} is not a five-tuple", quote(text)), help)
    };
    let (proto, rest) = text.split_once(' ').ok_or_else(shape)?;
    // Neither addresses nor ports have a dash.
    let (src, dst) = rest.split_once('-').ok_or_else(shape)?;
    let dst = dst.strip_prefix('>').ok_or_else(shape)?;
    let proto = fields::parse_proto(proto)?;
    if ![fields::TCP, fields::UDP, fields::SCTP].contains(&proto) {
        let message = format!("protocol {} has no ports", fields::protocol_name(proto));
        return Err(Problem::new(message, "a five_tuple is of tcp, udp or sctp"));
    }
    let (src, sport) = endpoint(src.trim_ascii()).ok_or_else(shape)?;
    let (dst, dport) = endpoint(dst.trim_ascii()).ok_or_else(shape)?;
    Ok(FiveTuple { proto, src, sport, dst, dport })
}

/// `10.0.0.1:53` or `[2001:db8::1]:53`.
fn endpoint(text: &str) -> Option<(Prefix, u16)> {
    let (address, port) = text.rsplit_once(':')?;
    let port = u16::try_from(fields::parse_digits(port)?).ok()?;
    let prefix = match address.strip_prefix('[') {
        Some(rest) => {
            let address: std::net::Ipv6Addr = rest.strip_suffix(']')?.parse().ok()?;
            Prefix { address: u128::from(address), length: 128, family: 6 }
        }
        None => Prefix { address: u128::from(fields::parse_ipv4(address)?), length: 32, family: 4 },
    };
    Some((prefix, port))
}
