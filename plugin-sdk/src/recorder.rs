//! Records the actions of a tool in a native test.

use crate::level::Level;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

/// A progress report, as passed to [`Context::progress`](crate::Context::progress).
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The work done so far.
    pub done: f64,
    /// The total work, if it is known.
    pub total: Option<f64>,
    /// The current step.
    pub message: Option<String>,
}

/// A replacement for the host, which records the calls of a tool.
#[derive(Debug, Default)]
pub(crate) struct TestRecorder {
    pub(crate) config: BTreeMap<String, String>,
    /// The answers to questions, by key.
    pub(crate) answers: BTreeMap<String, serde_json::Value>,
    /// The URIs of the resources that changed.
    pub(crate) updates: RefCell<Vec<String>>,
    pub(crate) cancelled: Cell<bool>,
    pub(crate) progress: RefCell<Vec<Progress>>,
    pub(crate) lines: Rc<RefCell<Vec<(Level, String)>>>,
}

type CapturedLines = RefCell<Vec<(Level, String)>>;

thread_local! {
    /// The lines of the newest recorder of each thread. The log macros need it because they have no
    /// context. The reference is weak: the context owns the lines, and dropping the context ends
    /// the recording.
    static CURRENT_LINES: RefCell<Weak<CapturedLines>> = const { RefCell::new(Weak::new()) };
}

impl TestRecorder {
    pub(crate) fn new() -> Self {
        let recorder = Self::default();
        CURRENT_LINES.set(Rc::downgrade(&recorder.lines));
        recorder
    }
}

/// Records a line. Returns false if the thread has no recorder.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn record_line(level: Level, message: &str) -> bool {
    let lines = CURRENT_LINES.with_borrow(Weak::upgrade);
    let Some(lines) = lines else {
        return false;
    };
    lines.borrow_mut().push((level, message.to_owned()));
    true
}
