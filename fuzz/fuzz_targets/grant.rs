//! Text from an operator: a grant, a configuration, and variables.

#![no_main]

use std::sync::LazyLock;

use toolbay_fuzz_properties::Grants;

static GRANTS: LazyLock<Grants> = LazyLock::new(|| Grants::new().expect("a sandbox starts"));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| GRANTS.check(bytes));
