//! The secrets of a plugin: where their values come from, which requests carry them, and their redaction.
//!
//! A grant names each [`SecretSpec`] with its [`SecretSource`]. When the plugin is loaded, [`FixedSecrets::fetch`] takes the values of
//! those sources that are asked once: environment variables, programs, the keyring. A [`SecretVault`] holds them, and reads
//! the files. Before each call, [`SecretVault::open`] looks whether a file has changed, and returns what this call works
//! with: [`CallSecrets`] redacts the values ([`SecretFilter`]), and adds them to requests ([`RequestCredential`]). A call keeps what it
//! opened, so that a value that is replaced meanwhile is still redacted in what the call says.
//!
//! A source of a caller ([`SecretSource::CallerFolder`]) has a value for each [`CallerIdentity`](toolbay_model::CallerIdentity). It is
//! read when that caller makes a call, and no other caller gets it. Where there is no value, no request is sent without
//! it: [`CallSecrets::add_to`] says why.
//!
//! Values are overwritten when they are dropped ([`SecretValue`]). What cannot be: the search automaton, whose states follow
//! from the values; the header or URL of a request, which belongs to the HTTP library from then on; and the
//! environment of this process.
//!
//! [`ProgramRunner`] says which process starts programs: a server that has confined itself has another one do it.
//!
//! This crate reads files and starts programs. It knows nothing of wasmtime, MCP or TOML.

mod callers;
mod credential;
mod file;
mod fixed;
mod opened;
mod program;
mod programs;
mod secret;
mod secrets;
mod source;
mod value;
mod vault;
mod watched;
mod withheld;

pub use self::credential::{CredentialRule, RequestCredential};
pub use self::file::secret_file;
pub use self::fixed::FixedSecrets;
pub use self::opened::CallSecrets;
pub use self::programs::{ProgramRunner, serve as serve_programs};
pub use self::secret::SecretSpec;
pub use self::secrets::SecretFilter;
pub use self::source::SecretSource;
pub use self::value::SecretValue;
pub use self::vault::SecretVault;
pub use self::withheld::WithheldCredential;
