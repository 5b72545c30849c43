//! Bytes from a client.

#![no_main]

use std::sync::LazyLock;

use toolbay::fuzz::Requests;

static REQUESTS: LazyLock<Requests> = LazyLock::new(|| Requests::new().expect("a server starts"));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| REQUESTS.check(bytes));
