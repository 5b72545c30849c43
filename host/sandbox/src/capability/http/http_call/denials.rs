//! The denials of a call, for the operator and for the model.

use std::sync::Arc;

use parking_lot::Mutex;
use toolbay_model::text::clean_line;
use toolbay_model::{CallObserver, DenialKind};
use toolbay_outgoing::SendError;
use toolbay_policy::FileDenial;
use toolbay_secrets::SecretFilter;

/// Maximum number of reported denials in a call. A guest can repeat denied operations without end.
const MAX_REPORTED_DENIALS: u32 = 10;

/// Maximum length of a denial message, in bytes. It contains names that the guest chose.
const MAX_DENIAL_BYTES: usize = 500;

/// The denied operations of a call.
pub(crate) struct CallDenials {
    observer: Arc<dyn CallObserver>,
    /// The secrets to redact: the guest chooses names, so they may contain secrets.
    secrets: Arc<SecretFilter>,
    state: Mutex<DenialState>,
}

#[derive(Default)]
struct DenialState {
    reported: u32,
    /// The reported denials of files.
    files: Vec<String>,
    /// The first denial that may explain a failure, for the model.
    first: Option<String>,
}

impl CallDenials {
    pub(crate) fn new(observer: Arc<dyn CallObserver>, secrets: Arc<SecretFilter>) -> Self {
        Self {
            observer,
            secrets,
            state: Mutex::default(),
        }
    }

    /// Reports that an operation of this kind was denied. `what` is a sentence, and `remedy` is the
    /// configuration with which the operator would allow it.
    pub(crate) fn report_denial(&self, kind: DenialKind, what: &str, remedy: Option<&str>) {
        let what = self.redact(what);
        let mut state = self.state.lock();
        self.notify_observer(&mut state, kind, &what, remedy);
        state.first.get_or_insert(what);
    }

    /// Reports that access to a file or directory was denied, once for each path.
    pub(crate) fn report_file_denial(&self, denied: &FileDenial) {
        let what = self.redact(&denied.to_string());
        let mut state = self.state.lock();
        if !state.files.contains(&what) {
            if state.reported < MAX_REPORTED_DENIALS {
                state.files.push(what.clone());
            }
            self.notify_observer(
                &mut state,
                DenialKind::File,
                &what,
                denied.remedy().as_deref(),
            );
        }
        // Programs look for many optional files.
        if !matches!(denied, FileDenial::Unmounted { .. }) {
            state.first.get_or_insert(what);
        }
    }

    /// Formats a denial for operators and models.
    fn redact(&self, what: &str) -> String {
        clean_line(&self.secrets.scrub(what), MAX_DENIAL_BYTES)
    }

    fn notify_observer(
        &self,
        state: &mut DenialState,
        kind: DenialKind,
        what: &str,
        remedy: Option<&str>,
    ) {
        if state.reported < MAX_REPORTED_DENIALS {
            state.reported += 1;
            let clean = |remedy: &str| {
                let lines: Vec<String> = remedy
                    .lines()
                    .map(|part| clean_line(&self.secrets.scrub(part), MAX_DENIAL_BYTES))
                    .collect();
                lines.join("\n")
            };
            let remedy = remedy.map(clean);
            self.observer.denied(kind, what, remedy.as_deref());
        }
    }

    /// Reports why a request failed, if it was denied after the rules had allowed it. Logs any
    /// other error.
    pub(super) fn report_send_error(&self, error: &SendError) {
        let note = |remedy: Option<String>| {
            self.report_denial(DenialKind::Http, &error.to_string(), remedy.as_deref());
        };
        match error {
            SendError::AddressesRefused(refused) => note(refused.remedy()),
            SendError::Denied(denied) => note(denied.remedy()),
            SendError::HostHeader | SendError::ContentLength => note(None),
            error => {
                let details = error.details().unwrap_or_default();
                tracing::debug!(
                    details = clean_line(&self.secrets.scrub(&details), MAX_DENIAL_BYTES),
                    "HTTP request failed: {error}"
                );
            }
        }
    }

    /// Returns the first denial, as a sentence.
    pub(crate) fn first_denial(&self) -> Option<String> {
        self.state.lock().first.clone()
    }
}
