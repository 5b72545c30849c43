//! TLS configuration of a certificate and its key.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ServerConfig;

use crate::certificate_files::{CertificateContents, CertificateFiles};

/// Application protocol, negotiated by ALPN.
const ALPN_PROTOCOL: &[u8] = b"http/1.1";

/// Builds the server configuration for TLS 1.2 and 1.3 from the content of the files.
///
/// # Errors
///
/// Returns an error if a file is incomplete, or if the key does not match the certificate.
pub(crate) fn build_config(
    files: &CertificateFiles,
    contents: &CertificateContents,
) -> Result<Arc<ServerConfig>, String> {
    let certificate_error = |why: String| format!("{}: {why}", files.certificate.display());
    let key_error = |why: String| format!("{}: {why}", files.key.display());
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&contents.certificate).collect();
    let chain =
        chain.map_err(|error| certificate_error(format!("is not a valid PEM file: {error}")))?;
    if chain.is_empty() {
        let message = "contains no certificate; it must have one that begins with `-----BEGIN CERTIFICATE-----`";
        return Err(certificate_error(message.to_owned()));
    }
    // Drop the library's error because it may quote the file.
    let key = PrivateKeyDer::from_pem_slice(&contents.key).map_err(|_| {
        key_error("contains no private key; it must have one that begins with `-----BEGIN PRIVATE KEY-----`".to_owned())
    })?;
    let result = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_no_client_auth()
        .with_single_cert(chain, key);
    let mut config = result.map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => key_error(format!(
            "is not the key of the certificate in {}",
            files.certificate.display()
        )),
        rustls::Error::InvalidCertificate(why) => {
            certificate_error(format!("cannot be used: {why}"))
        }
        error => key_error(format!("cannot be used: {error}")),
    })?;
    config.alpn_protocols = vec![ALPN_PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}
