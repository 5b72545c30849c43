//! A component that can be called. Its stored code is opened when the first call needs it, so that
//! a server with a thousand plugins starts without reading the code of any.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use toolbay_model::{Digest, GuestServerProtocol};

use crate::cache::StoredCode;
use crate::prepare::compiled::UncachedCode;
use crate::prepare::component_summary::ComponentSummary;
use crate::prepare::prepared_component::PreparedComponent;

/// Backoff after a component could be neither opened nor compiled again.
const RETRY_BACKOFF: Duration = Duration::from_secs(5);

/// Recompiles a component whose stored code cannot be used any more.
pub trait Recompile: Send + Sync {
    /// Recompiles the component with this digest. The future fails with the reason if that is not
    /// possible.
    fn recompile(&self, digest: Digest) -> RecompileFuture;
}

/// What becomes of [`Recompile::recompile`].
pub type RecompileFuture =
    Pin<Box<dyn Future<Output = Result<(PreparedComponent, UncachedCode), String>> + Send>>;

/// A component that can be called.
pub struct LazyComponent {
    facts: ComponentSummary,
    open: OnceLock<Arc<PreparedComponent>>,
    /// The location of its code, if the code is opened on first use.
    stored: Option<UnopenedCode>,
    opening: Mutex<OpenState>,
}

/// Stored code that the first call opens.
#[derive(Clone)]
pub(crate) struct UnopenedCode {
    pub(crate) digest: Digest,
    pub(crate) code: StoredCode,
    /// The MCP endpoint of a component that is an MCP server.
    pub(crate) manner: Option<GuestServerProtocol>,
    /// The number of nested instances with functions, if the component has async functions.
    pub(crate) tasked: Option<u32>,
    pub(crate) remake: Arc<dyn Recompile>,
}

/// The state of opening the code.
#[derive(Default)]
struct OpenState {
    /// The running task. It continues after the call that started it has ended.
    work: Option<JoinHandle<Result<PreparedComponent, String>>>,
    /// The time and the reason of the last failure.
    failed: Option<(Instant, String)>,
}

impl From<PreparedComponent> for LazyComponent {
    fn from(prepared: PreparedComponent) -> Self {
        let facts = ComponentSummary::of(&prepared);
        Self {
            facts,
            open: Arc::new(prepared).into(),
            stored: None,
            opening: Mutex::default(),
        }
    }
}

impl LazyComponent {
    /// Creates a component whose code is opened when a call needs it.
    pub(crate) fn from_stored(facts: ComponentSummary, stored: UnopenedCode) -> Self {
        Self {
            facts,
            open: OnceLock::new(),
            stored: Some(stored),
            opening: Mutex::default(),
        }
    }

    /// Returns whether it is a single tool without a name.
    pub fn is_command(&self) -> bool {
        self.facts.is_command
    }

    /// Returns whether it can use mounted folders. WASI 0.3 does not provide them.
    pub fn has_files(&self) -> bool {
        self.facts.has_files
    }

    /// Returns the opened component. The first caller starts the work with `begin`; all callers
    /// wait for it. Dropping the future only stops waiting: a call that times out does not cancel
    /// work that the next call needs.
    ///
    /// # Errors
    ///
    /// The reason why the component can be neither opened nor compiled again.
    pub(crate) async fn get_or_open(
        &self,
        begin: impl FnOnce(UnopenedCode) -> JoinHandle<Result<PreparedComponent, String>>,
    ) -> Result<Arc<PreparedComponent>, String> {
        if let Some(prepared) = self.open.get() {
            return Ok(Arc::clone(prepared));
        }
        let mut opening = self.opening.lock().await;
        if let Some(prepared) = self.open.get() {
            return Ok(Arc::clone(prepared));
        }
        if let Some((at, why)) = &opening.failed
            && at.elapsed() < RETRY_BACKOFF
        {
            return Err(why.clone());
        }
        // A component that is not open has stored code.
        let Some(stored) = &self.stored else {
            return Err("the plugin has no code".to_owned());
        };
        let work = opening.work.get_or_insert_with(|| begin(stored.clone()));
        let ended = work
            .await
            .unwrap_or_else(|error| Err(format!("opening its code failed: {error}")));
        opening.work = None;
        match ended {
            Ok(prepared) => {
                opening.failed = None;
                Ok(Arc::clone(self.open.get_or_init(|| Arc::new(prepared))))
            }
            Err(why) => {
                tracing::warn!(
                    "its compiled code cannot be used, and it cannot be compiled again: {why}"
                );
                opening.failed = Some((Instant::now(), why.clone()));
                Err(why)
            }
        }
    }
}

impl fmt::Debug for LazyComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyComponent")
            .field("facts", &self.facts)
            .field("open", &self.open.get().is_some())
            .finish_non_exhaustive()
    }
}
