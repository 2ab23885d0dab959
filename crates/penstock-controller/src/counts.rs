// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a replica counts from its start on, through all terms in which it leads.

use crate::core::Over;
use crate::store::StoreError;
use penstock_api::v1::{self, put_network_reply::Outcome};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tonic::{Code, Status};

/// Of times: they double from 1 us to a minute and more.
const BUCKETS: usize = 28;

/// A number that grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// So many more.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// One more.
    pub fn one(&self) {
        self.add(1);
    }

    /// Until now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// All of them.
#[derive(Debug, Default)]
pub struct Counts {
    /// Reports that were heard, orders that were sent, and limits in these.
    pub reports: Count,
    pub orders: Count,
    pub limits: Count,
    pub streams: Streams,
    pub puts: Puts,
    /// How long allocations took.
    pub allocations: Times,
    /// Calls of the store that came to nothing.
    pub store_errors: Count,
    /// Times that this replica began to lead, or ceased to.
    pub leadership_changes: Count,
}

/// Streams of nodes.
#[derive(Debug, Default)]
pub struct Streams {
    /// They were let in.
    pub opened: Count,
    /// They were refused: another replica leads, or none; who comes does not say so as it should; the certificate is another one's; so is the name.
    pub not_leading: Count,
    pub registration: Count,
    pub certificate: Count,
    pub name: Count,
    /// They were cut off: nobody took orders any more; reports came faster than they are heard; the node has another stream; its limits get other
    /// numbers.
    pub orders: Count,
    pub reports: Count,
    pub replaced: Count,
    pub renumbered: Count,
}

impl Streams {
    /// The leader has ended one.
    pub fn ended(&self, over: &Over) {
        match over {
            Over::Taken(_) => self.name.one(),
            Over::Replaced => self.replaced.one(),
            Over::Renumbered => self.renumbered.one(),
        }
    }
}

/// Networks that came to be put.
#[derive(Debug, Default)]
pub struct Puts {
    /// They are kept.
    pub kept: Count,
    /// They were refused: the certificate has another role; the file is wrong; another network is there than was expected; the store failed.
    pub certificate: Count,
    pub file: Count,
    pub revision: Count,
    pub store: Count,
}

impl Puts {
    /// What came of one that was read.
    pub fn done(&self, reply: &Result<v1::PutNetworkReply, Status>) {
        match reply.as_ref().map(|reply| &reply.outcome) {
            // One that was only tried has no revision.
            Ok(Some(Outcome::Change(change))) if change.revision > 0 => self.kept.one(),
            Ok(Some(Outcome::Diagnostics(_))) => self.file.one(),
            Ok(_) => {}
            Err(status) => match status.code() {
                Code::InvalidArgument => self.file.one(),
                Code::FailedPrecondition => self.revision.one(),
                _ => self.store.one(),
            },
        }
    }

    /// One could not be read. A client that went away was not refused.
    pub fn unread(&self, status: &Status) {
        if status.code() == Code::InvalidArgument {
            self.file.one();
        }
    }
}

/// A histogram of times.
#[derive(Debug, Default)]
pub struct Times {
    /// The last one of them has no bound.
    buckets: [Count; BUCKETS],
    sum_ns: Count,
}

impl Times {
    /// One more.
    pub fn add(&self, time: Duration) {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let index = (0..BUCKETS - 1).find(|&index| time_ns <= 1000 << index).unwrap_or(BUCKETS - 1);
        self.buckets[index].one();
        self.sum_ns.add(time_ns);
    }

    /// Until now: by bucket, and the sum of all in ns.
    pub fn get(&self) -> ([u64; BUCKETS], u64) {
        (std::array::from_fn(|index| self.buckets[index].get()), self.sum_ns.get())
    }
}

impl Counts {
    /// Passes on what the store answered.
    pub fn store<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        // These are answers: the store is well.
        let is_well = |error: &StoreError| {
            matches!(error, StoreError::Conflict { .. } | StoreError::TooLarge { .. } | StoreError::Deposed { .. })
        };
        answer.inspect_err(|error| {
            if !is_well(error) {
                self.store_errors.one();
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_bucket_that_bounds_them() {
        let times = Times::default();
        let all = [1, 1_000, 1_001, 2_000, 4_001, u64::MAX / 4];
        all.iter().for_each(|&time_ns| times.add(Duration::from_nanos(time_ns)));
        let (counts, sum_ns) = times.get();
        assert_eq!((counts[..4].to_vec(), counts[BUCKETS - 1], sum_ns), (vec![2, 2, 0, 1], 1, all.iter().sum()));
    }

    #[test]
    fn what_came_of_a_put_is_counted_once_or_not_at_all() {
        let (puts, change) = (Puts::default(), |revision| v1::NetworkChange { revision, ..Default::default() });
        let reply = |outcome| Ok(v1::PutNetworkReply { outcome: Some(outcome) });
        puts.done(&reply(Outcome::Change(change(7))));
        puts.done(&reply(Outcome::Change(change(0))));
        puts.done(&reply(Outcome::Diagnostics(v1::Diagnostics::default())));
        let codes = [Code::InvalidArgument, Code::FailedPrecondition, Code::Internal];
        codes.map(|code| Status::new(code, "")).into_iter().for_each(|status| puts.done(&Err(status)));
        let counts = || [&puts.kept, &puts.file, &puts.revision, &puts.store].map(Count::get);
        assert_eq!(counts(), [1, 2, 1, 1]);
        [Code::InvalidArgument, Code::Cancelled, Code::Internal]
            .map(|code| Status::new(code, ""))
            .iter()
            .for_each(|status| puts.unread(status));
        assert_eq!(counts(), [1, 3, 1, 1]);
    }

    #[test]
    fn a_no_of_a_store_that_is_well_is_no_error_of_it() {
        let counts = Counts::default();
        assert!(counts.store(Err::<(), _>(StoreError::Conflict { revision: 3 })).is_err());
        assert!(counts.store(Err::<(), _>(StoreError::Deposed { store: "etcd".to_owned() })).is_err());
        assert_eq!((counts.store(Ok(5)).unwrap(), counts.store_errors.get()), (5, 0));
        let gone = StoreError::Unreachable { store: "etcd".to_owned(), why: "no answer".to_owned() };
        assert!(counts.store(Err::<(), _>(gone)).is_err());
        assert_eq!(counts.store_errors.get(), 1);
    }
}
