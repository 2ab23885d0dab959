// SPDX-License-Identifier: MIT OR Apache-2.0
//! What if something were otherwise: words such as `remove port l1-s1`, and what they do to a network.

mod words;

use crate::file::unknown;
use crate::model::{Aggregate, AggregateId, Class, ClassId, Limit, Network, PortId};
use penstock_policy::diagnostics::Problem;

/// One thing that is otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// A port is gone, with all paths through it.
    RemovePort(String),
    /// A switch is gone, with all of its ports.
    RemoveSwitch(String),
    /// A class is gone.
    RemoveClass(String),
    /// A class has one more way.
    AddPath {
        /// Whose.
        class: String,
        /// Its ports.
        ports: Vec<String>,
    },
    /// A class has one way less.
    RemovePath {
        /// Whose.
        class: String,
        /// Its ports.
        ports: Vec<String>,
    },
    /// A class has another weight.
    SetWeight(String, u32),
    /// A class has another priority.
    SetPriority(String, u32),
    /// A class has another limit, or none.
    SetLimit(String, Option<Limit>),
    /// A class asks for something else, or for all that it can get.
    SetDemand(String, Option<u64>),
    /// A port has another rate, bits/s.
    SetRate(String, u64),
    /// An aggregate has another rate, bits/s.
    SetAggregateRate(String, u64),
    /// An aggregate is gone; its members are not.
    RemoveAggregate(String),
}

impl Network {
    /// Makes it otherwise. What went with it, each a sentence.
    ///
    /// # Errors
    /// What it speaks of is not there, or cannot be so. The network is as it was.
    pub fn edit(&mut self, edit: &Edit) -> Result<Vec<String>, Problem> {
        match edit {
            Edit::RemovePort(name) => {
                let port = self.port(name)?;
                Ok(self.remove_ports(&[port], format!("port {name}")))
            }
            Edit::RemoveSwitch(name) => {
                let ports: Vec<PortId> =
                    self.ports.iter().zip(0..).filter(|(port, _)| port.switch == *name).map(|(_, id)| id).collect();
                if ports.is_empty() {
                    let mut names: Vec<&str> = self.ports.iter().map(|port| port.switch.as_str()).collect();
                    names.dedup();
                    return Err(unknown("switch", "switches", name, &names));
                }
                Ok(self.remove_ports(&ports, format!("switch {name}")))
            }
            Edit::RemoveClass(name) => {
                let class = self.class_id(name)?;
                self.keep_classes(|id, _| id != class);
                Ok(self.drop_empty_aggregates())
            }
            Edit::AddPath { class, ports } => {
                let (class, path) = (self.class_id(class)?, self.path(ports)?);
                self.classes[class as usize].paths.push(path);
                Ok(Vec::new())
            }
            Edit::RemovePath { class, ports } => self.remove_path(class, ports),
            Edit::SetWeight(class, weight) => self.set(class, |class| class.weight = *weight),
            Edit::SetPriority(class, priority) => self.set(class, |class| class.priority = *priority),
            Edit::SetLimit(class, limit) => self.set(class, |class| class.limit = *limit),
            Edit::SetDemand(class, demand_bps) => self.set(class, |class| class.demand_bps = *demand_bps),
            Edit::SetRate(port, rate_bps) => {
                let port = self.port(port)?;
                self.ports[port as usize].rate_bps = *rate_bps;
                Ok(Vec::new())
            }
            Edit::SetAggregateRate(name, rate_bps) => {
                let aggregate = self.aggregate(name)?;
                self.aggregates[aggregate as usize].rate_bps = *rate_bps;
                Ok(Vec::new())
            }
            Edit::RemoveAggregate(name) => {
                let aggregate = self.aggregate(name)?;
                self.aggregates.remove(aggregate as usize);
                Ok(Vec::new())
            }
        }
    }

    fn port(&self, name: &str) -> Result<PortId, Problem> {
        let found = self.ports.iter().zip(0..).find(|(port, _)| port.name == name);
        found.map(|(_, id)| id).ok_or_else(|| {
            let names: Vec<&str> = self.ports.iter().map(|port| port.name.as_str()).collect();
            unknown("port", "ports", name, &names)
        })
    }

    fn aggregate(&self, name: &str) -> Result<AggregateId, Problem> {
        let found = self.aggregates.iter().zip(0..).find(|(aggregate, _)| aggregate.name == name);
        found.map(|(_, id)| id).ok_or_else(|| {
            let names: Vec<&str> = self.aggregates.iter().map(|aggregate| aggregate.name.as_str()).collect();
            unknown("aggregate", "aggregates", name, &names)
        })
    }

