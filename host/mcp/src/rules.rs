//! By which rules one message is answered: those of the session, or those that the message itself names.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolbay_model::{LogLevel, Trace};

use crate::jsonrpc::{Error, INVALID_PARAMS};
use crate::revision::Revision;

/// What every key of the protocol's own in `_meta` has in it, however its slash is escaped.
const PREFIX: &str = "io.modelcontextprotocol";
const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// A revision that is not served (2026-07-28, "Error Codes").
const UNSUPPORTED_VERSION: i32 = -32022;

/// By which rules a message is answered.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// The revision.
    pub revision: Revision,
    /// What the client says that it can do.
    pub capabilities: Map<String, Value>,
    /// The least severity of log lines that the client wants; `None` wants none.
    pub log: Option<LogLevel>,
    /// Where the message belongs in a trace, if what carried it says so.
    pub trace: Option<Trace>,
}

/// The part of any request's parameters that says what it follows.
#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "_meta")]
    meta: Option<Stated>,
}

/// What a request of a stateless revision states.
#[derive(Deserialize)]
struct Stated {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Value>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<Value>,
    #[serde(rename = "io.modelcontextprotocol/logLevel")]
    log: Option<Value>,
}

impl Rules {
    /// The rules that a request states for itself; `None` when it states none.
    ///
    /// # Errors
    ///
    /// It states them badly, or names a revision that is not served this way.
    pub(crate) fn stated(params: Option<&RawValue>) -> Result<Option<Self>, Error> {
        // No request of a session has this: look no further than the text for all of them.
        let Some(params) = params.filter(|params| params.get().contains(PREFIX)) else { return Ok(None) };
        // What cannot be read is told by whoever reads it for its own sake.
        let Ok(Envelope { meta: Some(stated) }) = serde_json::from_str(params.get()) else { return Ok(None) };
        if stated.version.is_none() && stated.capabilities.is_none() {
            return Ok(None);
        }
        stated.rules().map(Some)
    }
}

impl Stated {
    fn rules(self) -> Result<Rules, Error> {
        let invalid = |what: String| Error::new(INVALID_PARAMS, what);
        let version = match self.version {
            Some(Value::String(version)) => version,
            Some(_) => return Err(invalid(format!("_meta[{PROTOCOL_VERSION:?}] must be a string"))),
            None => return Err(invalid(format!("_meta[{PROTOCOL_VERSION:?}] is missing"))),
        };
        let revision = Revision::parse(&version).filter(|revision| !revision.features().sessions);
        let revision = revision.ok_or_else(|| unsupported(&version))?;
        let capabilities = match self.capabilities {
            Some(Value::Object(capabilities)) => capabilities,
            Some(_) => return Err(invalid(format!("_meta[{CLIENT_CAPABILITIES:?}] must be an object"))),
            None => return Err(invalid(format!("_meta[{CLIENT_CAPABILITIES:?}] is missing"))),
        };
        let log = match self.log {
            None => None,
            Some(level) => {
                let read = serde_json::from_value(level);
                Some(read.map_err(|error| invalid(format!("_meta[{LOG_LEVEL:?}] is not a log level: {error}")))?)
            }
        };
        Ok(Rules { revision, capabilities, log, trace: None })
    }
}

/// The error of a request that names a revision that is not served.
pub(crate) fn unsupported(version: &str) -> Error {
    let data = json!({"supported": Revision::dates(), "requested": version});
    let message = format!("Unsupported protocol version: {version}");
    Error { data: Some(Box::new(data)), ..Error::new(UNSUPPORTED_VERSION, message) }
}

/// The error of a request that belongs to no session and does not stand for itself.
pub(crate) fn unattached() -> Error {
    let keys = format!("_meta[{PROTOCOL_VERSION:?}] and _meta[{CLIENT_CAPABILITIES:?}]");
    Error::new(
        INVALID_PARAMS,
        format!("there is no session: send initialize first, or include {keys} in every request"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(meta: &Value) -> Result<Option<Rules>, Error> {
        let text = json!({"_meta": meta}).to_string().replace('/', "\\/");
        Rules::stated(Some(&RawValue::from_string(text).unwrap()))
    }

    #[test]
    fn a_request_states_its_rules_or_none() {
        assert!(Rules::stated(None).unwrap().is_none());
        for meta in [json!({}), json!({"progressToken": 1}), json!({"io.modelcontextprotocol/related-task": {}})] {
            assert!(stated(&meta).unwrap().is_none(), "{meta}");
        }
        let full = json!({PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {"roots": {}}, LOG_LEVEL: "notice"});
        let rules = stated(&full).unwrap().unwrap();
        assert_eq!((rules.revision, rules.log), (Revision::V2026_07_28, Some(LogLevel::Notice)));
        assert!(rules.capabilities.contains_key("roots"));
    }

    #[test]
    fn rules_that_are_badly_stated_are_told() {
        let cases = [
            json!({PROTOCOL_VERSION: "2026-07-28"}),
            json!({CLIENT_CAPABILITIES: {}}),
            json!({PROTOCOL_VERSION: 7, CLIENT_CAPABILITIES: {}}),
            json!({PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: []}),
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
