//! What a tool did in a native test.

use crate::level::Level;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

/// One report of progress, as [`Context::progress`](crate::Context::progress)
/// took it.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// How far the call is.
    pub done: f64,
    /// How far it will be in the end, if that is known.
    pub total: Option<f64>,
    /// What it does at the moment.
    pub message: Option<String>,
}

/// Stands in for the host.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) config: BTreeMap<String, String>,
    pub(crate) cancelled: Cell<bool>,
    pub(crate) progress: RefCell<Vec<Progress>>,
    pub(crate) lines: Rc<RefCell<Vec<(Level, String)>>>,
}

type Lines = RefCell<Vec<(Level, String)>>;

thread_local! {
    /// Where the log macros, which know no context, find the newest recorder of
    /// their thread. Weak: the context owns the lines, and ends the recording
    /// when it is dropped.
    static LINES: RefCell<Weak<Lines>> = const { RefCell::new(Weak::new()) };
}

impl Recorder {
    pub(crate) fn new() -> Self {
        let recorder = Self::default();
        LINES.set(Rc::downgrade(&recorder.lines));
        recorder
    }
}

/// Keeps a line if there is a recorder to keep it.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn log(level: Level, message: &str) -> bool {
    let lines = LINES.with_borrow(Weak::upgrade);
    let Some(lines) = lines else {
        return false;
    };
    lines.borrow_mut().push((level, message.to_owned()));
    true
}
