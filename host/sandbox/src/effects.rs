//! What a call does before it asks its caller something: it must not happen again when the call begins anew.
//!
//! The first run records each such operation with its result; the next one gets these results without doing anything. A
//! plugin that does something else than before is told so, because nobody could say what has happened then.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolbay_model::{Effect, Journal, Limits};

use crate::account::{Account, Held};

/// Longest description of an operation, in bytes. Two that differ only beyond it count as the same.
const WHAT: usize = 512;

/// What a call does before it asks. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Effects(Option<Arc<Mutex<Recorded>>>);

#[derive(Debug)]
struct Recorded {
    /// What earlier runs did. Shared with whoever keeps it on their account.
    past: Arc<Journal>,
    /// How much of that was done again.
    repeated: usize,
    /// What this run did beyond it; `None` while its result is not known.
    done: Vec<(String, Option<Vec<u8>>)>,
    /// Bytes that the results may still take.
    room: usize,
    account: Account,
    held: Vec<Held>,
    /// Why the call can no longer ask.
    barred: Option<Barred>,
}

/// Why a call can no longer ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barred {
    /// What it did has larger results than the limit allows to keep.
    Room,
    /// It changed a file in a mounted folder.
    File,
    /// It made a TCP connection.
    Connection,
}

/// An operation that begins.
pub(crate) enum Begun {
    /// It was done before, with this result.
    Before(Vec<u8>),
    /// It is done now.
    Now(Number),
}

/// The number of an operation whose result is not known yet; `None` if nobody wants to know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number(Option<usize>);

impl Number {
    /// That of an operation that changes nothing.
    pub(crate) const NONE: Self = Self(None);

    /// Whether the result is wanted.
    pub(crate) fn is_wanted(self) -> bool {
        self.0.is_some()
    }
}

/// The call did something else than before it asked. As the error of a host call, it ends the call.
#[derive(Clone, Debug)]
pub(crate) struct Diverged {
    before: String,
    now: String,
}

impl Effects {
    /// Those of a call that goes on after those in `past`. A plugin that cannot ask has none.
    pub(crate) fn new(asks: bool, past: &Arc<Journal>, limits: &Limits, account: Account) -> Self {
        Self(asks.then(|| {
            let used: usize = past.effects.iter().map(Effect::size).sum();
            let room = usize::try_from(limits.journal.as_u64()).unwrap_or(usize::MAX).saturating_sub(used);
            let (past, done, held) = (Arc::clone(past), Vec::new(), Vec::new());
            Arc::new(Mutex::new(Recorded { past, repeated: 0, done, room, account, held, barred: None }))
        }))
    }

    /// Begins an operation, which `what` describes: the same must be done in each run.
    ///
    /// # Errors
    ///
    /// An earlier run did something else here.
    pub(crate) fn begin(&self, what: impl FnOnce() -> String) -> Result<Begun, Diverged> {
        let Some(mut recorded) = self.recorded() else { return Ok(Begun::Now(Number::NONE)) };
        let mut what = what();
        what.truncate(what.floor_char_boundary(WHAT));
        if let Some(before) = recorded.past.effects.get(recorded.repeated) {
            if before.what != what {
                return Err(Diverged { before: before.what.clone(), now: what });
            }
            let result = before.result.clone();
            recorded.repeated += 1;
            return Ok(Begun::Before(result));
        }
        if recorded.barred.is_some() || !recorded.take(what.len()) {
            return Ok(Begun::Now(Number::NONE));
        }
        recorded.done.push((what, None));
        Ok(Begun::Now(Number(Some(recorded.done.len() - 1))))
    }

    /// The operation has this result. What does not fit bars the call from asking.
    pub(crate) fn end(&self, number: Number, result: Vec<u8>) {
        let (Some(mut recorded), Some(number)) = (self.recorded(), number.0) else { return };
        if recorded.take(result.len())
            && let Some((_, slot)) = recorded.done.get_mut(number)
        {
            *slot = Some(result);
        }
    }

    /// The call can no longer ask.
    pub(crate) fn bar(&self, why: Barred) {
        if let Some(mut recorded) = self.recorded() {
            recorded.barred.get_or_insert(why);
        }
    }

    /// Bytes that results may still take; 0 if nobody wants to know any.
    pub(crate) fn room(&self) -> usize {
        self.recorded().map_or(0, |recorded| if recorded.barred.is_none() { recorded.room } else { 0 })
    }

