// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who asks, from where, and what they may do.

use penstock_api::tls;
use tonic::{Request, Status};

/// Whoever asks.
#[derive(Debug, Clone)]
pub struct Caller {
    caller: tls::Caller,
    /// As the audit log calls them.
    pub who: String,
    /// The address they come from.
    pub from: String,
}

impl Caller {
    /// Of a request.
    pub fn of<T>(request: &Request<T>) -> Self {
        let caller = tls::Caller::of(request);
        let who = match &caller {
            tls::Caller::Known(peer) => format!("{}/{}", peer.role.as_str(), peer.name),
            other => other.name().to_owned(),
        };
        let from = request.remote_addr().map(|address| address.to_string()).unwrap_or_default();
        Self { caller, who, from }
    }

    /// Whether they may ask.
    ///
    /// # Errors
    /// PERMISSION_DENIED: they may not.
    pub fn may_read(&self) -> Result<(), Status> {
        self.may(self.caller.may_read(), "to ask takes a certificate with the role read or write")
    }

    /// Whether they may change the network.
    ///
    /// # Errors
    /// PERMISSION_DENIED: they may not.
    pub fn may_write(&self) -> Result<(), Status> {
        self.may(self.caller.may_write(), "to change the network takes a certificate with the role write")
    }

    /// Whether they may attend as this node.
    ///
    /// # Errors
    /// PERMISSION_DENIED: they may not.
    pub fn may_attend(&self, node: &str) -> Result<(), Status> {
        let needs = format!("to attend as {node} takes a certificate with the role node and that name");
        self.may(self.caller.may_attend(node), &needs)
    }

    fn may(&self, may: bool, needs: &str) -> Result<(), Status> {
        let denied = || Status::permission_denied(format!("{needs}; this is {}", self.who));
        may.then_some(()).ok_or_else(denied)
    }
}
