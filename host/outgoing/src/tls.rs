//! TLS with a server.

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

/// HTTP/2 as ALPN names it.
const HTTP2: &[u8] = b"h2";

/// The client's side of TLS 1.2 and 1.3.
pub(crate) fn config(roots: RootCertStore) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
    // A ticket would tell a server that the requests of two plugins, or of two callers, come from one place.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// Speaks TLS with `host`, whose certificate has to be for this name or this address. Also whether HTTP/2 was agreed
/// on.
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
    let stream = TlsConnector::from(config).connect(name, stream).await.map_err(|error| failed(&error))?;
    let http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
    Ok((stream, http2))
}

/// Why a handshake failed.
fn failed(error: &io::Error) -> SendError {
    match cause(error) {
        Some(tls) => of_tls(tls),
        None => SendError::Tls(error.to_string()),
    }
}

/// The error of TLS in an error of input or output.
pub(crate) fn cause(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

/// What an error of TLS means.
pub(crate) fn of_tls(error: &Error) -> SendError {
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
                SendError::CertificateName(details)
            }
            _ => SendError::Certificate(details),
        },
        Error::NoCertificatesPresented => SendError::Certificate(details),
        Error::AlertReceived(alert) => SendError::TlsAlert { id: u8::from(*alert), name: format!("{alert:?}") },
        _ => SendError::Tls(details),
    }
}