    fn class_id(&self, name: &str) -> Result<ClassId, Problem> {
        let found = self.classes.iter().zip(0..).find(|(class, _)| class.name == name);
        found.map(|(_, id)| id).ok_or_else(|| {
            let names: Vec<&str> = self.classes.iter().map(|class| class.name.as_str()).collect();
            unknown("class", "classes", name, &names)
        })
    }

    /// Ports of these names, if they are a way.
    fn path(&self, names: &[String]) -> Result<Vec<PortId>, Problem> {
        let path = names.iter().map(|name| self.port(name)).collect::<Result<Vec<_>, _>>()?;
        let switch = |id: PortId| self.ports[id as usize].switch.as_str();
        for (index, &port) in path.iter().enumerate() {
            if path[..index].iter().any(|&before| switch(before) == switch(port)) {
                let message = format!("this path leaves the switch `{}` twice", switch(port));
                return Err(Problem::new(message, "a path is a way without cycles"));
            }
        }
        Ok(path)
    }

    fn set(&mut self, name: &str, set: impl FnOnce(&mut Class)) -> Result<Vec<String>, Problem> {
        let class = self.class_id(name)?;
        set(&mut self.classes[class as usize]);
        Ok(Vec::new())
    }

    fn remove_path(&mut self, name: &str, ports: &[String]) -> Result<Vec<String>, Problem> {
        let (class, path) = (self.class_id(name)?, self.path(ports)?);
        let paths = &mut self.classes[class as usize].paths;
        let before = paths.len();
        paths.retain(|known| *known != path);
        if paths.len() == before {
            let help = format!("it has {before}; write its ports in their order, such as `l1-s1,s1-l2`");
            return Err(Problem::new(format!("the class `{name}` has no such path"), help));
        }
        Ok(self.drop_what_is_bare())
    }

    /// Ports go, with what went through them.
    fn remove_ports(&mut self, gone: &[PortId], what: String) -> Vec<String> {
        let mut new_ids: Vec<Option<PortId>> = Vec::with_capacity(self.ports.len());
        let mut next = 0;
        for id in 0..self.ports.len() {
            let is_gone = gone.iter().any(|&port| port as usize == id);
            new_ids.push((!is_gone).then_some(next));
            next += u32::from(!is_gone);
        }
        let mut at = 0;
        self.ports.retain(|_| {
            at += 1;
            new_ids[at - 1].is_some()
        });
        let (mut paths, mut classes) = (0, 0);
        for class in &mut self.classes {
            let before = class.paths.len();
            let moved = class.paths.iter().filter_map(|path| path.iter().map(|&port| new_ids[port as usize]).collect());
            class.paths = moved.collect();
            paths += before - class.paths.len();
            classes += usize::from(before != class.paths.len());
        }
        self.local.retain_mut(|policy| match new_ids[policy.port as usize] {
            Some(port) => {
                policy.port = port;
                true
            }
            None => false,
        });
        if paths == 0 {
            return vec![format!("{what} had no paths")];
        }
        let mut notes =
            vec![format!("{what} took {} of {} with it", counted(paths, "path"), counted(classes, "class"))];
        notes.extend(self.drop_what_is_bare());
        notes
    }

    /// Classes without a path go, local policies where their class has no path any more, and aggregates without a class.
    fn drop_what_is_bare(&mut self) -> Vec<String> {
        let bare: Vec<String> =
            self.classes.iter().filter(|class| class.paths.is_empty()).map(|class| class.name.clone()).collect();
        self.keep_classes(|_, class| !class.paths.is_empty());
        let classes = &self.classes;
        self.local.retain(|policy| classes[policy.class as usize].paths.iter().any(|path| path.contains(&policy.port)));
        let bare = bare.into_iter().map(|name| format!("class {name} has no path left"));
        bare.chain(self.drop_empty_aggregates()).collect()
    }

    fn drop_empty_aggregates(&mut self) -> Vec<String> {
        let is_empty = |aggregate: &mut Aggregate| aggregate.classes.is_empty();
        let gone = self.aggregates.extract_if(.., is_empty);
        gone.map(|aggregate| format!("aggregate {} has no class left", aggregate.name)).collect()
    }
}

fn counted(number: usize, noun: &str) -> String {
    match (number, noun) {
        (1, _) => format!("1 {noun}"),
        (_, "class") => format!("{number} classes"),
        _ => format!("{number} {noun}s"),
    }
}
