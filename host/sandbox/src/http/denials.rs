//! What a call was denied, for the operator and for the model.

use std::sync::{Arc, Mutex, PoisonError};

use toolbay_model::text::line;
use toolbay_model::{Observer, UseKind};
use toolbay_outgoing::SendError;
use toolbay_secrets::Secrets;

/// Denials of one call that are reported; a guest can ask without end.
const REPORTED: u32 = 10;

/// Longest text of a denial, in bytes: it contains names that the guest chose.
const LONGEST: usize = 500;

/// What a call was denied.
pub(crate) struct Denials {
    observer: Arc<dyn Observer>,
    /// The guest chooses names, so they may contain what the log must not.
    secrets: Arc<Secrets>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    reported: u32,
    /// The first one, for the model.
    first: Option<String>,
}

impl Denials {
    pub(crate) fn new(observer: Arc<dyn Observer>, secrets: Arc<Secrets>) -> Self {
        Self { observer, secrets, state: Mutex::default() }
    }

    /// Reports that a use of this kind was denied. `what` is a sentence; `remedy` is what the operator would write to allow it.
    pub(crate) fn note(&self, kind: UseKind, what: &str, remedy: Option<&str>) {
        let what = line(&self.secrets.scrub(what), LONGEST);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.reported < REPORTED {
            state.reported += 1;
            let clean = |remedy: &str| {
                let lines: Vec<String> = remedy.lines().map(|part| line(&self.secrets.scrub(part), LONGEST)).collect();
                lines.join("\n")
            };
            let remedy = remedy.map(clean);
            self.observer.denied(kind, &what, remedy.as_deref());
        }
        state.first.get_or_insert(what);
    }

    /// Reports why a request has no response, if it was denied after the rules had allowed it.
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

    /// What was denied first, as a sentence.
    pub(crate) fn first(&self) -> Option<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).first.clone()
    }
}
