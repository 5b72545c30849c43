//! TLS of the server: a certificate and its key, in files that change while it runs.
//!
//! A [`ReloadingTls`] has a pair that belongs together. It reads the [`CertificateFiles`] again every few seconds; a new pair takes effect for
//! new connections, and one that is half written, does not belong together or cannot be read changes nothing. Each
//! connection takes what is there, without a lock.
//!
//! This crate knows neither HTTP nor the configuration.

mod files;
mod pair;
mod tls;

pub use self::files::CertificateFiles;
pub use self::tls::ReloadingTls;
