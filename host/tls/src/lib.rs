//! TLS for the server, with a certificate and key whose files can change at run time.
//!
//! A [`ReloadingTls`] holds a matching pair of certificate and key. It reads the
//! [`CertificateFiles`] every few seconds and uses a new pair for new connections. A pair that is
//! partially written, does not match or cannot be read changes nothing. Connections use the current
//! pair without a lock.
//!
//! [`read_regular_file`] reads other files that change, such as the keys of token issuers.
//!
//! This crate does not depend on HTTP or the configuration.

mod certificate_files;
mod regular_file;
mod reloading_tls;
mod server_config;

pub use self::certificate_files::CertificateFiles;
pub use self::regular_file::read_regular_file;
pub use self::reloading_tls::ReloadingTls;
