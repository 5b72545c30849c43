//! Matches patterns without look-around and back-references in one pass over the text, within the
//! budget of a check.
//!
//! The automaton is determinized lazily, as far as the text requires. A transition to an existing
//! state costs a few nanoseconds per byte. Creating a state can cost as much as the whole
//! automaton, and a pattern such as `[ab]*a[ab]{20000}[^ab]` needs a new state for every byte. New
//! states are therefore charged to the budget.

use std::fmt;

use parking_lot::Mutex;
use regex_automata::dfa::{StartKind, dense};
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::{Anchored, Input};
use regex_syntax::hir::{Capture, Hir, HirKind, Look, Repetition};
use toolbay_model::ByteReservation;

use super::budget;
use super::pattern_budget::PatternBudget;

/// Capacity of the state cache of one search, in bytes. A search that needs more clears the cache
/// and continues.
const STATE_CACHE_CAPACITY: usize = 1 << 20;

/// Maximum work between two charges to the budget: the number of states of the automaton times the
/// bytes of text.
const MAX_UNCHARGED_WORK: usize = 1 << 16;

/// Bytes of text that are read in one step, if their states are cached.
const TEXT_BYTES_PER_STEP: usize = 32;

/// States of the automaton, or bytes of cached states, that are visited in one step to create a new
/// state.
const NEW_STATE_WORK_PER_STEP: usize = 16;

/// Maximum size of an automaton that is determinized completely, in bytes.
const MAX_DENSE_DFA_BYTES: usize = 64 << 10;

/// A pattern that is matched by an automaton.
pub(super) struct AutomatonMatcher {
    dfa: DFA,
    /// If set, the automaton reads the text backwards: the match ends at the end of the text and
    /// begins anywhere.
    is_reverse: bool,
    /// True if the pattern contains Unicode word boundaries. Only the library supports these, so
    /// the size of its automaton is unknown.
    has_unicode_words: bool,
    spare_cache: Mutex<SpareCache>,
}

/// The state cache of a finished search, for the next one.
struct SpareCache {
    cache: Option<Cache>,
    /// Reservation of its memory.
    reservation: ByteReservation,
}

