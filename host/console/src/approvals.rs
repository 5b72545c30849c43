//! Approval questions for calls that a person must allow, and their outcomes.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use toolbay_model::Digest;
use toolbay_model::text::clean_line;

/// Maximum number of stored questions.
const MAX_QUESTIONS: usize = 200;

/// Maximum length of a name, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// The state of an approval question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalNote {
    /// Time of the event.
    pub at: SystemTime,
    /// The caller's name.
    pub caller: String,
    /// The plugin.
    pub plugin: String,
    /// The tool.
    pub tool: String,
    /// `requested`, `approved`, `declined`, `remembered`, or the reason that there was no answer.
    pub status: &'static str,
    /// The operator who answered in the console, if any.
    pub answered_by: Option<String>,
    /// SHA-256 of the arguments.
    pub arguments: Option<Digest>,
    /// Time limit for the answer.
    pub time_limit: Duration,
}

/// The approval questions.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApprovalQueue {
    /// The questions, newest last.
    questions: VecDeque<ApprovalNote>,
}

impl ApprovalQueue {
    /// Adds a question or its outcome. Replaces the same question if it is still open.
    pub(crate) fn add(&mut self, approval: ApprovalNote) {
        let approval = approval.truncate_texts();
        let is_same_question = |existing: &ApprovalNote| {
            existing.status == "requested"
                && (&existing.caller, &existing.tool, existing.arguments)
                    == (&approval.caller, &approval.tool, approval.arguments)
        };
        if let Some(at) = self.questions.iter().position(is_same_question) {
            self.questions.remove(at);
        }
        if self.questions.len() >= MAX_QUESTIONS {
            self.questions.pop_front();
        }
        self.questions.push_back(approval);
    }

    /// Returns the questions, newest first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = &ApprovalNote> {
        self.questions.iter().rev()
    }

    /// Returns the number of questions that wait for an answer.
    pub(crate) fn open_count(&self, now: SystemTime) -> usize {
        self.questions.iter().filter(|one| one.is_open(now)).count()
    }
}

impl ApprovalNote {
    /// Returns whether the question is open and its time limit has not passed.
    pub(crate) fn is_open(&self, now: SystemTime) -> bool {
        self.status == "requested"
            && now.duration_since(self.at).unwrap_or_default() <= self.time_limit
    }

    fn truncate_texts(self) -> Self {
        let truncate = |text: String| clean_line(&text, MAX_NAME_BYTES);
        Self {
            caller: truncate(self.caller),
            plugin: truncate(self.plugin),
            tool: truncate(self.tool),
            answered_by: self.answered_by.map(truncate),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(caller: &str, status: &'static str) -> ApprovalNote {
        ApprovalNote {
            at: SystemTime::UNIX_EPOCH,
            caller: caller.to_owned(),
            plugin: "mail".to_owned(),
            tool: "send".to_owned(),
            status,
            answered_by: None,
            arguments: None,
            time_limit: Duration::from_mins(1),
        }
    }

    #[test]
    fn a_question_waits_until_it_is_answered_or_too_old() {
        let mut approvals = ApprovalQueue::default();
        for (caller, word) in [
            ("ada", "requested"),
            ("bob", "requested"),
            ("ada", "approved"),
            ("cy", "remembered"),
        ] {
            approvals.add(note(caller, word));
        }
        let statuses: Vec<_> = approvals
            .newest()
            .map(|one| (&*one.caller, one.status))
            .collect();
        assert_eq!(
            statuses,
            [
                ("cy", "remembered"),
                ("ada", "approved"),
                ("bob", "requested")
            ]
        );
        let after = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(
            (
                approvals.open_count(after(60)),
                approvals.open_count(after(61))
            ),
            (1, 0)
        );
        for number in 0..1_000 {
            approvals.add(note(&number.to_string(), "requested"));
        }
        assert_eq!(approvals.newest().count(), MAX_QUESTIONS);
    }
}
