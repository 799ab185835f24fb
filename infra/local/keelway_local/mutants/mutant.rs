//! The switch of all mutants: `KEELWAY_MUTANT` is the number of the one that is on. `KEELWAY_MUTANT_REACHED` names a file that gets
//! the number of each mutant that is reached, once.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

const COUNT: usize = 1;
const UNREAD: u32 = u32::MAX;
const RECORDED: u32 = u32::MAX - 1;

static ACTIVE: AtomicU32 = AtomicU32::new(UNREAD);
static SEEN: [AtomicU8; COUNT] = [const { AtomicU8::new(0) }; COUNT];
static REACHED: OnceLock<Mutex<File>> = OnceLock::new();

/// Whether this mutant is on.
#[inline]
pub fn on(number: u32) -> bool {
    let active = ACTIVE.load(Relaxed);
    if active >= RECORDED {
        return first(number);
    }
    active == number
}

#[cold]
fn first(number: u32) -> bool {
    if ACTIVE.load(Relaxed) == UNREAD {
        let record = std::env::var("KEELWAY_MUTANT_REACHED").ok();
        let chosen = std::env::var("KEELWAY_MUTANT").ok().and_then(|number| number.parse().ok()).unwrap_or(0);
        if let Some(path) = &record {
            let file = File::options().create(true).append(true).open(path).expect("the file of what is reached can be written");
            drop(REACHED.set(Mutex::new(file)));
        }
        ACTIVE.store(if record.is_some() { RECORDED } else { chosen }, Relaxed);
        return on(number);
    }
    // Without a file, another thread has read the variables meanwhile.
    let Some(file) = REACHED.get() else { return ACTIVE.load(Relaxed) == number };
    if SEEN[number as usize].swap(1, Relaxed) == 0 {
        let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.write_all(&number.to_le_bytes()).expect("the file of what is reached can be written");
    }
    false
}

/// `a < b`, and its mutants `==`, `>` and `<=`.
pub fn less<A: PartialOrd<B> + ?Sized, B: ?Sized>(number: u32, a: &A, b: &B) -> bool {
    if on(number) {
        a == b
    } else if on(number + 1) {
        a > b
    } else if on(number + 2) {
        a <= b
    } else {
        a < b
    }
}

/// `a > b`, and its mutants `==`, `<` and `>=`.
pub fn greater<A: PartialOrd<B> + ?Sized, B: ?Sized>(number: u32, a: &A, b: &B) -> bool {
    if on(number) {
        a == b
    } else if on(number + 1) {
        a < b
    } else if on(number + 2) {
        a >= b
    } else {
        a > b
    }
}

/// `a <= b`, and its mutant `>`.
pub fn at_most<A: PartialOrd<B> + ?Sized, B: ?Sized>(number: u32, a: &A, b: &B) -> bool {
    if on(number) { a > b } else { a <= b }
}

/// `a >= b`, and its mutant `<`.
pub fn at_least<A: PartialOrd<B> + ?Sized, B: ?Sized>(number: u32, a: &A, b: &B) -> bool {
    if on(number) { a < b } else { a >= b }
}
