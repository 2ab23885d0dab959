// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an older kernel refuses and the one that runs this test may well take. Kernels from 6.13 on give each function a stack of its own, those
//! before 512 bytes to all that are active at a time. Linux 6.1 takes a loop only if a jump leads back to its beginning.

use libbpf_rs::ObjectBuilder;
use libbpf_rs::libbpf_sys::bpf_insn;
use std::collections::BTreeMap;

const STACK_MAX_BYTES: u32 = 512;
const CALL: u8 = 0x85;
const TO_FUNCTION: u8 = 1;
const MOVE: u8 = 0xbf;
const ADD_CONSTANT: u8 = 0x07;
const FRAME_POINTER: u8 = 10;
const EXIT: u8 = 0x95;
const JUMP: u8 = 0x05;
const TWO_SLOTS: u8 = 0x18;
/// Kinds of instructions: jumps that compare 64 and 32 bits.
const CLASS: u8 = 0x07;
const JUMPS: [u8; 2] = [0x05, 0x06];

/// What a function takes, and which ones it calls.
#[derive(Default)]
struct Frame {
    bytes: u32,
    calls: Vec<usize>,
}

/// By where they begin.
fn frames(code: &[bpf_insn]) -> BTreeMap<usize, Frame> {
    let is_call = |insn: &bpf_insn| insn.code == CALL && insn.src_reg() == TO_FUNCTION;
    let target = |at: usize, insn: &bpf_insn| usize::try_from(at as i64 + 1 + i64::from(insn.imm)).unwrap();
    let calls = || code.iter().enumerate().filter(|(_, insn)| is_call(insn));
    let mut frames: BTreeMap<usize, Frame> = calls().map(|(at, insn)| (target(at, insn), Frame::default())).collect();
    frames.insert(0, Frame::default());
    let mut moved = None;
    for (at, insn) in code.iter().enumerate() {
        let (_, frame) = frames.range_mut(..=at).next_back().unwrap();
        let depth = if insn.src_reg() == FRAME_POINTER || insn.dst_reg() == FRAME_POINTER {
            -i32::from(insn.off)
        } else if insn.code == ADD_CONSTANT && moved == Some(insn.dst_reg()) {
            -insn.imm
        } else {
            0
        };
        frame.bytes = frame.bytes.max(u32::try_from(depth).unwrap_or(0));
        if is_call(insn) {
            frame.calls.push(target(at, insn));
        }
        moved = (insn.code == MOVE && insn.src_reg() == FRAME_POINTER).then_some(insn.dst_reg());
    }
    frames
}

/// Of a function and all that it calls, as kernels count it: in pieces of 32 bytes.
fn deepest(frames: &BTreeMap<usize, Frame>, at: usize) -> u32 {
    let frame = &frames[&at];
    let called = frame.calls.iter().map(|&call| deepest(frames, call)).max().unwrap_or(0);
    frame.bytes.max(1).next_multiple_of(32) + called
}

#[test]
fn the_program_fits_the_stack_of_older_kernels() {
    if !super::may_load_programs() {
        return;
    }
    let object = include_bytes!(concat!(env!("OUT_DIR"), "/penstock.bpf.o"));
    let object = ObjectBuilder::default().open_memory(object).unwrap().load().unwrap();
    let program = object.progs().find(|program| program.name() == "penstock").unwrap();
    let frames = frames(program.insns());
    let bytes = deepest(&frames, 0);
    eprintln!("{bytes} bytes of stack in {} functions", frames.len());
    assert!(
        frames.len() > 5 && frames.values().any(|frame| frame.bytes > 100),
        "that is not how functions are called any more"
    );
    assert!(bytes <= STACK_MAX_BYTES, "{bytes}");
}

/// Where an instruction leads, and whether that is a jump's doing.
fn successors(code: &[bpf_insn], at: usize) -> Vec<(usize, bool)> {
    let insn = &code[at];
    let target = || usize::try_from(at as i64 + 1 + i64::from(insn.off)).unwrap();
    match insn.code {
        EXIT => Vec::new(),
        JUMP => vec![(target(), true)],
        TWO_SLOTS => vec![(at + 2, false)],
        CALL => vec![(at + 1, false)],
        compare if JUMPS.contains(&(compare & CLASS)) => vec![(at + 1, true), (target(), true)],
        _ => vec![(at + 1, false)],
    }
}

/// Instructions that fall into the beginning of a loop that they are in, walked as the verifier does.
fn falls_back(code: &[bpf_insn], start: usize) -> Vec<usize> {
    let (mut is_seen, mut is_open, mut found) = (vec![false; code.len()], vec![false; code.len()], Vec::new());
    let mut path = vec![(start, successors(code, start))];
    (is_seen[start], is_open[start]) = (true, true);
    while let Some((at, rest)) = path.last_mut() {
        let at = *at;
        if rest.is_empty() {
            is_open[at] = false;
            path.pop();
            continue;
        }
        let (next, is_jump) = rest.remove(0);
        if is_open[next] && !is_jump {
            found.push(at);
        }
        if !std::mem::replace(&mut is_seen[next], true) {
            is_open[next] = true;
            path.push((next, successors(code, next)));
        }
    }
    found
}

#[test]
fn no_loop_of_the_program_is_one_that_older_kernels_take_for_endless() {
    if !super::may_load_programs() {
        return;
    }
    let object = include_bytes!(concat!(env!("OUT_DIR"), "/penstock.bpf.o"));
    let object = ObjectBuilder::default().open_memory(object).unwrap().load().unwrap();
    let program = object.progs().find(|program| program.name() == "penstock").unwrap();
    let code = program.insns();
    for start in frames(code).into_keys() {
        assert_eq!(falls_back(code, start), [0; 0], "in the function at {start}");
    }
}
