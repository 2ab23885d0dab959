// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a tree of YAML to structs by serde, with the place of what is wrong.

use penstock_policy::diagnostics::{Diagnostic, Errors, Problem, Source, Span, did_you_mean, quote};
use penstock_policy::yaml::{Key, Node, Value};
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use std::fmt::Display;

/// Reads a struct out of a tree.
///
/// # Errors
/// The first thing that does not fit, with its place.
pub fn read<T: DeserializeOwned>(source: &Source, node: &Node) -> Result<T, Errors> {
    T::deserialize(Reader(node)).map_err(|failure| {
        let mut errors = Errors::default();
        let place = source.place(failure.span.unwrap_or(node.span));
        errors.push(Diagnostic::new(place, failure.problem));
        errors
    })
}

/// What does not fit, and where once that is known.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
struct Failure {
    span: Option<Span>,
    problem: Problem,
}

impl Failure {
    fn new(message: String, help: String) -> Self {
        Self { span: None, problem: Problem::new(message, help) }
    }

    /// The innermost place that knows of a failure is the right one.
    fn at(mut self, span: Span) -> Self {
        self.span.get_or_insert(span);
        self
    }
}

impl de::Error for Failure {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string(), String::new())
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("there is no key {} here", quote(field)), did_you_mean(field, "keys", expected))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("{} is not known here", quote(variant)), did_you_mean(variant, "known", expected))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("`{field}` is missing"), String::new())
    }
}

#[derive(Clone, Copy)]
struct Reader<'a>(&'a Node);

impl<'a> Reader<'a> {
    fn scalar(self, what: &str) -> Result<&'a str, Failure> {
        match &self.0.value {
            Value::Scalar(text) => Ok(text),
            other => {
                Err(Failure::new(format!("expected {what}, found {}", other.describe()), String::new()).at(self.0.span))
            }
        }
    }

    fn number<T: std::str::FromStr>(self, what: &str) -> Result<T, Failure> {
        let text = self.scalar(what)?;
        let wrong = || Failure::new(format!("{} is not {what}", quote(text)), String::new()).at(self.0.span);
        text.parse().map_err(|_| wrong())
    }
}

/// Numbers are parsed as the struct's field wants them; YAML itself keeps every scalar as text.
macro_rules! numbers {
    ($($method:ident $visit:ident $what:literal;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
            visitor.$visit(self.number($what)?)
        })*
    };
}

impl<'de> de::Deserializer<'de> for Reader<'de> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let result = match &self.0.value {
            Value::Scalar(text) => visitor.visit_str(text),
            Value::List(items) => visitor.visit_seq(Items(items.iter())),
            Value::Map(entries) => visitor.visit_map(Entries { rest: entries.iter(), value: None }),
        };
        result.map_err(|failure| failure.at(self.0.span))
    }

    numbers! {
        deserialize_bool visit_bool "`true` or `false`";
        deserialize_u32 visit_u32 "a whole number";
        deserialize_u64 visit_u64 "a whole number";
        deserialize_f64 visit_f64 "a number";
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_newtype_struct(self).map_err(|failure| failure.at(self.0.span))
    }

    /// `word`, or `word: { ... }`.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let variant = match &self.0.value {
            Value::Scalar(text) => Variant { name: text, name_span: self.0.span, content: None },
            Value::Map(entries) if entries.len() == 1 => {
                Variant { name: &entries[0].0.text, name_span: entries[0].0.span, content: Some(&entries[0].1) }
            }
            other => {
                let message = format!("expected one word, or one key, found {}", other.describe());
                return Err(Failure::new(message, String::new()).at(self.0.span));
            }
        };
        visitor.visit_enum(variant).map_err(|failure| failure.at(self.0.span))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 u8 u16 f32 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

struct Items<'a>(std::slice::Iter<'a, Node>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        self.0.next().map(|node| seed.deserialize(Reader(node)).map_err(|failure| failure.at(node.span))).transpose()
    }
}

struct Entries<'a> {
    rest: std::slice::Iter<'a, (Key, Node)>,
    value: Option<&'a Node>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failure> {
        let Some((key, node)) = self.rest.next() else { return Ok(None) };
        self.value = Some(node);
        let name: StrDeserializer<'_, Failure> = key.text.as_str().into_deserializer();
        seed.deserialize(name).map(Some).map_err(|failure| failure.at(key.span))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failure> {
        match self.value.take() {
            Some(node) => seed.deserialize(Reader(node)).map_err(|failure| failure.at(node.span)),
            None => Err(de::Error::custom("a value without a key")),
        }
    }
}

struct Variant<'a> {
    name: &'a str,
    name_span: Span,
    content: Option<&'a Node>,
}

impl<'a> Variant<'a> {
    fn content(&self) -> Result<Reader<'a>, Failure> {
        let without = || Failure::new(format!("`{}` needs a map behind it", self.name), String::new());
        self.content.map(Reader).ok_or_else(|| without().at(self.name_span))
    }
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Failure;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Failure> {
        let name: StrDeserializer<'_, Failure> = self.name.into_deserializer();
        let value = seed.deserialize(name).map_err(|failure| failure.at(self.name_span))?;
        Ok((value, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Failure;

    fn unit_variant(self) -> Result<(), Failure> {
        match self.content {
            None => Ok(()),
            Some(node) => Err(Failure::new(format!("`{}` takes no value", self.name), String::new()).at(node.span)),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Failure> {
        seed.deserialize(self.content()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Failure> {
        de::Deserializer::deserialize_any(self.content()?, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Failure> {
        de::Deserializer::deserialize_any(self.content()?, visitor)
    }
}
