//! Bytes from a client.

#![no_main]

use std::sync::LazyLock;

use toolbay_fuzz_properties::Requests;

static REQUESTS: LazyLock<Requests> = LazyLock::new(|| Requests::new().expect("a runtime starts"));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| REQUESTS.check(bytes));
