//! Secrets of a plugin: the sources of their values, the requests that carry them, and their
//! redaction.
//!
//! A grant names each [`SecretSpec`] with its [`SecretSource`]. When the plugin is loaded,
//! [`FixedSecrets::fetch`] fetches the values of the sources that are read once: environment
//! variables, programs, the keyring. A [`SecretVault`] stores these values and reads the files.
//! Before each call, [`SecretVault::open`] checks whether a file has changed, and returns the
//! [`CallSecrets`] of this call. They redact the values ([`SecretFilter`]) and add them to requests
//! ([`RequestCredential`]). A call retains its secrets, so that a value that is replaced during the
//! call is still redacted in the call's output.
//!
//! A source of a caller ([`SecretSource::CallerFolder`]) has a value for each
//! [`CallerIdentity`](toolbay_model::CallerIdentity). It is read when that caller makes a call, and
//! is not available to other callers. A request that requires a missing value is not sent;
//! [`CallSecrets::add_to`] returns the reason.
//!
//! Values are overwritten when they are dropped ([`SecretValue`]). Exceptions are the search
//! automaton, whose states are derived from the values; the header or URL of a request, which the
//! HTTP library owns after sending; and the environment of this process.
//!
//! [`ProgramRunner`] selects the process that starts programs: a confined server delegates this to
//! another process.
//!
//! This crate reads files and starts programs. It does not depend on wasmtime, MCP or TOML.

mod call_secrets;
mod caller_cache;
mod credential;
mod file_reader;
mod fixed_secrets;
mod program;
mod program_runner;
mod secret_spec;
mod secrets;
mod source;
mod value;
mod vault;
mod watched_file;
mod withheld_credential;

pub use self::call_secrets::CallSecrets;
pub use self::credential::{CredentialRule, RequestCredential};
pub use self::file_reader::read_secret_file;
pub use self::fixed_secrets::FixedSecrets;
pub use self::program_runner::{ProgramRunner, serve as serve_programs};
pub use self::secret_spec::SecretSpec;
pub use self::secrets::SecretFilter;
pub use self::source::SecretSource;
pub use self::value::SecretValue;
pub use self::vault::SecretVault;
pub use self::withheld_credential::WithheldCredential;
