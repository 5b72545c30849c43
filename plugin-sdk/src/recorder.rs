//! Records what a tool does in a native test.

use crate::level::Level;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

/// One report of progress, as passed to [`Context::progress`](crate::Context::progress).
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The work done so far.
    pub done: f64,
    /// The total work, if it is known.
    pub total: Option<f64>,
    /// The current step.
    pub message: Option<String>,
}

/// Replaces the host.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) config: BTreeMap<String, String>,
    /// The answers to questions, by key.
    pub(crate) answers: BTreeMap<String, serde_json::Value>,
    /// The resources that changed.
    pub(crate) updates: RefCell<Vec<String>>,
    pub(crate) cancelled: Cell<bool>,
    pub(crate) progress: RefCell<Vec<Progress>>,
    pub(crate) lines: Rc<RefCell<Vec<(Level, String)>>>,
}

type Lines = RefCell<Vec<(Level, String)>>;

thread_local! {
    /// The newest recorder of each thread, for the log macros, which have no context. Weak: the context owns the lines,
    /// and dropping it ends the recording.
    static LINES: RefCell<Weak<Lines>> = const { RefCell::new(Weak::new()) };
}

impl Recorder {
    pub(crate) fn new() -> Self {
        let recorder = Self::default();
        LINES.set(Rc::downgrade(&recorder.lines));
        recorder
    }
}

/// Records a line if there is a recorder.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn log(level: Level, message: &str) -> bool {
    let lines = LINES.with_borrow(Weak::upgrade);
    let Some(lines) = lines else {
        return false;
    };
    lines.borrow_mut().push((level, message.to_owned()));
    true
}
