//! Where telemetry goes, and which.

use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use crate::headers::ExportHeaders;

/// Where telemetry goes, and which.
#[derive(Clone, Debug)]
pub struct OtelSettings {
    /// The base URL of the receiver, `http` or `https`: [`OtelSettings::check_endpoint`] says what it may be. The path of
    /// each signal, such as `v1/traces`, is added.
    pub endpoint: Url,
    /// Fields that each request has, such as credentials.
    pub headers: ExportHeaders,
    /// Files of certificates (PEM) that are trusted beside those of the system.
    pub ca: Vec<PathBuf>,
    /// How long a request may take in all, from connecting to the end of the response.
    pub timeout: Duration,
    /// Time between two reports of metrics.
    pub interval: Duration,
    /// Whether spans are sent.
    pub traces: bool,
    /// Whether metrics are sent.
    pub metrics: bool,
    /// Whether lines of the log are sent.
    pub logs: bool,
    /// What the server says of itself: attributes of the resource by their names.
    pub resource: Vec<(String, String)>,
}

impl OtelSettings {
    /// Whether telemetry can be sent to this URL.
    ///
    /// # Errors
    ///
    /// What is wrong with it, as what was expected. It does not repeat the URL, which may have a password.
    pub fn check_endpoint(endpoint: &Url) -> Result<(), String> {
        if !matches!(endpoint.scheme(), "http" | "https") || endpoint.host_str().is_none() {
            return Err("expected a URL with http or https, such as \"http://127.0.0.1:4318\"".to_owned());
        }
        if !endpoint.username().is_empty() || endpoint.password().is_some() {
            return Err("expected a URL without user and password; put credentials into otel.headers".to_owned());
        }
        if endpoint.query().is_some() || endpoint.fragment().is_some() {
            return Err("expected a URL without ? and #: the path of each signal is added to it".to_owned());
        }
        Ok(())
    }

    /// Reads the files of certificates.
    ///
    /// # Errors
    ///
    /// Which one cannot be used, and why.
    pub fn check_ca(files: &[PathBuf]) -> Result<(), String> {
        toolbay_outgoing::ConnectorOptions { extra_ca: files.to_vec(), proxy: None }.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_base_url_without_secrets() {
        let check = |url: &str| OtelSettings::check_endpoint(&Url::parse(url).unwrap());
        for good in ["http://127.0.0.1:4318", "https://otel.example/collector/", "http://[::1]:4318/"] {
            check(good).unwrap();
        }
        for bad in
            ["grpc://a", "file:///tmp", "http://a:s3cret@b/", "https://a@b/", "http://a/?key=s3cret", "http://a/#b"]
        {
            let said = check(bad).unwrap_err();
            assert!(said.starts_with("expected a URL ") && !said.contains("s3cret"), "{said}");
        }
    }
}
