//! Patterns that look around or refer back: matched by trying, within the budget of a check.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use fancy_regex::{Input, Regex, RegexBuilder};

use super::budget;

/// Steps that one match may backtrack. Enough for any honest pattern on a
/// text of kilobytes; a catastrophic one stops after milliseconds.
const BACKTRACKS: usize = 100_000;

/// How large the parts that look neither around nor back may be when compiled, in bytes: as large as they must. Such a
/// part reads a text in one go.
const PARTS: [usize; 4] = [32 << 10, 128 << 10, 512 << 10, 2 << 20];

/// The most that a text times such a part may be, both in bytes: a part takes a second for that at the worst.
const WORK: usize = 2 << 30;

/// For so much of that, one step must be left: a part cannot be interrupted while it reads.
const AT_ONCE: usize = 2 << 10;

/// The most that a text times its pattern may be, both in bytes: what is saved for going back takes 16 times as much.
const SAVED: usize = 4 << 20;

/// How many steps may be taken before the pattern is compiled anew: meanwhile its automata grow, and nothing but
/// dropping them frees what they keep.
const WEAR: u64 = 50_000;

/// A pattern that a backtracking engine matches.
pub(super) struct BacktrackingMatcher {
    /// In the engine's syntax.
    source: String,
    /// How large each of its parts may be when compiled.
    part: usize,
    /// What the compiled pattern has worked.
    compiled: Mutex<(Option<Arc<Regex>>, u64)>,
}

impl BacktrackingMatcher {
    /// Compiles a pattern, each part of which may have `size` bytes; `None` if it is none, or too large.
    pub(super) fn compile(source: &str, size: usize) -> Option<Self> {
        let mut parts = PARTS.into_iter().map(|part| part.min(size));
        let (part, regex) = parts.find_map(|part| Some((part, build(source, part)?)))?;
        Some(Self { source: source.to_owned(), part, compiled: Mutex::new((Some(Arc::new(regex)), 0)) })
    }

    /// Whether the pattern matches somewhere in `text`.
    pub(super) fn is_match(&self, text: &str) -> bool {
        if text.len().saturating_mul(self.part) > WORK || text.len().saturating_mul(self.source.len()) > SAVED {
            budget::spent();
        }
        budget::need((text.len() * self.part / AT_ONCE) as u64);
        let Some(regex) = self.regex() else { budget::spent() };
        let before = budget::left();
        let matched = catch_unwind(AssertUnwindSafe(|| regex.is_match(&CountedText(text))));
        self.wear(before.saturating_sub(budget::left()));
        match matched {
            Ok(Ok(matched)) => matched,
            Err(panic) if budget::is_spent(&*panic) => resume_unwind(panic),
            // It would have gone back more often than it may, or it panicked: there are patterns at which it does.
            Ok(Err(_)) | Err(_) => budget::spent(),
        }
    }

    fn regex(&self) -> Option<Arc<Regex>> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if compiled.0.is_none() {
            *compiled = (build(&self.source, self.part).map(Arc::new), 0);
        }
        compiled.0.clone()
    }

    fn wear(&self, steps: u64) {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        compiled.1 = compiled.1.saturating_add(steps);
        if compiled.1 > WEAR {
            compiled.0 = None;
        }
    }
}

fn build(source: &str, part: usize) -> Option<Regex> {
    RegexBuilder::new(source)
        .backtrack_limit(BACKTRACKS)
        .delegate_size_limit(part)
        .delegate_dfa_size_limit(part)
        .build()
        .ok()
}

impl fmt::Debug for BacktrackingMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BacktrackingMatcher").field(&self.source).finish()
    }
}

/// A text that takes steps whenever the engine looks at it.
struct CountedText<'a>(&'a str);

impl CountedText<'_> {
    /// Each look may be the beginning of reading all of it.
    fn look(&self) {
        budget::take(1 + (self.0.len() / 64) as u64);
    }
}

impl Input for CountedText<'_> {
    /// Where a match is does not matter.
    type Match<'t>
        = ()
    where
        Self: 't;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn as_bytes(&self) -> &[u8] {
        self.look();
        self.0.as_bytes()
    }

    fn is_char_boundary(&self, ix: usize) -> bool {
        self.look();
        Input::is_char_boundary(self.0, ix)
    }

    fn is_ascii(&self) -> bool {
        self.look();
        Input::is_ascii(self.0.as_bytes())
    }

    fn prev_codepoint_ix(&self, i: usize) -> usize {
        self.look();
        Input::prev_codepoint_ix(self.0, i)
    }

    fn make_match(&self, _start: usize, _end: usize) {}

    fn advance_position(&self, i: usize) -> usize {
        self.look();
        Input::advance_position(self.0, i)
    }
}
