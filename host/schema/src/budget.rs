//! Limits the work of checking a value. A schema of a few lines can make a check take years or
//! exhaust the stack.
//!
//! A schema can have forty levels, each of which refers to the next one twice, or its references
//! can form a cycle. It can compare each element of a long list with thousands of alternatives, and
//! matching one pattern can take a thousand times as long as a comparison. A check therefore
//! accesses values through `CountedValue`, which charges one step to a budget for each access.
//! Every reference is placed behind a custom keyword, which charges further steps. When the budget,
//! the time or the stack is exhausted, the check unwinds.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use toolbay_model::{Interrupt, thread_cpu_time};

/// The custom keyword that charges a reference. No real schema uses this name.
pub(super) const STEP_KEYWORD: &str = "dev.toolbay/step";

/// The maximum cost of one check.
#[derive(Clone, Copy, Debug)]
pub struct CheckBudget {
    /// Number of steps, of 5 to 100 ns each: one for each access to a value, 16 for each reference,
    /// and further steps for patterns, comparisons and long texts.
    pub steps: u64,
    /// CPU time of the thread, for steps that can take long, such as patterns. Time that a thread
    /// waits for a CPU does not count.
    pub cpu_time: Duration,
}

impl CheckBudget {
    /// Budget for deciding whether a value matches: about half a second. Enough for a hundred
    /// accesses to each value in a result of one megabyte, or for three million references.
    pub const CHECK: Self = Self {
        steps: 50_000_000,
        cpu_time: Duration::from_secs(2),
    };

    /// Budget for listing the violations. It is much smaller, because the violations of every
    /// failed alternative stay in memory until the end.
    pub const LIST: Self = Self {
        steps: 40_000,
        cpu_time: Duration::from_secs(1),
    };

    /// Budget for a quick check on a thread that has other work to do: about 2 ms, which a guest
    /// may also compute before it yields. Enough for any value of a few hundred bytes and an honest
    /// schema.
    pub const QUICK: Self = Self {
        steps: 40_000,
        cpu_time: Duration::from_millis(10),
    };
}

/// The cost of matching the name of a member with patterns.
pub(super) trait NameCost: Send + Sync {
    /// Charges the cost of `name` to the budget.
    fn charge(&self, name: &str);
}

/// Number of steps that a reference costs. It has a cost because its target may not access any
/// value.
const REFERENCE_COST: u64 = 16;

/// Number of steps between two readings of the clock.
const CLOCK_INTERVAL_STEPS: u64 = 64;

/// Maximum stack usage of a check, in bytes: half the stack of Toolbay's threads.
const MAX_STACK_BYTES: usize = 1 << 20;

/// Keywords whose values are maps from names to schemas.
const SCHEMA_MAP_KEYWORDS: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];

/// Keywords whose values are data. A `$ref` in them is not a reference.
const DATA_KEYWORDS: [&str; 4] = ["const", "enum", "default", "examples"];

/// Keywords that are references.
const REFERENCE_KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Bytes of a text that are accessed in one step. A comparison or a format reads a gigabyte per
/// second.
const TEXT_BYTES_PER_STEP: usize = 64;

thread_local! {
    static METER: CheckMeter = const {
        CheckMeter {
            steps_left: Cell::new(u64::MAX),
            cpu_time: Cell::new(Duration::MAX),
            clock: Cell::new(None),
            stack_start: Cell::new(None),
            interrupt: RefCell::new(None),
            name_cost: RefCell::new(None),
        }
    };
}

/// The remaining budget of the check that runs on this thread.
struct CheckMeter {
    steps_left: Cell<u64>,
    cpu_time: Cell<Duration>,
    /// The wall clock. Reading the CPU time needs a system call, and reading the wall clock does
    /// not. The CPU time is therefore read only when the check can have used up its time according
    /// to the wall clock.
    clock: Cell<Option<CheckClock>>,
    /// The position of the stack when the check started.
    stack_start: Cell<Option<usize>>,
    interrupt: RefCell<Option<Interrupt>>,
    /// The cost of reading the name of a member.
    name_cost: RefCell<Option<Arc<dyn NameCost>>>,
}

