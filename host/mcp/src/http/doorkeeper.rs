//! Changes who is let in while a server runs.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::app::HttpState;
use super::options::AuthSettings;

/// Keeps who is let in by the servers that were started with it.
#[derive(Default)]
pub struct AuthPolicy(Mutex<PolicyState>);

#[derive(Default)]
struct PolicyState {
    /// The newest change, which a server that is started later gets as well.
    doors: Option<AuthSettings>,
    serving: Vec<Weak<HttpState>>,
}

impl AuthPolicy {
    /// Replaces who is let in. Requests that arrive when this has returned are treated accordingly.
    pub fn update(&self, doors: AuthSettings) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.serving.retain(|app| app.upgrade().map(|app| app.apply_auth_settings(&doors)).is_some());
        kept.doors = Some(doors);
    }

    /// Keeps those of one more server.
    pub(super) fn register(&self, app: &Arc<HttpState>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(doors) = &kept.doors {
            app.apply_auth_settings(doors);
        }
        kept.serving.push(Arc::downgrade(app));
    }
}

/// Without tokens.
impl fmt::Debug for AuthPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doorkeeper").finish_non_exhaustive()
    }
}
