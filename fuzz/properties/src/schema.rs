//! Properties of any schema of a plugin, and of any value that is checked against it.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use toolbay_schema::{CheckBudget, JsonSchema};

use crate::plain_line::is_plain_line;

/// The budget of a check here: a fraction of the normal one, because a sanitizer makes the check
/// many times slower.
const CHECK: CheckBudget = CheckBudget {
    steps: CheckBudget::CHECK.steps / 100,
    cpu_time: Duration::from_secs(1),
};

/// Maximum number of reported violations.
const VIOLATIONS: usize = 10;

/// Maximum length of the message and of the pointer of a violation, in bytes.
const MESSAGE: usize = 300;

/// Maximum CPU time for an input of a few kilobytes.
const MOST: Duration = Duration::from_secs(10);

/// Cost below which a check is also cheap without a budget.
const CHEAP: u64 = CHECK.steps / 10;

/// Checks a schema, which is the first line, and a value, which is the rest.
///
/// # Panics
///
/// If a property does not hold.
pub fn schema(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (schema, value) = text.split_once('\n').unwrap_or((text, "null"));
    let before = thread_time();
    check(schema, value);
    let took = thread_time().saturating_sub(before);
    assert!(took <= MOST, "it took {took:?}");
}

fn check(schema: &str, value: &str) {
    let schema = match JsonSchema::compile(schema) {
        Ok(schema) => schema,
        Err(why) => {
            assert!(is_plain_line(&why), "{why:?}");
            return;
        }
    };
    assert!(
        JsonSchema::compile(&schema.value().to_string()).is_ok(),
        "it compiles once, and not again"
    );
    let Ok(value) = serde_json::from_str::<Value>(value) else {
        return;
    };
    let violations = schema.violations_with_budgets(&value, CHECK, CheckBudget::LIST);
    assert!(violations.len() <= VIOLATIONS, "{violations:?}");
    for violation in &violations {
        assert!(is_plain_line(&violation.to_string()), "{violation:?}");
        assert!(
            violation.message.len() <= MESSAGE && violation.pointer.len() <= MESSAGE,
            "{violation:?}"
        );
    }
    let fits = schema.matches_within(&value, CHECK);
    // A check that barely stays within its time may exceed it when repeated.
    assert!(
        fits.is_none_or(|(fits, cost)| fits == violations.is_empty() || cost > CHEAP),
        "{fits:?} {violations:?}"
    );
    if let Some((fits, cost)) = fits
        && cost < CHEAP
    {
        // An unresolvable reference that is an ignored sibling of another reference is only
        // reported without the budget.
        if let Ok(plain) = jsonschema::options().offline().build(schema.value()) {
            assert_eq!(
                plain.is_valid(&value),
                fits,
                "with and without the steps of a budget"
            );
        }
    }
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}
