//! Text from an operator: a grant, a configuration, variables.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toolbay::fuzz::grant(bytes));
