//! Bounds the work of checking a value: a schema of a few lines can make a check take years, or use up the stack.
//!
//! On each of forty levels, a schema may refer to the next one twice, or its references may form a circle. It may
//! compare each element of a long list with thousands of alternatives, and matching one pattern may take a thousand
//! times as long as a comparison. A check therefore looks at values through `Counted`, which takes one step from a
//! budget for each access, and every reference is placed behind a keyword of our own, which takes further steps. When
//! the budget, the time or the stack is used up, the check unwinds.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use toolbay_model::{Interrupt, thread_cpu_time};

/// The keyword that takes a step. No real schema uses this name.
pub(super) const STEP: &str = "dev.toolbay/step";

/// The cost that one check may have.
#[derive(Clone, Copy, Debug)]
pub struct CheckBudget {
    /// Steps, of 5 to 100 ns each: one for each look at a value, 16 for each reference, and what patterns,
    /// comparisons and long texts take.
    pub steps: u64,
    /// Processor time of the thread, for steps that can take long, such as patterns. A thread that waits for a processor
    /// does not use it up.
    pub cpu_time: Duration,
}

impl CheckBudget {
    /// For deciding whether a value matches: about half a second. Enough for a hundred accesses to each value in a
    /// result of one megabyte, or for three million references.
    pub const CHECK: Self = Self { steps: 50_000_000, cpu_time: Duration::from_secs(2) };

    /// For listing the violations. Much smaller, because the violations of every alternative that failed stay in memory
    /// until the end.
    pub const LIST: Self = Self { steps: 40_000, cpu_time: Duration::from_secs(1) };

    /// For a look on a thread that has other things to do: 2 ms or so, which is what a guest may compute before it
    /// gives way. Enough for any value of a few hundred bytes and an honest schema.
    pub const GLANCE: Self = Self { steps: 40_000, cpu_time: Duration::from_millis(10) };
}

/// What matching the name of a member with patterns costs.
pub(super) trait NameCost: Send + Sync {
    /// Takes it.
    fn take(&self, name: &str);
}

/// The cost of a reference, because its target may access no value at all.
const STEP_COST: u64 = 16;

/// The clock is read once per this number of steps.
const CLOCK: u64 = 64;

/// How much of the stack a check may use: half the stack of our threads.
const STACK: usize = 1 << 20;

/// Keywords whose values are maps from names to schemas.
const MAPS: [&str; 6] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Keywords whose values are data. A `$ref` in them is not a reference.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// The keywords that are references.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// So many bytes of a text are looked at in one step. A comparison or a format reads a gigabyte a second.
const TEXT: usize = 64;

thread_local! {
    static METER: CheckMeter = const {
        CheckMeter {
            left: Cell::new(u64::MAX),
            allowed: Cell::new(Duration::MAX),
            clock: Cell::new(None),
            stack: Cell::new(None),
            interrupt: RefCell::new(None),
            names: RefCell::new(None),
        }
    };
}

/// What is left for the check that runs on this thread.
struct CheckMeter {
    left: Cell<u64>,
    allowed: Cell<Duration>,
    /// Reading the processor time takes a system call, and the clock does not: it is read first, and only once the check can
    /// have used up its time.
    clock: Cell<Option<CheckClock>>,
    /// The position of the stack when it began.
    stack: Cell<Option<usize>>,
    interrupt: RefCell<Option<Interrupt>>,
    /// What reading the name of a member takes.
    names: RefCell<Option<Arc<dyn NameCost>>>,
}

/// How long a check has run.
#[derive(Clone, Copy)]
struct CheckClock {
    /// The processor time of the thread when the clock was read for the first time.
    start: Duration,
    /// When the check can have used up its time, if the thread did not wait.
    next: Instant,
}

/// The payload with which a check unwinds.
struct BudgetSpent;

/// Returns the schema with every reference behind a step. It accepts the same values.
pub(super) fn with_steps(schema: &Value, siblings_count: bool) -> Value {
    let mut schema = schema.clone();
    visit(&mut schema, siblings_count);
    schema
}

