//! The settings of telemetry.

use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use crate::headers::ExportHeaders;

/// The settings of telemetry: its destination and contents.
#[derive(Clone, Debug)]
pub struct OtelSettings {
    /// Base URL of the receiver, as accepted by [`OtelSettings::check_endpoint`]. The path of each
    /// signal, such as `v1/traces`, is appended.
    pub endpoint: Url,
    /// Additional headers of each request, such as credentials.
    pub headers: ExportHeaders,
    /// PEM files with certificates that are trusted in addition to those of the system.
    pub extra_ca_files: Vec<PathBuf>,
    /// Timeout of a request, from connecting to the end of the response.
    pub timeout: Duration,
    /// Interval between two metrics reports.
    pub metrics_interval: Duration,
    /// If set, spans are sent.
    pub traces: bool,
    /// If set, metrics are sent.
    pub metrics: bool,
    /// If set, log lines are sent.
    pub logs: bool,
    /// The resource attributes of the server, by name.
    pub resource: Vec<(String, String)>,
}

impl OtelSettings {
    /// Checks whether telemetry can be sent to this URL.
    ///
    /// # Errors
    ///
    /// Returns a message that states the expected form. It does not contain the URL, which may
    /// include a password.
    pub fn check_endpoint(endpoint: &Url) -> Result<(), String> {
        if !matches!(endpoint.scheme(), "http" | "https") || endpoint.host_str().is_none() {
            return Err(
                "expected a URL with http or https, such as \"http://127.0.0.1:4318\"".to_owned(),
            );
        }
        if !endpoint.username().is_empty() || endpoint.password().is_some() {
            return Err(
                "expected a URL without user and password; put credentials into otel.headers"
                    .to_owned(),
            );
        }
        if endpoint.query().is_some() || endpoint.fragment().is_some() {
            return Err(
                "expected a URL without ? and #: the path of each signal is added to it".to_owned(),
            );
        }
        Ok(())
    }

    /// Checks the certificate files.
    ///
    /// # Errors
    ///
    /// Returns the invalid file and the reason.
    pub fn check_ca(files: &[PathBuf]) -> Result<(), String> {
        toolbay_outgoing::ConnectorOptions {
            extra_ca: files.to_vec(),
            proxy: None,
        }
        .check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_base_url_without_secrets() {
        let check = |url: &str| OtelSettings::check_endpoint(&Url::parse(url).unwrap());
        for good in [
            "http://127.0.0.1:4318",
            "https://otel.example/collector/",
            "http://[::1]:4318/",
        ] {
            check(good).unwrap();
        }
        for bad in [
            "grpc://a",
            "file:///tmp",
            "http://a:s3cret@b/",
            "https://a@b/",
            "http://a/?key=s3cret",
            "http://a/#b",
        ] {
            let message = check(bad).unwrap_err();
            assert!(
                message.starts_with("expected a URL ") && !message.contains("s3cret"),
                "{message}"
            );
        }
    }
}
