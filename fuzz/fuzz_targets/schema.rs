//! A schema from a plugin, and a value that is checked with it.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use toolbay_fuzz::json;

fuzz_target!(|bytes: &[u8]| toolbay_fuzz_properties::schema(bytes));

fuzz_mutator!(|bytes: &mut [u8], size: usize, most: usize, seed: u32| {
    // One in four mutations changes bytes. Only these produce invalid JSON and invalid numbers.
    let changed = if seed % 4 == 0 {
        None
    } else {
        json::mutated(&bytes[..size], seed)
    };
    match changed.filter(|text| text.len() <= most) {
        Some(text) => {
            bytes[..text.len()].copy_from_slice(text.as_bytes());
            text.len()
        }
        None => fuzzer_mutate(bytes, size, most),
    }
});
