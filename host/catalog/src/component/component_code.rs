//! Code of a component. Stored code is opened when the first call needs it, so that a server with a
//! thousand plugins starts without reading the code of any of them.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout_at;
use toolbay_model::{CallError, Limit};
use toolbay_sandbox::{ComponentSummary, PreparedComponent, UnopenedCode};

use crate::component::code_recovery::CodeRecovery;

/// Backoff after a component could be neither opened nor compiled again.
const RETRY_BACKOFF: Duration = Duration::from_secs(5);

/// Message for the client if a plugin's stored code cannot be used and the plugin cannot be
/// compiled again.
const CODE_LOST_MESSAGE: &str = "The plugin cannot be called now: its compiled code was lost, and it could not be compiled again. Call it again in a few seconds.";

/// Code of a component.
pub struct ComponentCode {
    summary: ComponentSummary,
    prepared: OnceLock<Arc<PreparedComponent>>,
    /// The stored code, if it is opened on first use.
    stored: Option<StoredOrigin>,
    open_state: Mutex<OpenState>,
}

/// Stored code that the first call opens, and how to get it again if it is lost.
pub(crate) struct StoredOrigin {
    pub(crate) code: UnopenedCode,
    /// The ID of the plugin whose file contains the component.
    pub(crate) id: String,
    pub(crate) recovery: Arc<CodeRecovery>,
}

/// The state of opening the code.
#[derive(Default)]
struct OpenState {
    /// The running task. It continues after the call that started it has ended.
    task: Option<JoinHandle<Result<PreparedComponent, String>>>,
    /// The time and the reason of the last failure.
    last_failure: Option<(Instant, String)>,
}

impl From<PreparedComponent> for ComponentCode {
    fn from(prepared: PreparedComponent) -> Self {
        Self {
            summary: ComponentSummary::of(&prepared),
            prepared: Arc::new(prepared).into(),
            stored: None,
            open_state: Mutex::default(),
        }
    }
}

impl ComponentCode {
    /// Creates code that is opened when a call needs it.
    pub(crate) fn from_stored(summary: ComponentSummary, stored: StoredOrigin) -> Self {
        Self {
            summary,
            prepared: OnceLock::new(),
            stored: Some(stored),
            open_state: Mutex::default(),
        }
    }

    /// Returns whether the component is a single tool without a name.
    pub fn is_command(&self) -> bool {
        self.summary.is_command
    }

    /// Returns whether the component can use mounted folders. WASI 0.3 does not provide them.
    pub fn has_files(&self) -> bool {
        self.summary.has_files
    }

    /// Returns the component for a call that must end at `deadline`, which is `timeout` after its
    /// start. The first call opens the code.
    ///
    /// # Errors
    ///
    /// The code can be neither opened nor compiled again, or not before the deadline.
    pub async fn open(
        &self,
        deadline: Instant,
        timeout: Duration,
    ) -> Result<Arc<PreparedComponent>, CallError> {
        match timeout_at(deadline.into(), self.get_or_open()).await {
            Ok(Ok(prepared)) => Ok(prepared),
            // The reason is in the log.
            Ok(Err(_)) => Err(CallError::Failed(CODE_LOST_MESSAGE.to_owned())),
            Err(_elapsed) => Err(CallError::limit(Limit::Deadline(timeout))),
        }
    }

    /// Returns the opened component. The first caller starts the work; all callers wait for it.
    /// Dropping the future only stops waiting: a call that times out does not cancel work that the
    /// next call needs.
    ///
    /// # Errors
    ///
    /// The reason why the component can be neither opened nor compiled again.
    async fn get_or_open(&self) -> Result<Arc<PreparedComponent>, String> {
        if let Some(prepared) = self.prepared.get() {
            return Ok(Arc::clone(prepared));
        }
        let mut open_state = self.open_state.lock().await;
        if let Some(prepared) = self.prepared.get() {
            return Ok(Arc::clone(prepared));
        }
        if let Some((at, why)) = &open_state.last_failure
            && at.elapsed() < RETRY_BACKOFF
        {
            return Err(why.clone());
        }
        // A component that is not open has stored code.
        let Some(stored) = &self.stored else {
            return Err("the plugin has no code".to_owned());
        };
        let task = open_state
            .task
            .get_or_insert_with(|| stored.start_opening());
        let result = task
            .await
            .unwrap_or_else(|error| Err(format!("opening its code failed: {error}")));
        open_state.task = None;
        match result {
            Ok(prepared) => {
                open_state.last_failure = None;
                Ok(Arc::clone(self.prepared.get_or_init(|| Arc::new(prepared))))
            }
            Err(why) => {
                tracing::warn!(
                    "its compiled code cannot be used, and it cannot be compiled again: {why}"
                );
                open_state.last_failure = Some((Instant::now(), why.clone()));
                Err(why)
            }
        }
    }
}

impl StoredOrigin {
    /// Starts to open the code, on the guests' runtime.
    fn start_opening(&self) -> JoinHandle<Result<PreparedComponent, String>> {
        let code = self.code.clone();
        let id = self.id.clone();
        let recovery = Arc::clone(&self.recovery);
        let sandbox = self.recovery.environment.sandbox.clone();
        sandbox.spawn(async move { recovery.open(&id, code).await })
    }
}

impl fmt::Debug for ComponentCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ComponentCode")
            .field("summary", &self.summary)
            .field("open", &self.prepared.get().is_some())
            .finish_non_exhaustive()
    }
}
