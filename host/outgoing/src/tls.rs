//! TLS client connections.

use std::io;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use toolbay_policy::NormalizedHost;

use crate::error::SendError;

/// The ALPN name of HTTP/2.
const HTTP2_ALPN: &[u8] = b"h2";

/// Creates the client configuration for TLS 1.2 and 1.3.
pub(crate) fn client_config(roots: RootCertStore) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![HTTP2_ALPN.to_vec(), b"http/1.1".to_vec()];
    // A session ticket would reveal to a server that the requests of two plugins, or of two
    // callers, come from the same host.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// Performs the TLS handshake with `host`, whose certificate must be for this name or this address.
/// The returned boolean is true if HTTP/2 was negotiated.
pub(crate) async fn handshake(
    config: Arc<ClientConfig>,
    host: &NormalizedHost,
    stream: TcpStream,
) -> Result<(TlsStream<TcpStream>, bool), SendError> {
    let name = match host {
        NormalizedHost::Ip(address) => ServerName::from(*address),
        NormalizedHost::Name(name) => ServerName::try_from(name.clone())
            .map_err(|_| SendError::Tls(format!("no certificate can be for the name {name}")))?,
    };
    let stream = TlsConnector::from(config)
        .connect(name, stream)
        .await
        .map_err(|error| handshake_error(&error))?;
    let http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2_ALPN);
    Ok((stream, http2))
}

/// Converts the error of a failed handshake.
fn handshake_error(error: &io::Error) -> SendError {
    match tls_error(error) {
        Some(tls) => classify_tls(tls),
        None => SendError::Tls(error.to_string()),
    }
}

/// Returns the TLS error inside an I/O error.
pub(crate) fn tls_error(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

/// Classifies a TLS error.
pub(crate) fn classify_tls(error: &Error) -> SendError {
    let details = error.to_string();
    match error {
        Error::InvalidCertificate(certificate) => match certificate {
            CertificateError::UnknownIssuer => SendError::CertificateUntrusted(details),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                SendError::CertificateExpired(details)
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                SendError::CertificateNotYetValid(details)
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                SendError::CertificateNameMismatch(details)
            }
            _ => SendError::CertificateInvalid(details),
        },
        Error::NoCertificatesPresented => SendError::CertificateInvalid(details),
        Error::AlertReceived(alert) => SendError::TlsAlert {
            id: u8::from(*alert),
            name: format!("{alert:?}"),
        },
        _ => SendError::Tls(details),
    }
}
