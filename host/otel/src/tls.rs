//! TLS client for the connection to the receiver.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;
use tokio_rustls::TlsConnector;

/// Creates a TLS 1.2 and 1.3 client that also trusts the certificates in the files `extra`. Blocks,
/// because it reads the files.
///
/// # Errors
///
/// Returns the invalid certificate file and the reason.
pub(crate) fn connector(extra: &[PathBuf]) -> Result<TlsConnector, String> {
    let roots = toolbay_outgoing::roots(extra)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
