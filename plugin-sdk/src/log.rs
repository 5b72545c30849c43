//! Log messages. They go to the host's log, and to the client if it requested them.
//!
//! The macros have the syntax of [`format!`]. In a native test, the lines go to the
//! [`Context::test`](crate::Context::test) of the thread, or to standard error if there is no such
//! context.
//!
//! ```
//! use toolbay_plugin::log::{info, warning};
//!
//! let left = 3;
//! info!("fetching");
//! warning!("{left} attempts left");
//! ```

pub use crate::level::Level;

/// Logs a message. The macros are shorter.
pub fn log(level: Level, message: &str) {
    sink::log(level, message);
}

/// Defines one macro for each level. `$d` is a dollar sign, which a macro cannot write literally in
/// a macro that it defines.
macro_rules! levels {
    ($d:tt $($hidden:ident $name:ident $level:ident $what:literal),+ $(,)?) => {$(
        #[doc(hidden)]
        #[macro_export]
        macro_rules! $hidden {
            ($d($d message:tt)+) => {
                $crate::log::log($crate::log::Level::$level, &::std::format!($d($d message)+))
            };
        }

        #[doc = $what]
        #[doc(inline)]
        pub use $hidden as $name;
    )+};
}

levels! { $
    __log_debug debug Debug "Writes a line that helps to find a mistake.",
    __log_info info Info "Writes a line about what happens.",
    __log_notice notice Notice "Writes a line worth knowing.",
    __log_warning warning Warning "Writes a line about something odd.",
    __log_error error Error "Writes a line about something that failed.",
    __log_critical critical Critical "Writes a line about a part that others need.",
    __log_alert alert Alert "Writes a line that asks somebody to act at once.",
    __log_emergency emergency Emergency "Writes a line that says that nothing works.",
}

#[cfg(target_family = "wasm")]
mod sink {
    use super::Level;
    use crate::bindings::toolbay::plugin::host;

    pub(super) fn log(level: Level, message: &str) {
        let level = match level {
            Level::Debug => host::Level::Debug,
            Level::Info => host::Level::Info,
            Level::Notice => host::Level::Notice,
            Level::Warning => host::Level::Warning,
            Level::Error => host::Level::Error,
            Level::Critical => host::Level::Critical,
            Level::Alert => host::Level::Alert,
            Level::Emergency => host::Level::Emergency,
        };
        host::log(level, message);
    }
}

#[cfg(not(target_family = "wasm"))]
mod sink {
    use super::Level;
    use crate::recorder;

    #[expect(
        clippy::print_stderr,
        reason = "native code with no recorder has nowhere else to say it"
    )]
    pub(super) fn log(level: Level, message: &str) {
        if !recorder::record_line(level, message) {
            eprintln!("{level:?}: {message}");
        }
    }
}
