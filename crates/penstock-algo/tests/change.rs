// SPDX-License-Identifier: MIT OR Apache-2.0
//! A limiter whose rate changes while others look at it, in memory that they share.
#![allow(clippy::unwrap_used)] // a test may fail by it

use penstock_algo::plane::{Entry, Lent, LentShares, Parts, Place, Plane};
use penstock_algo::{rate, wire};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

const NOW_NS: u64 = 1 << 50;
const NOW_TICKS: u64 = NOW_NS << 10;
const RATES_BPS: [u64; 2] = [1_000_000, 10_000_000];
/// What is used of each bucket of the meter.
const USED_BYTES: u32 = 1_000_000;
const CHANGES: usize = 200_000;

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Bucket(wire::Bucket);

/// Memory that a plane is lent, and that others read meanwhile.
struct Shared {
    buckets: Vec<Bucket>,
    limits: Vec<wire::Limit>,
    meters: Vec<wire::MeterState>,
}

/// A plane with one row, an RFC 2697 meter of 2 MB in each bucket, and the memory that it is in.
fn metered() -> (Plane, Box<Shared>) {
    let tuple = wire::Tuple { kind: u8::try_from(wire::PST_TUPLE_LIMITS).unwrap(), ..wire::Tuple::default() };
    let depth_bytes = 2 * USED_BYTES;
    let profile = wire::Profile {
        meter: u8::try_from(wire::PST_METER_RFC2697).unwrap(),
        burst_bytes: depth_bytes,
        excess_bytes: depth_bytes,
        mtu_bytes: 1500,
        ..wire::Profile::default()
    };
    let parts = Parts {
        links: vec![wire::Link { tuple_count: 1, ..wire::Link::default() }],
        tuples: vec![tuple],
        classes: vec![wire::Class { limit_index: wire::PST_NONE, ..wire::Class::default() }],
        profiles: vec![profile],
        ..Parts::default()
    };
    let row = Entry { tuple: 0, value: &wire::Key::default(), target: 0, rate: rate::encode(RATES_BPS[0]) };
    let mut plane = Plane::new(parts, std::iter::empty(), [row].into_iter(), 7, NOW_NS).unwrap();
    let image = plane.image();
    let mut shared = Box::new(Shared {
        buckets: image.limiter_buckets.iter().copied().map(Bucket).collect(),
        limits: image.limits.to_vec(),
        meters: image.meters.to_vec(),
    });
    let lent = Lent {
        limiter_buckets: (NonNull::new(shared.buckets.as_mut_ptr().cast()).unwrap(), shared.buckets.len()),
        limits: (NonNull::new(shared.limits.as_mut_ptr()).unwrap(), shared.limits.len()),
        meters: (NonNull::new(shared.meters.as_mut_ptr()).unwrap(), shared.meters.len()),
        shares: LentShares {
            nodes: (NonNull::dangling(), 0),
            slices: (NonNull::dangling(), 0),
            filters: (NonNull::dangling(), 0),
        },
    };
    // SAFETY: the memory holds the image, and is dropped after the plane.
    unsafe { plane.lend(lent) };
    (plane, shared)
}

/// A row as a packet finds it: between two equal, even readings of its bucket's sequence.
struct Reader<'a> {
    sequence: &'a AtomicU16,
    rate: &'a AtomicU32,
    words: [&'a AtomicU64; 2],
}

impl Reader<'_> {
    /// Rate code, and what is used of each bucket in ticks. None when the writer was there.
    fn look(&self) -> Option<(u32, [u64; 2])> {
        let sequence = self.sequence.load(Ordering::Acquire);
        let rate = self.rate.load(Ordering::Relaxed);
        let [committed, excess] = self.words.map(|word| word.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let is_still = sequence & 1 == 0 && self.sequence.load(Ordering::Relaxed) == sequence;
        is_still.then_some((rate, [committed.wrapping_sub(NOW_TICKS), excess.wrapping_sub(committed)]))
    }
}

/// What was found that does not fit the rate that it was found with.
fn misfits(reader: &Reader<'_>, stop: &AtomicBool, looks: &AtomicU64) -> u64 {
    let mut misfits = 0;
    while !stop.load(Ordering::Relaxed) {
        let Some((rate, used_ticks)) = reader.look() else { continue };
        let whole = rate::cost_ticks(rate, USED_BYTES);
        looks.fetch_add(1, Ordering::Relaxed);
        // Each conversion may lose 1/256 byte.
        misfits += u64::from(used_ticks.iter().any(|used| used.abs_diff(whole) > whole / 100));
    }
    misfits
}

#[test]
fn an_rfc_meter_has_its_rate_and_its_buckets_of_one_moment() {
    let (mut plane, mut shared) = metered();
    let slot = plane.slots(1)[0];
    let meter = usize::try_from(plane.limiter(Place::Slot(slot)).unwrap().state).unwrap();
    let used_ticks = rate::cost_ticks(rate::encode(RATES_BPS[0]), USED_BYTES);
    shared.meters[meter] = wire::MeterState {
        committed_ticks: NOW_TICKS.wrapping_add(used_ticks),
        excess_ticks: NOW_TICKS.wrapping_add(2 * used_ticks),
    };
    let (bucket, index) = ((slot / wire::PST_BUCKET_SLOTS) as usize, (slot % wire::PST_BUCKET_SLOTS) as usize);
    let bucket = &raw mut shared.buckets[bucket].0;
    let state = &raw mut shared.meters[meter];
    // SAFETY: words of the shared memory, which outlives the reader; all sides use them whole.
    let reader = unsafe {
        Reader {
            sequence: AtomicU16::from_ptr(&raw mut (*bucket).sequence),
            rate: AtomicU32::from_ptr(&raw mut (*bucket).rates[index]),
            words: [
                AtomicU64::from_ptr(&raw mut (*state).committed_ticks),
                AtomicU64::from_ptr(&raw mut (*state).excess_ticks),
            ],
        }
    };
    let stop = AtomicBool::new(false);
    let looks = AtomicU64::new(0);
    let misfits = std::thread::scope(|scope| {
        let looking = scope.spawn(|| misfits(&reader, &stop, &looks));
        // On a busy machine the reader may not run for a while.
        for change in
            (1..=10 * CHANGES).take_while(|&change| change <= CHANGES || looks.load(Ordering::Relaxed) <= 1000)
        {
            plane.set_rate(Place::Slot(slot), rate::encode(RATES_BPS[change % 2]), NOW_NS);
        }
        stop.store(true, Ordering::Relaxed);
        looking.join().unwrap()
    });
    let looks = looks.into_inner();
    assert!(looks > 1000, "{looks}");
    assert_eq!(misfits, 0, "of {looks}");
}
