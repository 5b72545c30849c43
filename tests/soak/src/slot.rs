//! One plugin file that changes all the time, and what may be answered for it meanwhile.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// What a call of a slot's tool answers: a text, or nothing when there is no such tool.
pub(crate) type Said = Option<String>;

/// A plugin file, and a tool of it whose answer says which file it is.
pub(crate) struct Slot {
    /// The plugin's id.
    pub(crate) id: &'static str,
    /// The tool, with its prefix.
    pub(crate) tool: String,
    /// What it is called with.
    pub(crate) arguments: Value,
    /// What could be answered, from each change to the next.
    steps: Mutex<Vec<Vec<Said>>>,
}

impl Slot {
    /// A slot that answers this now.
    pub(crate) fn new(id: &'static str, tool: &str, arguments: Value, said: &str) -> Self {
        let steps = Mutex::new(vec![vec![Some(said.to_owned())]]);
        Self { id, tool: format!("{id}_{tool}"), arguments, steps }
    }

    /// The step that it is at: to be asked before a call is made.
    pub(crate) fn step(&self) -> usize {
        self.lock().len() - 1
    }

    /// Whether a call that was made at a step may be answered so by now.
    pub(crate) fn allows(&self, since: usize, said: &Said) -> bool {
        self.lock().iter().skip(since).flatten().any(|possible| possible == said)
    }

    /// A change begins: from now on, this may be answered as well.
    pub(crate) fn may_say(&self, said: Said) {
        let mut steps = self.lock();
        let mut next = steps.last().cloned().unwrap_or_default();
        next.push(said);
        steps.push(next);
    }

    /// A change has been seen: from now on, nothing else is answered.
    pub(crate) fn says(&self, said: Said) {
        self.lock().push(vec![said]);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<Said>>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_true_at_any_time_of_a_call_may_be_answered() {
        let (one, two) = (Some("one".to_owned()), Some("two".to_owned()));
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