impl AutomatonMatcher {
    /// Compiles a pattern; `None` if it is too large.
    pub(super) fn compile(pattern: &Hir, pattern_budget: &PatternBudget) -> Option<Self> {
        let prefix_looks = pattern.properties().look_set_prefix();
        let suffix_looks = pattern.properties().look_set_suffix();
        let is_reverse = suffix_looks.contains(Look::End) && !prefix_looks.contains(Look::Start);
        let config = thompson::Config::new()
            .utf8(true)
            .reverse(is_reverse)
            .nfa_size_limit(Some(pattern_budget.max_pattern_size()))
            .which_captures(WhichCaptures::None);
        let has_unicode_words = pattern.properties().look_set().contains_word_unicode();
        let nfa = thompson::Compiler::new()
            .configure(config)
            .build_from_hir(&with_ascii_words(pattern))
            .ok()?;
        let config = DFA::config()
            .cache_capacity(STATE_CACHE_CAPACITY)
            .skip_cache_capacity_check(true);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa).ok()?;
        Some(Self {
            dfa,
            is_reverse,
            has_unicode_words,
            spare_cache: Mutex::new(SpareCache {
                cache: None,
                reservation: pattern_budget.cached_bytes().empty_reservation(),
            }),
        })
    }

    /// Returns the number of states.
    pub(super) fn state_count(&self) -> usize {
        self.nfa().states().len()
    }

    /// Returns the size of the completely determinized automaton, in bytes; `None` if it is too
    /// large.
    pub(super) fn dense_dfa_size(&self) -> Option<usize> {
        if self.has_unicode_words || self.state_count() > MAX_DENSE_DFA_BYTES / 8 {
            return None;
        }
        let config = dense::Config::new()
            .start_kind(if self.is_reverse {
                StartKind::Anchored
            } else {
                StartKind::Unanchored
            })
            .dfa_size_limit(Some(MAX_DENSE_DFA_BYTES))
            .determinize_size_limit(Some(MAX_DENSE_DFA_BYTES));
        let dense_dfa = dense::Builder::new()
            .configure(config)
            .build_from_nfa(self.nfa())
            .ok()?;
        Some(dense_dfa.memory_usage())
    }

    fn nfa(&self) -> &NFA {
        self.dfa.get_nfa()
    }

    /// Returns whether the pattern matches anywhere in `text`.
    pub(super) fn is_match(&self, text: &str) -> bool {
        let mut cache = self.take_cache();
        let matched = self.search(&mut cache, text);
        self.return_cache(cache);
        matched
    }

    fn search(&self, cache: &mut Cache, text: &str) -> bool {
        let input = Input::new(text).anchored(if self.is_reverse {
            Anchored::Yes
        } else {
            Anchored::No
        });
        let chunk_bytes = (MAX_UNCHARGED_WORK / self.state_count().max(1)).max(1);
        let mut charged = (cache.clear_count(), cache.memory_usage());
        let start = if self.is_reverse {
            self.dfa.start_state_reverse(cache, &input)
        } else {
            self.dfa.start_state_forward(cache, &input)
        };
        let Ok(mut state) = start else {
            budget::abort_check()
        };
        for chunk_start in (0..text.len()).step_by(chunk_bytes) {
            let end = (chunk_start + chunk_bytes).min(text.len());
            for at in chunk_start..end {
                let at = if self.is_reverse {
                    text.len() - 1 - at
                } else {
                    at
                };
                let Some(byte) = text.as_bytes().get(at) else {
                    break;
                };
                state = self.next_state(cache, state, *byte);
                if state.is_tagged() {
                    if state.is_match() {
                        return true;
                    }
                    if state.is_dead() {
                        return false;
                    }
                }
            }
            charged = self.charge(cache, charged, end - chunk_start);
        }
        let Ok(state) = self.dfa.next_eoi_state(cache, state) else {
            budget::abort_check()
        };
        state.is_match()
    }

    fn next_state(&self, cache: &mut Cache, state: LazyStateID, byte: u8) -> LazyStateID {
        // The cache is configured never to give up.
        let Ok(next) = self.dfa.next_state(cache, state, byte) else {
            budget::abort_check()
        };
        next
    }

    /// Charges `bytes` of text, and the states that were created since the last charge.
    fn charge(
        &self,
        cache: &Cache,
        (clears, usage): (usize, usize),
        bytes: usize,
    ) -> (usize, usize) {
        let current = (cache.clear_count(), cache.memory_usage());
        let mut cost = bytes.div_ceil(TEXT_BYTES_PER_STEP);
        if current.0 != clears {
            cost +=
                bytes * (self.state_count() + current.1 / bytes.max(1)) / NEW_STATE_WORK_PER_STEP;
        } else if current.1 > usage {
            let grown = current.1 - usage;
            let min_state_bytes = self.dfa.byte_classes().alphabet_len() * size_of::<LazyStateID>();
            cost += (bytes.min(grown.div_ceil(min_state_bytes)) * self.state_count() + grown)
                .div_ceil(NEW_STATE_WORK_PER_STEP);
        }
        budget::charge_steps(cost as u64);
        current
    }

    fn take_cache(&self) -> Cache {
        if let Some(cache) = self.spare_cache.lock().take() {
            return cache;
        }
        budget::charge_steps((self.state_count() / NEW_STATE_WORK_PER_STEP) as u64);
        self.dfa.create_cache()
    }

    fn return_cache(&self, cache: Cache) {
        // The lock is released before a cache is dropped.
        let unused = self.spare_cache.lock().replace(cache);
        drop(unused);
    }
}

impl SpareCache {
    fn take(&mut self) -> Option<Cache> {
        let cache = self.cache.take()?;
        self.reservation.shrink(cache.memory_usage());
        Some(cache)
    }

    /// Stores a cache if the budget has room for both. Returns the cache that is not stored.
    fn replace(&mut self, cache: Cache) -> Option<Cache> {
        if self.reservation.try_grow(cache.memory_usage()).is_err() {
            return Some(cache);
        }
        let replaced = self.cache.replace(cache)?;
        self.reservation.shrink(replaced.memory_usage());
        Some(replaced)
    }
}

impl fmt::Debug for AutomatonMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AutomatonMatcher")
            .field("states", &self.state_count())
            .finish_non_exhaustive()
    }
}

/// Returns the pattern with the word characters of ECMA-262: ASCII letters, digits and `_`. An
/// automaton does not support Unicode word boundaries.
fn with_ascii_words(pattern: &Hir) -> Hir {
    match pattern.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0.clone()),
        HirKind::Class(class) => Hir::class(class.clone()),
        HirKind::Look(look) => Hir::look(match look {
            Look::WordUnicode => Look::WordAscii,
            Look::WordUnicodeNegate => Look::WordAsciiNegate,
            Look::WordStartUnicode => Look::WordStartAscii,
            Look::WordEndUnicode => Look::WordEndAscii,
            Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
            Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
            look => *look,
        }),
        HirKind::Repetition(repetition) => Hir::repetition(Repetition {
            sub: Box::new(with_ascii_words(&repetition.sub)),
            ..repetition.clone()
        }),
        HirKind::Capture(capture) => Hir::capture(Capture {
            sub: Box::new(with_ascii_words(&capture.sub)),
            ..capture.clone()
        }),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(with_ascii_words).collect()),
        HirKind::Alternation(parts) => {
            Hir::alternation(parts.iter().map(with_ascii_words).collect())
        }
    }
}
