//! Plugins: from a file in the folder to something that can be called.
//!
//! Data flows one way: [`watcher`] says that something changed, [`reloader`]
//! looks what, [`loader`] turns a file into a [`Plugin`], and the reloader
//! publishes a new snapshot of the catalog.

pub mod breaker;
pub mod folder;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub mod grant;
pub mod loader;
pub mod reloader;
pub mod usage;
pub mod watcher;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use tokio::sync::Semaphore;

use self::breaker::{Breaker, BreakerRules};
use self::grant::Shown;
use self::usage::RecentUsage;
use crate::catalog::CheckedDefinition;
use crate::rate::{Rate, RateLimit};
use crate::sandbox::{Environment, Prepared, Source};

/// A loaded plugin; nothing in it changes. It is freed when the catalog and
/// the last call that uses it let go.
#[derive(Debug)]
pub struct Plugin {
    /// The file stem.
    pub id: String,
    /// What runs.
    pub component: Arc<Component>,
    /// On which terms it serves.
    pub terms: Terms,
    /// Its tools as it offers them: what its component has, changed by its terms.
    pub tools: Vec<Arc<CheckedDefinition>>,
    /// A permit for each call that may run at once. A reloaded plugin has new
    /// ones: calls of the old version do not hold up the new.
    pub slots: Arc<Semaphore>,
    /// How often each tool may be called, where that is limited.
    pub rates: HashMap<String, Rate>,
    /// Whether it rests.
    pub breaker: Breaker,
    /// What its calls used lately.
    pub usage: RecentUsage,
}

/// On which terms a plugin serves: its grant, clamped by the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    /// What a call is given.
    pub environment: Environment,
    /// What a call of these tools is given instead, by the name within the plugin.
    pub tools: BTreeMap<String, Environment>,
    /// How these tools are shown instead, by the name within the plugin.
    pub shown: BTreeMap<String, Shown>,
    /// What its tools' names begin with.
    pub prefix: Option<String>,
    /// How often each of its tools may be called.
    pub rate_limit: Option<RateLimit>,
    /// When it rests.
    pub breaker: BreakerRules,
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
    /// What the operator should know: parts that are not offered, and why.
    pub remarks: Vec<String>,
}

impl Plugin {
    /// Puts together what was loaded.
    pub fn new(id: String, component: Arc<Component>, terms: Terms) -> Self {
        let slots = Arc::new(Semaphore::new(terms.environment.limits.concurrency));
        let tools = offered(&id, &component, &terms);
        let names = tools.iter().map(|tool| tool.name.clone());
        let rates = names.filter_map(|name| Some((name, Rate::new(terms.rate_limit?)?))).collect();
        Self { id, component, terms, tools, slots, rates, breaker: Breaker::default(), usage: RecentUsage::default() }
    }

    /// What a call of the tool is given; `name` is the one within the plugin.
    pub fn environment(&self, name: &str) -> &Environment {
        self.terms.tools.get(name).unwrap_or(&self.terms.environment)
    }

    /// Whether a call of either does the same.
    fn same_as(&self, other: &Self) -> bool {
        self.component.digest == other.component.digest && self.terms == other.terms
    }

    /// A plugin with these tools, which cannot be called.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn for_test(id: &str, prefix: Option<&str>, tools: Vec<Arc<CheckedDefinition>>) -> Self {
        let component =
            Component { digest: Digest::of(b""), prepared: Arc::new(Prepared::for_test()), tools, remarks: vec![] };
        let terms = Terms { prefix: prefix.map(str::to_owned), ..Terms::default() };
        Self::new(id.into(), Arc::new(component), terms)
    }
}

/// The tools of a component as a plugin on these terms offers them.
fn offered(id: &str, component: &Component, terms: &Terms) -> Vec<Arc<CheckedDefinition>> {
    let mut tools = Vec::new();
    for tool in &component.tools {
        // A command has no name of its own.
        let renamed = component.prepared.is_command().then(|| Arc::new(tool.renamed(tool_name(id))));
        let tool = renamed.as_ref().unwrap_or(tool);
        match terms.shown.get(&tool.name) {
            Some(shown) if shown.hidden => {}
            Some(shown) => tools.push(Arc::new(tool.shown_as(shown))),
            None => tools.push(Arc::clone(tool)),
        }
    }
    tools
}

/// A tool's name made of a file's: what may not be in one becomes `_`.
fn tool_name(id: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    id.chars().map(|c| if allowed(c) { c } else { '_' }).take(128).collect()
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

    /// The digest of a plugin file and of what is beside it that changes what it becomes.
    pub fn of_source(source: &Source) -> Self {
        let file = Self::of(&source.file);
        if source.wit.is_empty() {
            return file;
        }
        let wit = Self::of(source.wit.as_bytes());
        Self::of(&[file.0, wit.0].concat())
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
