// SPDX-License-Identifier: MIT OR Apache-2.0
//! Columns of names and numbers, 80 wide. A name that is too long for its column has the rest of its line, and what stands behind it goes on in the
//! next one, under its own header: no name is cut in two that fits a line.

use std::cmp::Reverse;

/// Of a terminal that nobody has widened.
pub const WIDTH: usize = 80;
/// Between columns.
const GAP: usize = 2;

/// A header and what stands below it: the first `names` columns are names and words, the others numbers.
pub fn render<const N: usize>(names: usize, header: [&str; N], rows: Vec<[String; N]>) -> String {
    let rows: Vec<[String; N]> = std::iter::once(header.map(str::to_owned)).chain(rows).collect();
    let widths = widths(names, &rows);
    let mut sheet = Sheet::default();
    for row in &rows {
        let mut start = 1;
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            if column < names {
                sheet.name(cell, start, width);
            } else {
                sheet.number(cell, start + width);
            }
            start += width + GAP;
        }
        sheet.end_line();
    }
    sheet.text
}

/// Numbers have what they need. Of the rest each column of names has what it needs, or its part, or what its names need that fit its part.
fn widths<const N: usize>(names: usize, rows: &[[String; N]]) -> [usize; N] {
    let of = |column: usize| rows.iter().map(move |row| length(&row[column]));
    let mut widths = std::array::from_fn(|column| of(column).max().unwrap_or(0));
    let numbers: usize = widths[names..].iter().map(|width| width + GAP).sum();
    let mut room = (WIDTH - 1 + GAP).saturating_sub(numbers);
    let mut columns: Vec<usize> = (0..names).collect();
    columns.sort_by_key(|&column| Reverse(widths[column]));
    while let Some(column) = columns.pop() {
        let part = (room / (columns.len() + 1)).saturating_sub(GAP);
        if widths[column] > part {
            let header = length(&rows[0][column]);
            widths[column] = of(column).filter(|&width| width <= part).max().unwrap_or(0).max(header);
        }
        room = room.saturating_sub(widths[column] + GAP);
    }
    widths
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// What is written so far.
#[derive(Default)]
struct Sheet {
    text: String,
    line: String,
}

impl Sheet {
    /// On the left of its column, or beyond it.
    fn name(&mut self, cell: &str, start: usize, width: usize) {
        let mut rest: Vec<char> = cell.chars().collect();
        if start + rest.len() > WIDTH {
            self.end_line();
        }
        let indent = start.min(WIDTH.saturating_sub(rest.len())).max(1);
        let is_too_long = rest.len() > width;
        while rest.len() > WIDTH - indent {
            let more = rest.split_off(WIDTH - indent);
            self.put(rest.into_iter().collect(), indent);
            self.end_line();
            rest = more;
        }
        self.put(rest.into_iter().collect(), indent);
        if is_too_long {
            self.end_line();
        }
    }

    /// On the right of its column.
    fn number(&mut self, cell: &str, end: usize) {
        self.put(cell.to_owned(), end.saturating_sub(length(cell)));
    }

    fn put(&mut self, cell: String, start: usize) {
        let blank = start.saturating_sub(length(&self.line));
        self.line.extend(std::iter::repeat_n(' ', blank));
        self.line.push_str(&cell);
    }

    fn end_line(&mut self) {
        let line = self.line.trim_end();
        if !line.is_empty() {
            self.text.push_str(line);
            self.text.push('\n');
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<const N: usize>(cells: [&str; N]) -> [String; N] {
        cells.map(str::to_owned)
    }

    #[test]
    fn short_names_stand_in_their_columns() {
        let rows = vec![row(["t7", "", "300.0 M"]), row(["  t7-gw1", "gw1", "5.00 M"])];
        let text = render(2, ["aggregate, class", "node", "rate"], rows);
        let lines = [
            " aggregate, class  node     rate",
            " t7                      300.0 M",
            "   t7-gw1          gw1    5.00 M",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn a_long_name_has_the_rest_of_its_line() {
        let long = "n".repeat(40);
        let numbers = ["1234.5 M"; 4];
        let [a, b, c, d] = numbers;
        let rows = vec![row(["x", "gw1", a, b, c, d]), row([&long, &long, a, b, c, d])];
        let text = render(2, ["class", "node", "rate", "at worst", "offered", "passed"], rows);
        let lines = [
            " class  node      rate  at worst   offered    passed".to_owned(),
            " x      gw1   1234.5 M  1234.5 M  1234.5 M  1234.5 M".to_owned(),
            format!(" {long}"),
            format!("        {long}"),
            "              1234.5 M  1234.5 M  1234.5 M  1234.5 M".to_owned(),
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn no_line_is_wider_than_80_columns_whatever_the_names() {
        for length in 0..200 {
            let name = "n".repeat(length);
            let rows = vec![row([&name, "word", "123"]), row(["x", &name, "1"]), row([&name, &name, "12"])];
            let text = render(2, ["one", "other", "number"], rows);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert_eq!(text.matches('n').count(), 1 + 1 + 4 * length, "{text}");
        }
    }
}
