//! Changes who is let in while a server runs.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::app::App;
use super::options::Doors;

/// Keeps who is let in by the servers that were started with it.
#[derive(Default)]
pub struct Doorkeeper(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// The newest change, which a server that is started later gets as well.
    doors: Option<Doors>,
    serving: Vec<Weak<App>>,
}

impl Doorkeeper {
    /// Replaces who is let in. Requests that arrive when this has returned are treated accordingly.
    pub fn change(&self, doors: Doors) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.serving.retain(|app| app.upgrade().map(|app| app.change(&doors)).is_some());
        kept.doors = Some(doors);
    }

    /// Keeps those of one more server.
    pub(super) fn keep(&self, app: &Arc<App>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(doors) = &kept.doors {
            app.change(doors);
        }
        kept.serving.push(Arc::downgrade(app));
    }
}

/// Without tokens.
impl fmt::Debug for Doorkeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doorkeeper").finish_non_exhaustive()
    }
}
