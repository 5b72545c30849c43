//! `[otel]`: traces, metrics and logs for OpenTelemetry.

mod header;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer};
use toolbay_model::setting::time;
use toolbay_otel::{OtelSettings, parse_pairs};
use url::Url;

use self::header::{HeaderSource, headers};
use super::error::ConfigError;
use super::text_list::parse_list;

/// Maximum of `otel.timeout` and `otel.metrics_interval`.
const MAX_DURATION: Duration = Duration::from_hours(1);

/// Variables that OpenTelemetry defines for all programs.
const ENDPOINT_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS_VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const SERVICE_NAME_VARIABLE: &str = "OTEL_SERVICE_NAME";
const RESOURCE_VARIABLE: &str = "OTEL_RESOURCE_ATTRIBUTES";

/// Traces, metrics and logs for OpenTelemetry (`[otel]`). Nothing is sent without an endpoint.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a separate configuration key"
)]
pub struct OtelConfig {
    /// The base URL of an OTLP/HTTP collector, such as `http://127.0.0.1:4318`. `None` (the
    /// default): nothing is sent.
    #[serde(deserialize_with = "endpoint")]
    pub endpoint: Option<Url>,
    /// Header fields of each request, such as credentials, by name. Default: none.
    #[serde(deserialize_with = "headers")]
    pub headers: BTreeMap<String, HeaderSource>,
    /// PEM files with certificates of authorities that are trusted in addition to the system's.
    /// Relative paths are relative to the configuration file.
    #[serde(deserialize_with = "paths")]
    pub extra_ca: Vec<PathBuf>,
    /// If set, a span is sent for each call, and for each HTTP request of a plugin. Default: true.
    pub traces: bool,
    /// If set, metrics are sent. Default: true.
    pub metrics: bool,
    /// If set, log records are sent. Default: false.
    pub logs: bool,
    /// Interval of metric exports, above 0, at most 1 h. Default: 1 min.
    #[serde(deserialize_with = "within")]
    pub metrics_interval: Duration,
    /// Timeout of a whole request, above 0, at most 1 h. Default: 10 s.
    #[serde(deserialize_with = "within")]
    pub timeout: Duration,
    /// The attribute `service.name`. Default: `toolbay`.
    pub service_name: Option<String>,
    /// Additional resource attributes, which describe the server.
    #[serde(deserialize_with = "resource")]
    pub resource: BTreeMap<String, String>,
    /// Sampling ratio of traces that start here, 0 to 1. Callers decide for their own traces.
    /// Default: 1.
    #[serde(deserialize_with = "ratio")]
    pub sample_ratio: f64,
    /// If set, spans include the name of the caller (`enduser.id`). Default: false.
    pub include_caller: bool,
    /// If set, the variables of OpenTelemetry (`OTEL_…`) set what is not set here. Default: false.
    pub use_environment: bool,
}

impl Default for OtelConfig {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: BTreeMap::new(),
            extra_ca: Vec::new(),
            traces: true,
            metrics: true,
            logs: false,
            metrics_interval: Duration::from_mins(1),
            timeout: Duration::from_secs(10),
            service_name: None,
            resource: BTreeMap::new(),
            sample_ratio: 1.0,
            include_caller: false,
            use_environment: false,
        }
    }
}

impl OtelConfig {
    /// Returns whether this table allows telemetry to be sent.
    pub(crate) fn is_enabled(&self) -> bool {
        (self.endpoint.is_some() || self.use_environment)
            && (self.traces || self.metrics || self.logs)
    }

    /// Resolves relative paths against `folder`, the directory of the configuration file.
    pub(super) fn resolve(&mut self, folder: &Path) {
        self.extra_ca
            .iter_mut()
            .for_each(|path| *path = folder.join(&path));
        self.headers
            .values_mut()
            .for_each(|source| source.resolve(folder));
    }

    /// Returns the files that contain secrets.
    pub(super) fn secret_files(&self) -> impl Iterator<Item = &PathBuf> {
        self.headers.values().filter_map(HeaderSource::file)
    }

