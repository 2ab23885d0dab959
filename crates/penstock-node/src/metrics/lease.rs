// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of a node that attends a controller.

use penstock_api::metrics::{Value, Writer, seconds};
use penstock_api::v1;
use std::fmt;

/// How the node stands with its controller.
pub(super) fn encode(status: &v1::ControllerStatus, writer: &mut Writer<'_>) -> fmt::Result {
    let attending = status.state() == v1::controller_status::State::Attending;
    let mut gauge = |name: &str, help: &str, value: Value| writer.gauge(name, help, value);
    gauge("penstock_controller_attending", "Whether a controller hears this node", Value::Count(attending.into()))?;
    gauge("penstock_lease_seconds", "What is left of the lease; 0: it is over", seconds(status.lease_left_ns))?;
    gauge("penstock_lease_lapsed", "Whether limits have their safe rates", Value::Count(status.lapsed.into()))?;
    gauge("penstock_lent_limits", "Limits that a controller has lent", Value::Count(status.limits))?;
    gauge("penstock_lent_problems", "What of an order could not be done", Value::Count(status.problems_total))?;
    gauge("penstock_epoch_term", "Of the leader whose limits the node has", Value::Count(status.term))?;
    gauge("penstock_epoch_number", "Counts up with limits, within the term", Value::Count(status.number))
}