    /// All that the call did, to be remembered until it begins anew.
    ///
    /// # Errors
    ///
    /// Why that cannot be remembered, in words for the author.
    pub(crate) fn all(&self) -> Result<Vec<Effect>, String> {
        let Some(recorded) = self.recorded() else { return Ok(Vec::new()) };
        if let Some(barred) = recorded.barred {
            return Err(barred.words().to_owned());
        }
        let mut all = recorded.past.effects.clone();
        for (what, result) in &recorded.done {
            let Some(result) = result.clone() else {
                return Err(format!(
                    "{what} was begun before this question, and its response has not been read to the end: read it first"
                ));
            };
            all.push(Effect { what: what.clone(), result });
        }
        Ok(all)
    }

    // Held for a few instructions and never across an await.
    fn recorded(&self) -> Option<MutexGuard<'_, Recorded>> {
        Some(self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Recorded {
    /// Takes room for so many bytes, also of the call's memory. Bars the call from asking if there is none.
    fn take(&mut self, bytes: usize) -> bool {
        let held = if bytes <= self.room { self.account.hold(bytes).ok() } else { None };
        let Some(held) = held else {
            self.barred.get_or_insert(Barred::Room);
            return false;
        };
        self.room -= bytes;
        self.held.push(held);
        true
    }
}

impl Barred {
    /// Words for the author.
    const fn words(self) -> &'static str {
        match self {
            Self::Room => {
                "what the call did before this question has results that are too large to keep (limits.journal): ask \
                 earlier"
            }
            Self::File => {
                "the call changed files before this question: ask first, because the call begins anew afterwards"
            }
            Self::Connection => {
                "the call made a TCP connection before this question: ask first, because the call begins anew afterwards"
            }
        }
    }
}

impl fmt::Display for Diverged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before, now } = self;
        write!(
            f,
            "After its question was answered, the tool did something else than before: {now} instead of {before}. Until it \
             asks, a tool must do the same each time."
        )
    }
}

impl std::error::Error for Diverged {}

#[cfg(test)]
mod tests {
    use bytesize::ByteSize;

    use super::*;

    fn effects(past: &[Effect]) -> Effects {
        let limits = Limits { journal: ByteSize::b(100), ..Limits::DEFAULT };
        let past = Journal { effects: past.to_vec(), ..Journal::default() };
        Effects::new(true, &past.into(), &limits, Account::new(ByteSize::kib(1)))
    }

    fn done(effects: &Effects, what: &str, result: &[u8]) -> Option<Vec<u8>> {
        match effects.begin(|| what.to_owned()).unwrap() {
            Begun::Before(result) => Some(result),
            Begun::Now(number) => {
                effects.end(number, result.to_vec());
                None
            }
        }
    }

    #[test]
    fn what_was_done_is_not_done_again() {
        let first = effects(&[]);
        assert_eq!(done(&first, "a", b"1"), None);
        assert_eq!(done(&first, "b", b"2"), None);
        let second = effects(&first.all().unwrap());
        assert_eq!(done(&second, "a", b"x").as_deref(), Some(&b"1"[..]));
        assert_eq!(done(&second, "b", b"x").as_deref(), Some(&b"2"[..]));
        assert_eq!(done(&second, "c", b"3"), None);
        assert_eq!(second.all().unwrap().len(), 3);
    }

    #[test]
    fn something_else_than_before_is_told() {
        let first = effects(&[]);
        done(&first, "a", b"1");
        let second = effects(&first.all().unwrap());
        let diverged = second.begin(|| "b".to_owned()).err().unwrap();
        assert!(diverged.to_string().contains("b instead of a"), "{diverged}");
    }

    #[test]
    fn what_is_unfinished_or_too_large_bars_from_asking() {
        let effects = |()| self::effects(&[]);
        let unfinished = effects(());
        unfinished.begin(|| "POST /".to_owned()).unwrap();
        assert!(unfinished.all().unwrap_err().contains("POST / was begun"));
        let large = effects(());
        done(&large, "a", &[0; 100]);
        assert!(large.all().unwrap_err().contains("limits.journal"));
        assert_eq!(large.room(), 0);
        let file = effects(());
        file.bar(Barred::File);
        file.bar(Barred::Connection);
        assert!(file.all().unwrap_err().contains("changed files"));
    }

    #[test]
    fn a_plugin_that_cannot_ask_keeps_nothing() {
        let effects = Effects::new(false, &Arc::default(), &Limits::DEFAULT, Account::new(ByteSize::b(0)));
        assert_eq!(done(&effects, "a", &[0; 1000]), None);
        assert_eq!((effects.room(), effects.all().unwrap().len()), (0, 0));
    }
}
