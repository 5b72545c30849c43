//! Changes the access settings of running servers: the accepted hosts, origins and tokens.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::app_state::HttpState;
use super::options::AccessSettings;

/// Access settings that are shared by the servers that were started with this value.
#[derive(Default)]
pub struct SharedAccess(Mutex<PolicyState>);

#[derive(Default)]
struct PolicyState {
    /// The newest settings, which also apply to servers that start later.
    settings: Option<AccessSettings>,
    serving: Vec<Weak<HttpState>>,
}

impl SharedAccess {
    /// Replaces the settings. They apply to all requests that arrive after this function has
    /// returned.
    pub fn update(&self, settings: AccessSettings) {
        let mut kept = self.0.lock();
        kept.serving.retain(|app| {
            app.upgrade()
                .map(|app| app.apply_access_settings(&settings))
                .is_some()
        });
        kept.settings = Some(settings);
    }

    /// Ends all sessions of a caller that no longer exists. A later caller with the same name does
    /// not have them.
    pub fn end_sessions_of(&self, caller: &str) {
        for app in self.0.lock().serving.iter().filter_map(Weak::upgrade) {
            app.sessions.remove_caller(caller);
        }
    }

    /// Registers a server for changes, and applies the newest settings to it.
    pub(super) fn register(&self, app: &Arc<HttpState>) {
        let mut kept = self.0.lock();
        if let Some(doors) = &kept.settings {
            app.apply_access_settings(doors);
        }
        kept.serving.push(Arc::downgrade(app));
    }
}

/// Omits the tokens.
impl fmt::Debug for SharedAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthPolicy").finish_non_exhaustive()
    }
}
