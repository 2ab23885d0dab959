// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a node would not do something.

use crate::store::StoreError;
use penstock_dataplane::DataplaneError;
use penstock_policy::Errors;
use tonic::Status;

/// What is answered when the answer is no.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Nothing to change or to tell about.
    #[error("no policy is in force; `penstock up POLICY` puts one into force")]
    Idle,
    /// There is one already.
    #[error("the policy {0:?} is in force; `penstock reload POLICY` replaces it, `penstock down` takes it out")]
    InForce(String),
    /// The policy is known, and not in force.
    #[error("{0}")]
    Stalled(String),
    /// The request names what is not there.
    #[error("{0}")]
    NotFound(String),
    /// The request adds what is there.
    #[error("{0}")]
    Exists(String),
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// A policy or a limits file is wrong.
    #[error(transparent)]
    Diagnostics(#[from] Errors),
    /// The data plane.
    #[error(transparent)]
    Dataplane(#[from] DataplaneError),
    /// The store, before anything was changed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store, after the policy was taken out of force.
    #[error("the policy is no longer in force, but the store could not forget it yet: {0}; the daemon goes on trying")]
    Remembered(String),
}

impl From<NodeError> for Status {
    fn from(error: NodeError) -> Self {
        let message = error.to_string();
        match error {
            NodeError::Idle | NodeError::InForce(_) | NodeError::Stalled(_) => Status::failed_precondition(message),
            NodeError::NotFound(_) | NodeError::Dataplane(DataplaneError::UnknownLimit(_)) => {
                Status::not_found(message)
            }
            NodeError::Exists(_) | NodeError::Dataplane(DataplaneError::Taken { .. }) => {
                Status::already_exists(message)
            }
            NodeError::Invalid(_) | NodeError::Diagnostics(_) => Status::invalid_argument(message),
            NodeError::Dataplane(_) | NodeError::Remembered(_) => Status::unavailable(message),
            NodeError::Store(_) => Status::unavailable(format!("{message}; nothing was changed")),
        }
    }
}
