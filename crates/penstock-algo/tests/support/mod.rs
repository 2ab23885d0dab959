// SPDX-License-Identifier: MIT OR Apache-2.0
//! A strict reader of golden vectors (`algo/vectors/README.md`).
//!
//! A replay gives each directive to a closure, and fails when a line is not well formed, when a key is missing or is no
//! number, when a key was never asked for, and when there is no directive at all: neither side can misspell in silence.

use std::cell::Cell;

/// One line: a verb, inputs, and what must come out.
pub struct Directive<'a> {
    pub verb: &'a str,
    fields: Vec<Field<'a>>,
}

struct Field<'a> {
    key: &'a str,
    value: &'a str,
    is_output: bool,
    is_used: Cell<bool>,
}

fn parse_field(word: &str, is_output: bool) -> Result<Field<'_>, String> {
    match word.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() && !value.contains('=') => {
            Ok(Field { key, value, is_output, is_used: Cell::new(false) })
        }
        _ => Err(format!("`{word}` is not key=value")),
    }
}

fn parse_number(text: &str) -> Option<u64> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_plain.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

impl<'a> Directive<'a> {
    fn parse(line: &'a str) -> Result<Self, String> {
        let mut words = line.split(' ');
        let verb = words.next().unwrap_or_default();
        let mut fields: Vec<Field> = Vec::new();
        let mut is_output = false;
        for word in words {
            if word == "->" && !is_output {
                is_output = true;
                continue;
            }
            let field = parse_field(word, is_output)?;
            if fields.iter().any(|other| other.key == field.key && other.is_output == is_output) {
                return Err(format!("`{}` twice", field.key));
            }
            fields.push(field);
        }
        if verb.is_empty() || line.ends_with("->") {
            return Err("something is missing".to_owned());
        }
        Ok(Self { verb, fields })
    }

    fn find(&self, key: &str, is_output: bool) -> Option<&'a str> {
        let field = self.fields.iter().find(|field| field.key == key && field.is_output == is_output)?;
        field.is_used.set(true);
        Some(field.value)
    }

    /// An input as it is written.
    pub fn word(&self, key: &str) -> Result<&'a str, String> {
        self.find(key, false).ok_or_else(|| format!("no `{key}`"))
    }

    /// The place of an input among the words that it can be.
    pub fn place(&self, key: &str, words: &[&str]) -> Result<usize, String> {
        let word = self.word(key)?;
        words.iter().position(|&other| other == word).ok_or_else(|| format!("`{key}={word}` is none of {words:?}"))
    }

    /// An input that is a list of so many numbers.
    pub fn numbers<const COUNT: usize>(&self, key: &str) -> Result<[u64; COUNT], String> {
        let word = self.word(key)?;
        let numbers: Option<Vec<u64>> = word.split(',').map(parse_number).collect();
        let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
        numbers.ok_or_else(|| format!("`{key}={word}` is not {COUNT} numbers"))
    }

    /// An input that is a number in the range of its type.
    pub fn number<T: TryFrom<u64>>(&self, key: &str) -> Result<T, String> {
        let [number] = self.numbers(key)?;
        T::try_from(number).map_err(|_| format!("`{key}={number}` is too large"))
    }

    /// An input that may be left out, and is 0 then.
    pub fn number_or_0<T: TryFrom<u64> + Default>(&self, key: &str) -> Result<T, String> {
        if self.find(key, false).is_some() { self.number(key) } else { Ok(T::default()) }
    }

    /// An input that is 0 or 1, and may be left out.
    pub fn flag(&self, key: &str) -> Result<bool, String> {
        match self.number_or_0::<u64>(key)? {
            0 => Ok(false),
            1 => Ok(true),
            number => Err(format!("`{key}={number}` is neither 0 nor 1")),
        }
    }

    /// Whether there is such an input.
    pub fn has(&self, key: &str) -> bool {
        self.find(key, false).is_some()
    }

    /// This word must have come out.
    pub fn expect_word(&self, key: &str, found: &str) -> Result<(), String> {
        let wanted = self.find(key, true).ok_or_else(|| format!("no `{key}` after `->`"))?;
        if wanted == found { Ok(()) } else { Err(format!("`{key}` must be {wanted}, and is {found}")) }
    }

    /// These numbers must have come out.
    pub fn expect(&self, key: &str, found: &[u64]) -> Result<(), String> {
        let wanted = self.find(key, true).ok_or_else(|| format!("no `{key}` after `->`"))?;
        let numbers: Option<Vec<u64>> = wanted.split(',').map(parse_number).collect();
        if numbers.as_deref() == Some(found) {
            Ok(())
        } else {
            Err(format!("`{key}` must be {wanted}, and is {found:?}"))
        }
    }

    pub fn unknown_verb(&self) -> Result<(), String> {
        Err(format!("unknown verb `{}`", self.verb))
    }

    fn finish(&self) -> Result<(), String> {
        match self.fields.iter().find(|field| !field.is_used.get()) {
            Some(field) => Err(format!("nobody asked for `{}`", field.key)),
            None => Ok(()),
        }
    }
}

/// Gives each directive of a file to `step`. Returns how many there were, or what was wrong first: `line 7: ...`.
pub fn replay(text: &str, mut step: impl FnMut(&Directive) -> Result<(), String>) -> Result<usize, String> {
    let mut count = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let mut replay_line = || {
            let line = line.strip_suffix('\n').ok_or("the file is cut")?;
            if !line.is_ascii() || line.contains('\r') {
                return Err("not plain text".to_owned());
            }
            if line.is_empty() || line.starts_with('#') {
                return Ok(());
            }
            let directive = Directive::parse(line)?;
            count += 1;
            step(&directive)?;
            directive.finish()
        };
        replay_line().map_err(|fault| format!("line {}: {fault}", index + 1))?;
    }
    if count == 0 {
        return Err("no directives".to_owned());
    }
    Ok(count)
}