/// Runs a check with this budget; `None` when that was not enough, or when it was interrupted.
pub(super) fn within<T>(
    budget: CheckBudget,
    interrupt: &Interrupt,
    names: &Arc<dyn NameCost>,
    check: impl FnOnce() -> T,
) -> Option<T> {
    METER.with(|meter| {
        meter.left.set(budget.steps);
        meter.allowed.set(budget.cpu_time);
        meter.clock.set(None);
        meter.stack.set(Some(stack()));
        meter.interrupt.replace(Some(interrupt.clone()));
        meter.names.replace(Some(Arc::clone(names)));
    });
    let outcome = catch_unwind(AssertUnwindSafe(check));
    METER.with(|meter| {
        meter.interrupt.take();
        meter.names.take();
    });
    match outcome {
        Ok(result) => Some(result),
        Err(panic) if panic.is::<BudgetSpent>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// How many steps the last check left over.
pub(super) fn left() -> u64 {
    METER.with(|meter| meter.left.get())
}

/// Charges one access to a value.
pub(super) fn look() {
    take(1);
}

/// Charges a reference.
pub(super) fn step() {
    take(STEP_COST);
}

/// One look at a text.
pub(super) fn read(text: &str) {
    take(1 + (text.len() / TEXT) as u64);
}

/// One look at the name of a member, which patterns may be about.
pub(super) fn read_name(name: &str) {
    read(name);
    let names = METER.with(|meter| meter.names.borrow().clone());
    if let Some(names) = names {
        names.take(name);
    }
}

/// Work that is worth so many steps.
pub(super) fn take(cost: u64) {
    METER.with(|meter| meter.take(cost));
}

/// Ends the check unless so many steps are left.
pub(super) fn need(steps: u64) {
    if left() < steps {
        spent();
    }
}

/// Whether a check was unwound with this.
pub(super) fn is_spent(panic: &(dyn std::any::Any + Send)) -> bool {
    panic.is::<BudgetSpent>()
}

impl CheckMeter {
    fn take(&self, cost: u64) {
        let before = self.left.get();
        let Some(left) = before.checked_sub(cost) else { spent() };
        self.left.set(left);
        if before / CLOCK != left / CLOCK {
            self.check_clock();
        }
        if self.stack.get().is_some_and(|start| start.abs_diff(stack()) > STACK) {
            spent();
        }
    }

    fn check_clock(&self) {
        if self.is_out_of_time() || self.interrupt.borrow().as_ref().is_some_and(Interrupt::is_due) {
            spent();
        }
    }

    /// Returns whether the check has used up its processor time.
    fn is_out_of_time(&self) -> bool {
        let (now, allowed) = (Instant::now(), self.allowed.get());
        let Some(clock) = self.clock.get() else {
            let next = now.checked_add(allowed);
            self.clock.set(next.map(|next| CheckClock { start: thread_cpu_time(), next }));
            return false;
        };
        if now < clock.next {
            return false;
        }
        let Some(left) = allowed.checked_sub(thread_cpu_time().saturating_sub(clock.start)) else { return true };
        self.clock.set(now.checked_add(left).map(|next| CheckClock { next, ..clock }));
        left.is_zero()
    }
}

/// Ends the check without a result.
pub(super) fn spent() -> ! {
    // Not a panic: no hook is called and nothing is printed.
    resume_unwind(Box::new(BudgetSpent))
}

/// The approximate position of the stack.
fn stack() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(black_box(&here)).addr()
}

fn visit(schema: &mut Value, siblings_count: bool) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(|schema| visit(schema, siblings_count)),
        Value::Object(members) => {
            for (key, value) in members.iter_mut() {
                if let (true, Value::Object(schemas)) = (MAPS.contains(&key.as_str()), &mut *value) {
                    schemas.values_mut().for_each(|schema| visit(schema, siblings_count));
                } else if !DATA.contains(&key.as_str()) {
                    visit(value, siblings_count);
                }
            }
            if REFERENCES.iter().any(|key| members.get(*key).is_some_and(Value::is_string)) {
                put_behind_step(members, siblings_count);
            }
        }
        _ => {}
    }
}

/// Moves the references of one schema behind a step at the end of its `allOf`, so that JSON Pointers into the `allOf`
/// keep their targets.
fn put_behind_step(members: &mut Map<String, Value>, siblings_count: bool) {
    let mut references = Map::new();
    for key in REFERENCES {
        if let Some(target) = members.remove(key) {
            references.insert(key.to_owned(), target);
        }
    }
    if !siblings_count {
        // Drafts up to 7 ignore the siblings of a reference, except for definitions.
        members.retain(|key, _| ["$schema", "$id", "id", "definitions", "$defs"].contains(&key.as_str()));
    }
    let behind = json!({"allOf": [{STEP: true}, references]});
    match members.get_mut("allOf").and_then(Value::as_array_mut) {
        Some(all) => all.push(behind),
        None => {
            members.insert("allOf".to_owned(), json!([behind]));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    struct Free;

    impl NameCost for Free {
        fn take(&self, _name: &str) {}
    }

    const BUDGET: CheckBudget = CheckBudget { steps: u64::MAX, cpu_time: Duration::from_millis(20) };

    fn check<T>(check: impl FnOnce() -> T) -> Option<T> {
        let names: Arc<dyn NameCost> = Arc::new(Free);
        within(BUDGET, &Interrupt::default(), &names, check)
    }

    /// Takes steps until the thread has used this much processor time.
    fn compute(time: Duration) {
        let start = thread_cpu_time();
        while thread_cpu_time().checked_sub(start).unwrap() < time {
            take(CLOCK);
        }
    }

    #[test]
    fn a_check_that_waits_for_a_processor_is_not_out_of_time() {
        let waits = || {
            take(CLOCK);
            // Another thread has the processor for longer than the check may run.
            let other = thread::spawn(|| {
                let (clock, start) = (Instant::now(), thread_cpu_time());
                while clock.elapsed() < BUDGET.cpu_time * 2
                    || thread_cpu_time().checked_sub(start).unwrap() < BUDGET.cpu_time
                {
                    std::hint::spin_loop();
                }
            });
            other.join().unwrap();
            take(CLOCK);
            take(CLOCK);
        };
        assert_eq!(check(waits), Some(()));
    }

    #[test]
    fn a_check_that_computes_is_out_of_time() {
        assert_eq!(check(|| compute(BUDGET.cpu_time * 2)), None);
        assert_eq!(check(|| compute(BUDGET.cpu_time / 4)), Some(()));
    }
}
