// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of a plan: match items as keys of tuples, each key with the most specific of its items.

use crate::ambiguity;
use crate::compile::{Compiler, u32_of};
use crate::diagnostics::{Diagnostic, Place, Problem};
use crate::tables::RuleKey;
use penstock_algo::wire;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Rules that two bytes can number.
const RULES_MAX: usize = 65_536;
/// Keys of the rule table.
const RULE_KEYS_MAX: usize = 1 << 20;
/// A match item among all of the policy.
pub(crate) struct RuleAt<'a> {
    pub class_index: u32,
    pub class: &'a str,
    pub place: Place,
}

impl Compiler<'_> {
    pub(crate) fn rules(&mut self) {
        for at in self.classes() {
            for item in &at.class.items {
                let rule = u32_of(self.rules.len());
                let specificity_q8 = item.fields.specificity_q8();
                let place = self.policy.source.place(item.span);
                self.rules.push(RuleAt { class_index: at.index, class: &at.class.path, place });
                self.tables.plan.rules.push(wire::Rule { class_index: at.index, specificity_q8 });
                for key in item.fields.keys() {
                    let kind = wire::PST_TUPLE_RULES;
                    let tuple = self.tables.tuple(u32_of(at.link_index), kind, &key.mask, specificity_q8);
                    self.rule_keys.push(RuleKey::new(tuple, rule, &key));
                }
            }
        }
        let bounds = [
            ("match items", self.rules.len(), RULES_MAX),
            ("keys of match items and their ranges", self.rule_keys.len(), RULE_KEYS_MAX),
        ];
        for (what, count, most) in bounds {
            if let (true, Some(rule)) = (count > most, self.rules.last()) {
                let problem = Problem::new(format!("{count} {what}; at most {most} are allowed"), "use a limits file");
                self.errors.push(Diagnostic::new(rule.place.clone(), problem));
            }
        }
        self.resolve_same_keys();
    }

    /// Of rules that have a key in common, the more specific one keeps it: every packet of that key has both.
    fn resolve_same_keys(&mut self) {
        let mut kept: HashMap<(u32, wire::Key), usize, foldhash::fast::FixedState> = HashMap::default();
        let mut result: Vec<RuleKey> = Vec::with_capacity(self.rule_keys.len());
        for key in std::mem::take(&mut self.rule_keys) {
            let found = match kept.entry((key.tuple, key.value)) {
                Entry::Vacant(vacant) => {
                    vacant.insert(result.len());
                    result.push(key);
                    continue;
                }
                Entry::Occupied(found) => *found.get(),
            };
            let other = result[found];
            let specificity_of = |rule: u32| self.tables.plan.rules[rule as usize].specificity_q8;
            match specificity_of(key.rule).cmp(&specificity_of(other.rule)) {
                std::cmp::Ordering::Greater => result[found] = key,
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => {
                    let rules = (&self.rules[other.rule as usize], &self.rules[key.rule as usize]);
                    if rules.0.class_index != rules.1.class_index {
                        self.errors.push(ambiguity::between_rules(rules.0, rules.1));
                    }
                }
            }
        }
        let mut has_key = vec![false; self.rules.len()];
        result.iter().for_each(|key| has_key[key.rule as usize] = true);
        for (rule, _) in self.rules.iter().zip(has_key).filter(|&(_, has_key)| !has_key) {
            let warning = format!(
                "{}: this match of class {} never applies: other matches take all of its packets",
                rule.place, rule.class
            );
            self.tables.plan.warnings.push(warning);
        }
        self.rule_keys = result;
    }
}
