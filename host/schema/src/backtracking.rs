//! Matches patterns with look-around or back-references by backtracking, within the budget of a
//! check.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use fancy_regex::{CompileError, Error, Input, Regex, RegexBuilder};
use parking_lot::Mutex;

use super::budget;

/// Maximum number of backtracking steps of one match. This is enough for any honest pattern on a
/// text of kilobytes. A catastrophic pattern stops after milliseconds.
const MAX_BACKTRACKS: usize = 100_000;

/// Size limits for the compiled parts without look-around and back-references, in bytes. The
/// smallest sufficient limit is used. Such a part scans a text without interruption.
const PART_SIZE_LIMITS: [usize; 4] = [32 << 10, 128 << 10, 512 << 10, 2 << 20];

/// Maximum product of the size of a text and the size limit of such a part, both in bytes. In the
/// worst case, a part takes one second for this.
const MAX_SCAN_WORK: usize = 2 << 30;

/// Amount of that product for which one step must be left in the budget, because a part cannot be
/// interrupted while it scans.
const SCAN_WORK_PER_STEP: usize = 2 << 10;

/// Maximum product of the size of a text and the size of its pattern, both in bytes. The saved
/// backtracking state takes 16 times as many bytes.
const MAX_TEXT_PATTERN_PRODUCT: usize = 4 << 20;

/// Number of steps after which the pattern is compiled again. Its automata grow while they match,
/// and only dropping them frees their memory.
const RECOMPILE_STEPS: u64 = 50_000;

/// The reason for which the backtracking engine does not compile a pattern.
pub(super) enum BacktrackingError {
    TooLarge,
    /// The engine does not support the pattern, for this reason.
    Unsupported(String),
}

impl BacktrackingError {
    fn from_engine_error(error: &Error) -> Self {
        match error {
            Error::CompileError(error) => match &**error {
                // Only a part without look-around can be too large.
                CompileError::InnerError(inner) if inner.syntax_error().is_none() => Self::TooLarge,
                error => Self::Unsupported(error.to_string()),
            },
            Error::ParseError(at, error) => Self::Unsupported(format!("at byte {at}: {error}")),
            error => Self::Unsupported(error.to_string()),
        }
    }
}

/// A pattern that is matched by a backtracking engine.
pub(super) struct BacktrackingMatcher {
    /// The pattern in the syntax of the engine.
    source: String,
    /// Maximum size of each compiled part, in bytes.
    part_size: usize,
    /// The compiled pattern, unless it was dropped, and the steps that it has taken.
    compiled: Mutex<(Option<Arc<Regex>>, u64)>,
}

impl BacktrackingMatcher {
    /// Compiles a pattern whose parts have at most `max_part_size` bytes each.
    ///
    /// # Errors
    ///
    /// The pattern is too large, or the engine does not support it.
    pub(super) fn compile(source: &str, max_part_size: usize) -> Result<Self, BacktrackingError> {
        let mut last_error = BacktrackingError::TooLarge;
        for size_limit in PART_SIZE_LIMITS
            .into_iter()
            .map(|part| part.min(max_part_size))
        {
            match build_regex(source, size_limit) {
                Ok(regex) => {
                    let compiled = Mutex::new((Some(Arc::new(regex)), 0));
                    return Ok(Self {
                        source: source.to_owned(),
                        part_size: size_limit,
                        compiled,
                    });
                }
                Err(error) => last_error = BacktrackingError::from_engine_error(&error),
            }
        }
        Err(last_error)
    }

    /// Returns whether the pattern matches anywhere in `text`.
    pub(super) fn is_match(&self, text: &str) -> bool {
        if text.len().saturating_mul(self.part_size) > MAX_SCAN_WORK
            || text.len().saturating_mul(self.source.len()) > MAX_TEXT_PATTERN_PRODUCT
        {
            budget::abort_check();
        }
        budget::require_steps((text.len() * self.part_size / SCAN_WORK_PER_STEP) as u64);
        let Some(regex) = self.regex() else {
            budget::abort_check()
        };
        let steps_before = budget::steps_left();
        let matched = catch_unwind(AssertUnwindSafe(|| regex.is_match(&CountedText(text))));
        self.record_steps(steps_before.saturating_sub(budget::steps_left()));
        match matched {
            Ok(Ok(matched)) => matched,
            Err(panic) if budget::is_budget_panic(&*panic) => resume_unwind(panic),
            // The engine reached its backtracking limit, or it panicked. Some patterns make it
            // panic.
            Ok(Err(_)) | Err(_) => budget::abort_check(),
        }
    }

    fn regex(&self) -> Option<Arc<Regex>> {
        let mut compiled = self.compiled.lock();
        if compiled.0.is_none() {
            *compiled = (
                build_regex(&self.source, self.part_size).ok().map(Arc::new),
                0,
            );
        }
        compiled.0.clone()
    }

    fn record_steps(&self, steps: u64) {
        let mut compiled = self.compiled.lock();
        compiled.1 = compiled.1.saturating_add(steps);
        if compiled.1 > RECOMPILE_STEPS {
            compiled.0 = None;
        }
    }
}

fn build_regex(source: &str, part_size: usize) -> Result<Regex, Error> {
    RegexBuilder::new(source)
        .backtrack_limit(MAX_BACKTRACKS)
        .delegate_size_limit(part_size)
        .delegate_dfa_size_limit(part_size)
        .build()
}

impl fmt::Debug for BacktrackingMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BacktrackingMatcher")
            .field(&self.source)
            .finish()
    }
}

/// A text that charges steps for each access of the engine.
struct CountedText<'a>(&'a str);

impl CountedText<'_> {
    /// Charges one access. After each access, the engine may read the whole text.
    fn charge_access(&self) {
        budget::charge_steps(1 + (self.0.len() / 64) as u64);
    }
}

impl Input for CountedText<'_> {
    /// The position of a match is not needed.
    type Match<'t>
        = ()
    where
        Self: 't;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn as_bytes(&self) -> &[u8] {
        self.charge_access();
        self.0.as_bytes()
    }

    fn is_char_boundary(&self, ix: usize) -> bool {
        self.charge_access();
        Input::is_char_boundary(self.0, ix)
    }

    fn is_ascii(&self) -> bool {
        self.charge_access();
        Input::is_ascii(self.0.as_bytes())
    }

    fn prev_codepoint_ix(&self, i: usize) -> usize {
        self.charge_access();
        Input::prev_codepoint_ix(self.0, i)
    }

    fn make_match(&self, _start: usize, _end: usize) {}

    fn advance_position(&self, i: usize) -> usize {
        self.charge_access();
        Input::advance_position(self.0, i)
    }
}
