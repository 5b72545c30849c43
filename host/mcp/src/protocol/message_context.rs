//! The context in which a message is handled: its revision, capabilities and log level. It comes
//! from the session, or from the message itself.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolbay_model::{LogLevel, TraceContext};

use crate::protocol::capabilities::CapabilityNames;
use crate::protocol::jsonrpc::{Error, INVALID_PARAMS, truncate_error, truncate_quote};
use crate::protocol::lenient_object::object;
use crate::protocol::revision::Revision;

/// Part of every key of the protocol in `_meta`, regardless of how its slash is escaped.
const META_KEY_PREFIX: &str = "io.modelcontextprotocol";
const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// JSON-RPC error code for a revision that is not supported (2026-07-28, "Error Codes").
const UNSUPPORTED_VERSION: i32 = -32022;

/// The context in which a message is handled.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext {
    /// The revision of MCP.
    pub revision: Revision,
    /// The capabilities that the client declared.
    pub capabilities: CapabilityNames,
    /// The lowest level of log messages to send; `None` sends none.
    pub min_log_level: Option<LogLevel>,
    /// The trace context from the transport, if it has one.
    pub trace: Option<Box<TraceContext>>,
}

/// The part of a request's parameters that contains its context.
#[derive(Deserialize)]
struct ContextEnvelope<'a> {
    #[serde(rename = "_meta", borrow, default, deserialize_with = "object")]
    meta: UnparsedContext<'a>,
}

/// The context that a stateless request contains, not yet parsed.
#[derive(Default, Deserialize)]
struct UnparsedContext<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow)]
    version: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow)]
    capabilities: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/logLevel", borrow)]
    log: Option<&'a RawValue>,
}

impl RequestContext {
    /// Parses the context that a request contains; `None` if it contains none.
    ///
    /// # Errors
    ///
    /// The context is malformed, or the revision is not supported without a session.
    pub(crate) fn from_params(params: Option<&RawValue>) -> Result<Option<Self>, Error> {
        // Few requests of a session contain this prefix: searching the text avoids parsing the
        // others.
        let Some(params) = params.filter(|params| params.get().contains(META_KEY_PREFIX)) else {
            return Ok(None);
        };
        // The method's own parser reports parameters that are malformed.
        let Ok(ContextEnvelope { meta: unparsed }) = serde_json::from_str(params.get()) else {
            return Ok(None);
        };
        if unparsed.version.is_none() && unparsed.capabilities.is_none() {
            return Ok(None);
        }
        unparsed.parse().map(Some)
    }
}

impl UnparsedContext<'_> {
    fn parse(self) -> Result<RequestContext, Error> {
        let invalid = |what: String| Error::new(INVALID_PARAMS, what);
        let version: String = match self.version {
            Some(version) if version.get().starts_with('"') => {
                let read = serde_json::from_str(version.get());
                read.map_err(|error| {
                    invalid(format!(
                        "_meta[{PROTOCOL_VERSION:?}] is not valid: {}",
                        truncate_error(&error.to_string())
                    ))
                })?
            }
            Some(_) => {
                return Err(invalid(format!(
                    "_meta[{PROTOCOL_VERSION:?}] must be a string"
                )));
            }
            None => return Err(invalid(format!("_meta[{PROTOCOL_VERSION:?}] is missing"))),
        };
        let revision = Revision::parse(&version).filter(|revision| !revision.features().sessions);
        let revision = revision.ok_or_else(|| unsupported_version(&version))?;
        let capabilities = match self.capabilities {
            Some(capabilities) => object(&mut serde_json::Deserializer::from_str(
                capabilities.get(),
            ))
            .map_err(|_| invalid(format!("_meta[{CLIENT_CAPABILITIES:?}] must be an object")))?,
            None => {
                return Err(invalid(format!(
                    "_meta[{CLIENT_CAPABILITIES:?}] is missing"
                )));
            }
        };
        let log = match self.log {
            None => None,
            Some(level) => {
                // A level is a short word: a longer text cannot be valid.
                let level = truncate_quote(level.get());
                let read = serde_json::from_str(level).and_then(serde_json::from_value::<LogLevel>);
                Some(read.map_err(|error| {
                    invalid(format!("_meta[{LOG_LEVEL:?}] is not a log level: {error}"))
                })?)
            }
        };
        Ok(RequestContext {
            revision,
            capabilities,
            min_log_level: log,
            trace: None,
        })
    }
}