/// The running time of a check.
#[derive(Clone, Copy)]
struct CheckClock {
    /// The CPU time of the thread when the clock was read for the first time.
    start_cpu_time: Duration,
    /// The earliest time at which the check can have used up its CPU time.
    next_reading: Instant,
}

/// The payload with which a check unwinds.
struct BudgetExhausted;

/// Returns the schema with every reference behind the step keyword. It accepts the same values.
pub(super) fn with_steps(schema: &Value, siblings_apply: bool) -> Value {
    let mut schema = schema.clone();
    insert_steps(&mut schema, siblings_apply);
    schema
}

/// Runs a check with this budget. Returns `None` if the budget was exhausted or the check was
/// interrupted.
pub(super) fn run_within<T>(
    budget: CheckBudget,
    interrupt: &Interrupt,
    name_cost: &Arc<dyn NameCost>,
    check: impl FnOnce() -> T,
) -> Option<T> {
    METER.with(|meter| {
        meter.steps_left.set(budget.steps);
        meter.cpu_time.set(budget.cpu_time);
        meter.clock.set(None);
        meter.stack_start.set(Some(stack_position()));
        meter.interrupt.replace(Some(interrupt.clone()));
        meter.name_cost.replace(Some(Arc::clone(name_cost)));
    });
    let outcome = catch_unwind(AssertUnwindSafe(check));
    METER.with(|meter| {
        meter.interrupt.take();
        meter.name_cost.take();
    });
    match outcome {
        Ok(result) => Some(result),
        Err(panic) if panic.is::<BudgetExhausted>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// Returns the steps that are left for the check on this thread, or that its last check left over.
pub(super) fn steps_left() -> u64 {
    METER.with(|meter| meter.steps_left.get())
}

/// Charges one access to a value.
pub(super) fn charge_access() {
    charge_steps(1);
}

/// Charges a reference.
pub(super) fn charge_reference() {
    charge_steps(REFERENCE_COST);
}

/// Charges one access to a text.
pub(super) fn charge_text(text: &str) {
    charge_steps(1 + (text.len() / TEXT_BYTES_PER_STEP) as u64);
}

/// Charges one access to the name of a member, which patterns may match.
pub(super) fn charge_name(name: &str) {
    charge_text(name);
    let name_cost = METER.with(|meter| meter.name_cost.borrow().clone());
    if let Some(names) = name_cost {
        names.charge(name);
    }
}

/// Charges `cost` steps.
pub(super) fn charge_steps(cost: u64) {
    METER.with(|meter| meter.charge(cost));
}

/// Ends the check unless this number of steps is left.
pub(super) fn require_steps(steps: u64) {
    if steps_left() < steps {
        abort_check();
    }
}

/// Returns whether the payload of a panic is that of an exhausted budget.
pub(super) fn is_budget_panic(panic: &(dyn std::any::Any + Send)) -> bool {
    panic.is::<BudgetExhausted>()
}

impl CheckMeter {
    fn charge(&self, cost: u64) {
        let steps_before = self.steps_left.get();
        let Some(steps_left) = steps_before.checked_sub(cost) else {
            abort_check()
        };
        self.steps_left.set(steps_left);
        if steps_before / CLOCK_INTERVAL_STEPS != steps_left / CLOCK_INTERVAL_STEPS {
            self.check_clock();
        }
        if self
            .stack_start
            .get()
            .is_some_and(|start| start.abs_diff(stack_position()) > MAX_STACK_BYTES)
        {
            abort_check();
        }
    }

    fn check_clock(&self) {
        if self.is_out_of_time()
            || self
                .interrupt
                .borrow()
                .as_ref()
                .is_some_and(Interrupt::is_due)
        {
            abort_check();
        }
    }

    /// Returns whether the check has used up its CPU time.
    fn is_out_of_time(&self) -> bool {
        let now = Instant::now();
        let allowed = self.cpu_time.get();
        let Some(clock) = self.clock.get() else {
            let next = now.checked_add(allowed);
            self.clock.set(next.map(|next| CheckClock {
                start_cpu_time: thread_cpu_time(),
                next_reading: next,
            }));
            return false;
        };
        if now < clock.next_reading {
            return false;
        }
        let Some(left) =
            allowed.checked_sub(thread_cpu_time().saturating_sub(clock.start_cpu_time))
        else {
            return true;
        };
        self.clock.set(now.checked_add(left).map(|next| CheckClock {
            next_reading: next,
            ..clock
        }));
        left.is_zero()
    }
}

/// Ends the check without a result, by unwinding.
pub(super) fn abort_check() -> ! {
    // `resume_unwind` does not call the panic hook, so nothing is printed.
    resume_unwind(Box::new(BudgetExhausted))
}

/// Returns the approximate position of the stack.
fn stack_position() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(black_box(&here)).addr()
}

fn insert_steps(schema: &mut Value, siblings_apply: bool) {
    match schema {
        Value::Array(schemas) => schemas
            .iter_mut()
            .for_each(|schema| insert_steps(schema, siblings_apply)),
        Value::Object(members) => {
            for (key, value) in members.iter_mut() {
                if let (true, Value::Object(schemas)) =
                    (SCHEMA_MAP_KEYWORDS.contains(&key.as_str()), &mut *value)
                {
                    schemas
                        .values_mut()
                        .for_each(|schema| insert_steps(schema, siblings_apply));
                } else if !DATA_KEYWORDS.contains(&key.as_str()) {
                    insert_steps(value, siblings_apply);
                }
            }
            if REFERENCE_KEYWORDS
                .iter()
                .any(|key| members.get(*key).is_some_and(Value::is_string))
            {
                move_behind_step(members, siblings_apply);
            }
        }
        _ => {}
    }
}

/// Moves the references of one schema behind a step keyword at the end of its `allOf`, so that JSON
/// Pointers into the `allOf` keep their targets.
fn move_behind_step(members: &mut Map<String, Value>, siblings_apply: bool) {
    let mut references = Map::new();
    for key in REFERENCE_KEYWORDS {
        if let Some(target) = members.remove(key) {
            references.insert(key.to_owned(), target);
        }
    }
    if !siblings_apply {
        // Drafts up to 7 ignore the siblings of a reference, except for definitions.
        members.retain(|key, _| {
            ["$schema", "$id", "id", "definitions", "$defs"].contains(&key.as_str())
        });
    }
    let step_branch = json!({"allOf": [{STEP_KEYWORD: true}, references]});
    match members.get_mut("allOf").and_then(Value::as_array_mut) {
        Some(all) => all.push(step_branch),
        None => {
            members.insert("allOf".to_owned(), json!([step_branch]));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    struct Free;

    impl NameCost for Free {
        fn charge(&self, _name: &str) {}
    }

    const BUDGET: CheckBudget = CheckBudget {
        steps: u64::MAX,
        cpu_time: Duration::from_millis(20),
    };

    fn check<T>(check: impl FnOnce() -> T) -> Option<T> {
        let names: Arc<dyn NameCost> = Arc::new(Free);
        run_within(BUDGET, &Interrupt::default(), &names, check)
    }

    /// Charges steps until the thread has used this much CPU time.
    fn compute(time: Duration) {
        let start = thread_cpu_time();
        while thread_cpu_time().checked_sub(start).unwrap() < time {
            charge_steps(CLOCK_INTERVAL_STEPS);
        }
    }

    #[test]
    fn a_check_that_waits_for_a_processor_is_not_out_of_time() {
        let waits = || {
            charge_steps(CLOCK_INTERVAL_STEPS);
            // Another thread occupies the CPU for longer than the check may run.
            let other = thread::spawn(|| {
                let clock = Instant::now();
                let start = thread_cpu_time();
                while clock.elapsed() < BUDGET.cpu_time * 2
                    || thread_cpu_time().checked_sub(start).unwrap() < BUDGET.cpu_time
                {
                    std::hint::spin_loop();
                }
            });
            other.join().unwrap();
            charge_steps(CLOCK_INTERVAL_STEPS);
            charge_steps(CLOCK_INTERVAL_STEPS);
        };
        assert_eq!(check(waits), Some(()));
    }

    #[test]
    fn a_check_that_computes_is_out_of_time() {
        assert_eq!(check(|| compute(BUDGET.cpu_time * 2)), None);
        assert_eq!(check(|| compute(BUDGET.cpu_time / 4)), Some(()));
    }
}
