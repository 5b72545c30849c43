//! A component that calls can enter. Its stored code is opened when the first call needs it: a server with a thousand plugins
//! starts without reading the code of any.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use toolbay_model::{Digest, GuestServerProtocol};

use crate::cache::StoredCode;
use crate::compiled::UncachedCode;
use crate::component_summary::ComponentSummary;
use crate::prepared_component::PreparedComponent;

/// How long a component that could be neither opened nor compiled again is left alone.
const PAUSE: Duration = Duration::from_secs(5);

/// Compiles a component again whose stored code cannot be used any more.
pub trait Recompile: Send + Sync {
    /// The component with this digest, compiled again; or why it cannot be.
    fn remake(&self, digest: Digest) -> RecompileFuture;
}

/// What becomes of [`Recompile::remake`].
pub type RecompileFuture = Pin<Box<dyn Future<Output = Result<(PreparedComponent, UncachedCode), String>> + Send>>;

/// A component that calls can enter.
pub struct LazyComponent {
    facts: ComponentSummary,
    open: OnceLock<Arc<PreparedComponent>>,
    /// Where its code is, if it need not be open yet.
    stored: Option<UnopenedCode>,
    opening: Mutex<OpenState>,
}

/// What the first call opens.
#[derive(Clone)]
pub(crate) struct UnopenedCode {
    pub(crate) digest: Digest,
    pub(crate) code: StoredCode,
    /// How it is spoken to, if it is an MCP server of its own.
    pub(crate) manner: Option<GuestServerProtocol>,
    /// Instances with functions within it, if it has async functions.
    pub(crate) tasked: Option<u32>,
    pub(crate) remake: Arc<dyn Recompile>,
}

/// The state of opening it.
#[derive(Default)]
struct OpenState {
    /// The work on it, which goes on when the call that began it has ended.
    work: Option<JoinHandle<Result<PreparedComponent, String>>>,
    /// When it failed, and why.
    failed: Option<(Instant, String)>,
}

impl From<PreparedComponent> for LazyComponent {
    fn from(prepared: PreparedComponent) -> Self {
        let facts = ComponentSummary::of(&prepared);
        Self { facts, open: Arc::new(prepared).into(), stored: None, opening: Mutex::default() }
    }
}

impl LazyComponent {
    /// A component whose code is opened when a call needs it.
    pub(crate) fn stored(facts: ComponentSummary, stored: UnopenedCode) -> Self {
        Self { facts, open: OnceLock::new(), stored: Some(stored), opening: Mutex::default() }
    }

    /// Whether it is a single tool that has no name of its own.
    pub fn is_command(&self) -> bool {
        self.facts.is_command
    }

    /// Whether it would find folders that it is given: WASI 0.3 offers none.
    pub fn has_files(&self) -> bool {
        self.facts.has_files
    }

    /// The component, opened. Whoever comes first has `begin` open it, for all that wait. Dropping the future stops waiting and
    /// nothing else, so that a call whose time is over does not undo what the next one needs.
    ///
    /// # Errors
    ///
    /// Why it can be neither opened nor compiled again.
    pub(crate) async fn opened(
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
            && at.elapsed() < PAUSE
        {
            return Err(why.clone());
        }
        // There is one for whatever is not open.
        let Some(stored) = &self.stored else { return Err("the plugin has no code".to_owned()) };
        let work = opening.work.get_or_insert_with(|| begin(stored.clone()));
        let ended = work.await.unwrap_or_else(|error| Err(format!("opening its code failed: {error}")));
        opening.work = None;
        match ended {
            Ok(prepared) => {
                opening.failed = None;
                Ok(Arc::clone(self.open.get_or_init(|| Arc::new(prepared))))
            }
            Err(why) => {
                tracing::warn!("its compiled code cannot be used, and it cannot be compiled again: {why}");
                opening.failed = Some((Instant::now(), why.clone()));
                Err(why)
            }
        }
    }
}

impl fmt::Debug for LazyComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callable")
            .field("facts", &self.facts)
            .field("open", &self.open.get().is_some())
            .finish_non_exhaustive()
    }
}
