//! `wasi:logging`: the host's log for components that do not use Toolbay's contract.

use toolbay_model::LogLevel;
use wasmtime::component::{ComponentType, Lift, Linker};

use crate::store::state::StoreState;

/// Names under which components import the interface: as the draft, and without a version.
const LOGGING_INTERFACES: [&str; 2] = ["wasi:logging/logging@0.1.0-draft", "wasi:logging/logging"];

/// Severity of a message (`logging.level`).
#[derive(Clone, Copy, ComponentType, Lift)]
#[component(enum)]
#[expect(dead_code, reason = "guests choose the values")]
#[repr(u8)]
enum LoggingLevel {
    #[component(name = "trace")]
    Trace,
    #[component(name = "debug")]
    Debug,
    #[component(name = "info")]
    Info,
    #[component(name = "warn")]
    Warn,
    #[component(name = "error")]
    Error,
    #[component(name = "critical")]
    Critical,
}

pub(super) fn add(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    for name in LOGGING_INTERFACES {
        linker.instance(name)?.func_wrap(
            "log",
            |mut store, (level, context, message): (LoggingLevel, String, String)| {
                let text = if context.is_empty() {
                    message
                } else {
                    context + ": " + &message
                };
                Ok(store.data_mut().imports.log(level.into(), &text)?)
            },
        )?;
    }
    Ok(())
}

impl From<LoggingLevel> for LogLevel {
    fn from(level: LoggingLevel) -> Self {
        match level {
            // MCP has no level below debug.
            LoggingLevel::Trace | LoggingLevel::Debug => Self::Debug,
            LoggingLevel::Info => Self::Info,
            LoggingLevel::Warn => Self::Warning,
            LoggingLevel::Error => Self::Error,
            LoggingLevel::Critical => Self::Critical,
        }
    }
}