    /// Checks that the certificate files can be used.
    ///
    /// # Errors
    ///
    /// A certificate file cannot be used.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        OtelSettings::check_ca(&self.extra_ca)
            .map_err(|why| ConfigError(format!("otel.extra_ca: {why}")))
    }

    /// Returns the settings of the exporter, with the values of secrets and variables. `None` if
    /// nothing is sent.
    ///
    /// # Errors
    ///
    /// A key or variable, which the message names, has no usable value. The message contains no
    /// value.
    pub(crate) fn settings(&self) -> Result<Option<OtelSettings>, ConfigError> {
        if !self.is_enabled() {
            return Ok(None);
        }
        let endpoint = match self.endpoint.clone() {
            Some(endpoint) => endpoint,
            None => match self.variable(ENDPOINT_VARIABLE) {
                Some(text) => parse_endpoint(&text)
                    .map_err(|why| ConfigError(format!("{ENDPOINT_VARIABLE}: {why}")))?,
                None => return Ok(None),
            },
        };
        let mut export_headers = toolbay_otel::ExportHeaders::default();
        for (name, value) in self.variable_pairs(HEADERS_VARIABLE)? {
            export_headers
                .add(&name, &value)
                .map_err(|why| ConfigError(format!("{HEADERS_VARIABLE}: {why}")))?;
        }
        for (name, source) in &self.headers {
            let value = source
                .value()
                .map_err(|why| ConfigError(format!("otel.headers.{name}: {why}")))?;
            export_headers
                .add(name, &value)
                .map_err(|why| ConfigError(format!("otel.headers: {why}")))?;
        }
        Ok(Some(OtelSettings {
            endpoint,
            headers: export_headers,
            extra_ca_files: self.extra_ca.clone(),
            timeout: self.timeout,
            metrics_interval: self.metrics_interval,
            traces: self.traces,
            metrics: self.metrics,
            logs: self.logs,
            resource: self.resource_attributes()?.into_iter().collect(),
        }))
    }

    /// Returns the resource attributes, which describe the server.
    fn resource_attributes(&self) -> Result<BTreeMap<String, String>, ConfigError> {
        let mut resource: BTreeMap<String, String> = self
            .variable_pairs(RESOURCE_VARIABLE)?
            .into_iter()
            .collect();
        resource.extend(self.resource.clone());
        let service_name = self
            .service_name
            .clone()
            .or_else(|| self.variable(SERVICE_NAME_VARIABLE));
        if let Some(name) = service_name {
            resource.insert("service.name".to_owned(), name);
        }
        let version = env!("CARGO_PKG_VERSION");
        for (name, value) in [
            ("service.name", "toolbay"),
            ("service.version", version),
            ("telemetry.sdk.language", "rust"),
            ("telemetry.sdk.name", "toolbay"),
            ("telemetry.sdk.version", version),
        ] {
            resource
                .entry(name.to_owned())
                .or_insert_with(|| value.to_owned());
        }
        if !resource.contains_key("service.instance.id") {
            resource.insert("service.instance.id".to_owned(), random_instance_id()?);
        }
        Ok(resource)
    }

    /// Returns the value of a variable of OpenTelemetry. An empty one counts as unset.
    fn variable(&self, name: &str) -> Option<String> {
        self.use_environment
            .then(|| std::env::var(name).ok())
            .flatten()
            .filter(|value| !value.is_empty())
    }

    fn variable_pairs(&self, name: &str) -> Result<Vec<(String, String)>, ConfigError> {
        let text = self.variable(name).unwrap_or_default();
        parse_pairs(&text).map_err(|why| ConfigError(format!("{name}: {why}")))
    }
}

/// Returns a random id (UUID, version 4) for this run of the server.
fn random_instance_id() -> Result<String, ConfigError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| ConfigError(format!("the system provides no random bytes: {error}")))?;
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut bytes;
    *version = (*version & 0x0f) | 0x40;
    *variant = (*variant & 0x3f) | 0x80;
    let digits = hex::encode(bytes);
    let part = |range: std::ops::Range<usize>| digits.get(range).unwrap_or_default();
    Ok([
        part(0..8),
        part(8..12),
        part(12..16),
        part(16..20),
        part(20..32),
    ]
    .join("-"))
}

fn parse_endpoint(text: &str) -> Result<Url, String> {
    // Messages never repeat the text, which may contain a password.
    let wrong = "this is not a URL; expected one such as \"http://127.0.0.1:4318\"";
    let url = Url::parse(text).map_err(|_| wrong.to_owned())?;
    OtelSettings::check_endpoint(&url)?;
    Ok(url)
}

fn endpoint<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Url>, D::Error> {
    let text = String::deserialize(deserializer)?;
    // An empty variable turns it off.
    if text.is_empty() {
        return Ok(None);
    }
    parse_endpoint(&text).map(Some).map_err(D::Error::custom)
}

/// Parses a list of paths, or one string with commas.
fn paths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    Ok(parse_list(deserializer)?
        .into_iter()
        .map(PathBuf::from)
        .collect())
}

fn within<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    time(deserializer, MAX_DURATION)
}

fn resource<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected a table of strings, or one string such as \"name=value,name=value\""
    )]
    enum ResourceInput {
        Table(BTreeMap<String, String>),
        Text(String),
    }
    match ResourceInput::deserialize(deserializer)? {
        ResourceInput::Table(table) => Ok(table),
        ResourceInput::Text(text) => Ok(parse_pairs(&text)
            .map_err(D::Error::custom)?
            .into_iter()
            .collect()),
    }
}

/// Parses a number from 0 to 1. Variables contain it as text.
fn ratio<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    struct RatioVisitor;

    impl Visitor<'_> for RatioVisitor {
        type Value = f64;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a number from 0 to 1")
        }

        fn visit_f64<E: serde::de::Error>(self, ratio: f64) -> Result<f64, E> {
            let wrong = || E::custom(format_args!("expected a number from 0 to 1, not {ratio}"));
            (0.0..=1.0)
                .contains(&ratio)
                .then_some(ratio)
                .ok_or_else(wrong)
        }

        #[expect(clippy::cast_precision_loss, reason = "only 0 and 1 are valid")]
        fn visit_i64<E: serde::de::Error>(self, ratio: i64) -> Result<f64, E> {
            self.visit_f64(ratio as f64)
        }

        #[expect(clippy::cast_precision_loss, reason = "only 0 and 1 are valid")]
        fn visit_u64<E: serde::de::Error>(self, ratio: u64) -> Result<f64, E> {
            self.visit_f64(ratio as f64)
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<f64, E> {
            let wrong = || E::custom(format_args!("expected a number from 0 to 1, not {text:?}"));
            text.parse()
                .map_err(|_| wrong())
                .and_then(|ratio| self.visit_f64(ratio))
        }
    }

    deserializer.deserialize_any(RatioVisitor)
}
