//! The denials of a call, for the operator and for the model.

use std::sync::{Arc, Mutex, PoisonError};

use toolbay_model::text::line;
use toolbay_model::{Observer, UseKind};
use toolbay_outgoing::SendError;
use toolbay_policy::FileDenied;
use toolbay_secrets::Secrets;

/// Maximum number of reported denials in a call. A guest can repeat denied operations without end.
const REPORTED: u32 = 10;

/// Maximum length of a denial message, in bytes. It contains names that the guest chose.
const LONGEST: usize = 500;

/// The denied operations of a call.
pub(crate) struct Denials {
    observer: Arc<dyn Observer>,
    /// The secrets to redact: the guest chooses names, so they may contain secrets.
    secrets: Arc<Secrets>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    reported: u32,
    /// The reported denials of files.
    files: Vec<String>,
    /// The first denial that may explain a failure, for the model.
    first: Option<String>,
}

impl Denials {
    pub(crate) fn new(observer: Arc<dyn Observer>, secrets: Arc<Secrets>) -> Self {
        Self { observer, secrets, state: Mutex::default() }
    }

    /// Reports that an operation of this kind was denied. `what` is a sentence, and `remedy` is the
    /// configuration with which the operator would allow it.
    pub(crate) fn note(&self, kind: UseKind, what: &str, remedy: Option<&str>) {
        let what = self.shown(what);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.report(&mut state, kind, &what, remedy);
        state.first.get_or_insert(what);
    }

    /// Reports that access to a file or directory was denied, once for each path.
    pub(crate) fn file(&self, denied: &FileDenied) {
        let what = self.shown(&denied.to_string());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.files.contains(&what) {
            if state.reported < REPORTED {
                state.files.push(what.clone());
            }
            self.report(&mut state, UseKind::File, &what, denied.remedy().as_deref());
        }
        // Programs look for many optional files.
        if !matches!(denied, FileDenied::Unmounted { .. }) {
            state.first.get_or_insert(what);
        }
    }

    /// Formats a denial for operators and models.
    fn shown(&self, what: &str) -> String {
        line(&self.secrets.scrub(what), LONGEST)
    }

    fn report(&self, state: &mut State, kind: UseKind, what: &str, remedy: Option<&str>) {
        if state.reported < REPORTED {
            state.reported += 1;
            let clean = |remedy: &str| {
                let lines: Vec<String> = remedy.lines().map(|part| line(&self.secrets.scrub(part), LONGEST)).collect();
                lines.join("\n")
            };
            let remedy = remedy.map(clean);
            self.observer.denied(kind, what, remedy.as_deref());
        }
    }

    /// Reports why a request failed, if it was denied after the rules had allowed it. Logs any
    /// other error.
    pub(super) fn failed(&self, error: &SendError) {
        let note = |remedy: Option<String>| self.note(UseKind::Http, &error.to_string(), remedy.as_deref());
        match error {
            SendError::Addresses(refused) => note(refused.remedy()),
            SendError::Denied(denied) => note(denied.remedy()),
            SendError::HostHeader | SendError::ContentLength => note(None),
            error => {
                let details = error.details().unwrap_or_default();
                tracing::debug!(details = line(&self.secrets.scrub(&details), LONGEST), "HTTP request failed: {error}");
            }
        }
    }

    /// Returns the first denial, as a sentence.
    pub(crate) fn first(&self) -> Option<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).first.clone()
    }
}
