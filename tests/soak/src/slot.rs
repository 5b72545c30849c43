//! A plugin file that changes constantly, and the results that are valid at each moment.

use parking_lot::{Mutex, MutexGuard};

use serde_json::Value;

/// The result of a slot's tool: a text, or `None` if the tool does not exist.
pub(crate) type Said = Option<String>;

/// A plugin file, and a tool whose result identifies the file.
pub(crate) struct Slot {
    /// The plugin's id.
    pub(crate) id: &'static str,
    /// The tool, with its prefix.
    pub(crate) tool: String,
    /// The arguments of its calls.
    pub(crate) arguments: Value,
    /// The possible results after each change.
    steps: Mutex<Vec<Vec<Said>>>,
}

impl Slot {
    /// Creates a slot whose tool currently returns this.
    pub(crate) fn new(id: &'static str, tool: &str, arguments: Value, said: &str) -> Self {
        let steps = Mutex::new(vec![vec![Some(said.to_owned())]]);
        Self {
            id,
            tool: format!("{id}_{tool}"),
            arguments,
            steps,
        }
    }

    /// Returns the current step, to be read before a call is made.
    pub(crate) fn step(&self) -> usize {
        self.lock().len() - 1
    }

    /// Returns whether a call that was made at a step may have this result by now.
    pub(crate) fn allows(&self, since: usize, said: &Said) -> bool {
        self.lock()
            .iter()
            .skip(since)
            .flatten()
            .any(|possible| possible == said)
    }

    /// Starts a change: this result also becomes possible.
    pub(crate) fn may_say(&self, said: Said) {
        let mut steps = self.lock();
        let mut next = steps.last().cloned().unwrap_or_default();
        next.push(said);
        steps.push(next);
    }

    /// Ends a change whose effect was observed: only this result remains possible.
    pub(crate) fn says(&self, said: Said) {
        self.lock().push(vec![said]);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<Said>>> {
        self.steps.lock()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_true_at_any_time_of_a_call_may_be_answered() {
        let one = Some("one".to_owned());
        let two = Some("two".to_owned());
        let slot = Slot::new("a", "edition", json!({}), "one");
        assert_eq!(slot.tool, "a_edition");
        let before = slot.step();
        assert!(slot.allows(before, &one) && !slot.allows(before, &two));
        slot.may_say(two.clone());
        let during = slot.step();
        assert!(slot.allows(before, &one) && slot.allows(before, &two));
        slot.says(two.clone());
        assert!(slot.allows(during, &one) && slot.allows(during, &two));
        assert!(!slot.allows(slot.step(), &one) && slot.allows(slot.step(), &two));
        slot.may_say(None);
        assert!(slot.allows(slot.step(), &None) && slot.allows(slot.step(), &two));
    }
}
