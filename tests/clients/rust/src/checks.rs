//! Counts what was true, and says it.

use std::fmt::Debug;

#[derive(Default)]
pub(crate) struct Checks {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
}

impl Checks {
    /// Counts `what`; `otherwise` is shown if it is not so.
    pub(crate) fn check(&mut self, what: &str, ok: bool, otherwise: impl Debug) {
        if ok {
            self.passed += 1;
            println!("ok      {what}");
        } else {
            self.failed += 1;
            println!("FAILED  {what}: {otherwise:?}");
        }
    }
}