/// Returns the `_meta` of a request that contains its own context.
pub(crate) fn request_meta(revision: Revision, capabilities: &Value) -> Value {
    json!({PROTOCOL_VERSION: revision.as_str(), CLIENT_CAPABILITIES: capabilities})
}

/// Returns the error for a revision that is not supported.
pub(crate) fn unsupported_version(version: &str) -> Error {
    let version = truncate_quote(version);
    // The requested revision can be a supported one that requires a session. It is not an
    // alternative for a request without one.
    let supported: Vec<&str> = Revision::dates()
        .into_iter()
        .filter(|date| *date != version)
        .collect();
    let data = json!({"supported": supported, "requested": version});
    let message = format!("Unsupported protocol version: {version}");
    Error {
        data: Some(Box::new(data)),
        ..Error::new(UNSUPPORTED_VERSION, message)
    }
}

/// Returns the error for a request that has no session and does not contain its context.
pub(crate) fn missing_session() -> Error {
    let keys = format!("_meta[{PROTOCOL_VERSION:?}] and _meta[{CLIENT_CAPABILITIES:?}]");
    Error::new(
        INVALID_PARAMS,
        format!("there is no session: send initialize first, or include {keys} in every request"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(meta: &Value) -> Result<Option<RequestContext>, Error> {
        let text = json!({"_meta": meta}).to_string().replace('/', "\\/");
        RequestContext::from_params(Some(&RawValue::from_string(text).unwrap()))
    }

    #[test]
    fn a_request_contains_its_context_or_none() {
        assert!(RequestContext::from_params(None).unwrap().is_none());
        for meta in [
            json!({}),
            json!({"progressToken": 1}),
            json!({"io.modelcontextprotocol/related-task": {}}),
        ] {
            assert!(stated(&meta).unwrap().is_none(), "{meta}");
        }
        let full = json!({PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {"roots": {}}, LOG_LEVEL: "notice"});
        let rules = stated(&full).unwrap().unwrap();
        assert_eq!(
            (rules.revision, rules.min_log_level),
            (Revision::V2026_07_28, Some(LogLevel::Notice))
        );
        assert!(rules.capabilities.contains("roots"));
    }

    #[test]
    fn a_malformed_context_is_rejected_with_a_reason() {
        let cases = [
            json!({PROTOCOL_VERSION: "2026-07-28"}),
            json!({CLIENT_CAPABILITIES: {}}),
            json!({PROTOCOL_VERSION: 7, CLIENT_CAPABILITIES: {}}),
            json!({PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: [1]}),
            json!({PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {}, LOG_LEVEL: "loud"}),
            json!({PROTOCOL_VERSION: "2027-01-01"}),
            json!({PROTOCOL_VERSION: "2025-11-25", CLIENT_CAPABILITIES: {}}),
        ];
        let said = cases.map(|meta| {
            let error = stated(&meta).unwrap_err();
            format!("{}: {}", error.code, error.message)
        });
        insta::assert_snapshot!(said.join("\n"), @r#"
        -32602: _meta["io.modelcontextprotocol/clientCapabilities"] is missing
        -32602: _meta["io.modelcontextprotocol/protocolVersion"] is missing
        -32602: _meta["io.modelcontextprotocol/protocolVersion"] must be a string
        -32602: _meta["io.modelcontextprotocol/clientCapabilities"] must be an object
        -32602: _meta["io.modelcontextprotocol/logLevel"] is not a log level: unknown variant `loud`, expected one of `debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert`, `emergency`
        -32022: Unsupported protocol version: 2027-01-01
        -32022: Unsupported protocol version: 2025-11-25
        "#);
    }
}
