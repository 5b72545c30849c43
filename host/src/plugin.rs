//! Plugins: from a file in the folder to something that can be called.
//!
//! Data flows one way: [`watcher`] says that something changed, [`reloader`]
//! looks what, [`loader`] turns a file into a [`Plugin`], and the reloader
//! publishes a new snapshot of the catalog.

pub mod folder;
pub mod grant;
pub mod loader;
pub mod reloader;
pub mod watcher;

use std::fmt;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::catalog::CheckedDefinition;
use crate::sandbox::{Environment, Prepared};

/// A loaded plugin; nothing in it changes. It is freed when the catalog and
/// the last call that uses it let go.
#[derive(Debug)]
pub struct Plugin {
    /// The file stem.
    pub id: String,
    /// What runs.
    pub component: Arc<Component>,
    /// What a call is given.
    pub environment: Environment,
    /// What its tools' names begin with.
    pub prefix: Option<String>,
    /// A permit for each call that may run at once. A reloaded plugin has new
    /// ones: calls of the old version do not hold up the new.
    pub slots: Arc<Semaphore>,
}

/// A component that is compiled and has described itself. Plugins whose files
/// hold the same bytes share one.
#[derive(Debug)]
pub struct Component {
    /// Of the bytes that were compiled.
    pub digest: Digest,
    /// The compiled code.
    pub prepared: Arc<Prepared>,
    /// Its tools, by name.
    pub tools: Vec<Arc<CheckedDefinition>>,
}

impl Plugin {
    /// Puts together what was loaded.
    pub fn new(id: String, component: Arc<Component>, environment: Environment, prefix: Option<String>) -> Self {
        let slots = Arc::new(Semaphore::new(environment.limits.concurrency));
        Self { id, component, environment, prefix, slots }
    }

    /// Whether a call of either does the same.
    fn same_as(&self, other: &Self) -> bool {
        self.component.digest == other.component.digest
            && self.environment == other.environment
            && self.prefix == other.prefix
    }

    /// A plugin with these tools, which cannot be called.
    #[cfg(test)]
    pub(crate) fn for_test(id: &str, prefix: Option<&str>, tools: Vec<Arc<CheckedDefinition>>) -> Self {
        let component = Component { digest: Digest::of(b""), prepared: Arc::new(Prepared::for_test()), tools };
        Self::new(id.into(), Arc::new(component), Environment::default(), prefix.map(str::to_owned))
    }
}

/// SHA-256 of a component file.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
