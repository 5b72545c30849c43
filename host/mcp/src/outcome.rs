//! Turns the answer to a call into the protocol's response: the only place that maps errors to the protocol.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};
use toolbay_model::{Answer, CallError, ErrorKind, Failure, Usage};

use crate::jsonrpc::{Error, INTERNAL_ERROR, INVALID_PARAMS};
use crate::revision::Revision;
use crate::shape;

/// Error code: the client did not declare a required capability (2026-07-28, "Error Codes").
pub(crate) const MISSING_CAPABILITY: i32 = -32021;

/// Key of a call's usage in the result's `_meta`: `fuel`, `wall_ms`, `memory`.
const USAGE: &str = "dev.toolbay/usage";

/// Key of the error kind in a failed result's `_meta`.
const ERROR: &str = "dev.toolbay/error";

/// Key of the time in milliseconds after which a rejected call can be retried.
const RETRY_AFTER: &str = "dev.toolbay/retry-after-ms";

/// How much of the name of an unknown tool is quoted, in bytes: it may be megabytes long.
const QUOTED: usize = 200;

/// The response to `tools/call`: a result, or a protocol error.
pub(crate) fn outcome(answer: Answer, revision: Revision, with_usage: bool) -> Result<Map<String, Value>, Error> {
    let usage = answer.usage.filter(|_| with_usage);
    let failure = match answer.result {
        Ok(output) => {
            let mut result = shape::output(output, revision);
            add_meta(&mut result, usage.map(|usage| (USAGE, self::usage(usage))));
            return Ok(result);
        }
        Err(failure) => failure,
    };
    let kind = failure.kind();
    let failed = |text: &str| Ok(self::failure(text, kind, usage));
    match failure {
        Failure::UnknownTool(name) => {
            let name = name.get(..name.floor_char_boundary(QUOTED)).unwrap_or_default();
            Err(Error::new(INVALID_PARAMS, format!("Unknown tool: {name}")))
        }
        Failure::MissingCapabilities(missing) => {
            let names: Vec<&str> = missing.keys().map(String::as_str).collect();
            let message = format!("the tool requires client capabilities that were not declared: {}", names.join(", "));
            let data = Some(Box::new(json!({"requiredCapabilities": missing})));
            let code = if revision.features().capability_code { MISSING_CAPABILITY } else { INVALID_PARAMS };
            Err(Error { data, ..Error::new(code, message) })
        }
        Failure::InvalidArguments(violations) => {
            let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
            let text = format!("The arguments do not match the tool's input schema:\n{}", lines.join("\n"));
            if revision.features().invalid_arguments_are_results {
                return failed(&text);
            }
            let data: Value = violations.iter().map(|v| json!({"pointer": v.pointer, "message": v.message})).collect();
            Err(Error { data: Some(Box::new(data)), ..Error::new(INVALID_PARAMS, text) })
        }
        Failure::Rejected(rejection) => {
            // Rounded up: a retry that is slightly early would be rejected again.
            let wait = u64::try_from(rejection.retry_after.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
            let mut result =
                self::failure(&format!("{} Retry after {wait} ms.", rejection.reason.message()), kind, usage);
            add_meta(&mut result, Some((RETRY_AFTER, wait.into())));
            Ok(result)
        }
        Failure::Call(error) => match error {
            CallError::InvalidArguments(text) | CallError::Failed(text) => failed(&text),
            CallError::Limit { limit, tool } => failed(&limit.message(tool.as_deref())),
            CallError::Denied { words, denied } => failed(&format!("{words}\n{denied}")),
            CallError::Trap { .. } => failed(&format!("The tool crashed: {error}.")),
            CallError::InvalidOutput(what) => failed(&format!("The tool returned invalid output: {what}.")),
            CallError::Cancelled => failed("The call was stopped because the server is shutting down."),
            CallError::Internal(what) => Err(internal(&what)),
        },
    }
}

/// Logs an error in the server with a number, and returns a protocol error that contains only the number.
pub(crate) fn internal(what: &str) -> Error {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let id = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    tracing::error!(id, "internal error: {what}");
    Error::new(INTERNAL_ERROR, format!("Internal error {id}. See the server's log for details."))
}

fn failure(text: &str, kind: ErrorKind, usage: Option<Usage>) -> Map<String, Value> {
    let mut result = Map::new();
    result.insert("content".into(), vec![shape::text(text)].into());
    result.insert("isError".into(), true.into());
    // A failure that the plugin itself reports has no error kind.
    let told = Some(kind).filter(|kind| *kind != ErrorKind::Failed);
    add_meta(&mut result, told.map(|kind| (ERROR, kind.as_str().into())));
    add_meta(&mut result, usage.map(|usage| (USAGE, self::usage(usage))));
    result
}

fn add_meta(result: &mut Map<String, Value>, member: Option<(&str, Value)>) {
    if let Some((key, value)) = member
        && let Some(meta) = result.entry("_meta").or_insert_with(|| json!({})).as_object_mut()
    {
        meta.insert(key.into(), value);
    }
}

fn usage(usage: Usage) -> Value {
    // Microseconds suffice; more digits would only make responses longer.
    let wall_ms = (usage.wall.as_secs_f64() * 1e6).round() / 1e3;
    let mut used = Map::new();
    used.extend([("fuel", usage.fuel.into()), ("wall_ms", wall_ms.into()), ("memory", usage.memory.into())].map(named));
    // Most calls use no network.
    if usage.http_requests > 0 {
        used.extend(
            [("http_requests", usage.http_requests.into()), ("http_bytes", usage.http_bytes.into())].map(named),
        );
    }
    if usage.tcp_connections > 0 {
        used.extend(
            [("tcp_connections", usage.tcp_connections.into()), ("tcp_bytes", usage.tcp_bytes.into())].map(named),
        );
    }
    used.into()
}

fn named((name, value): (&str, Value)) -> (String, Value) {
    (name.to_owned(), value)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolbay_model::{Bound, Limit, Output, RateLimit, Reason, Rejection, Violation};

    use super::*;

    fn told(failure: Failure, revision: Revision) -> Value {
        match outcome(Answer { result: Err(failure), usage: None }, revision, true) {
            Ok(result) => result.into(),
            Err(error) => json!({"code": error.code, "message": error.message, "data": error.data}),
        }
    }

    #[test]
    fn every_failure_as_the_client_receives_it() {
        let violation = || Violation { pointer: "/a".into(), message: "1 is not of type \"string\"".into() };
        let latest = Revision::NEWEST_SESSION;
        let refused = |reason| Failure::Rejected(Rejection { reason, retry_after: Duration::from_micros(249_001) });
        let limit = RateLimit::per_minute(60).unwrap();
        let cases = [
            told(Failure::UnknownTool("x".into()), latest),
            told(Failure::MissingCapabilities(Map::from_iter([("sampling".to_owned(), json!({}))])), latest),
            told(Failure::MissingCapabilities(Map::from_iter([("sampling".to_owned(), json!({}))])), Revision::NEWEST),
            told(Failure::InvalidArguments(vec![violation()]), latest),
            told(Failure::InvalidArguments(vec![violation()]), Revision::V2025_06_18),
            told(refused(Reason::Busy { bound: Bound::Server, most: 64 }), latest),
            told(refused(Reason::Busy { bound: Bound::Plugin, most: 16 }), latest),
            told(refused(Reason::Busy { bound: Bound::Client, most: 32 }), latest),
            told(refused(Reason::Busy { bound: Bound::Queue, most: 1024 }), latest),
            told(refused(Reason::ToolRate(limit)), latest),
            told(refused(Reason::ClientRate(limit)), latest),
            told(refused(Reason::Disabled), latest),
            told(Failure::Call(CallError::InvalidArguments("no such city".into())), latest),
            told(Failure::Call(CallError::Failed("no luck".into())), latest),
            told(Failure::Call(CallError::limit(Limit::Fuel(1000))), latest),
            told(
                Failure::Call(CallError::Denied {
                    words: "no weather".into(),
                    denied: "https://evil.example is not among the origins that this tool may send requests to.".into(),
                }),
                latest,
            ),
            told(Failure::Call(CallError::Trap { what: "unreachable".into(), stderr: Some("boom".into()) }), latest),
            told(Failure::Call(CallError::InvalidOutput("(root): no".into())), latest),
            told(Failure::Call(CallError::Cancelled), latest),
        ];
        insta::assert_snapshot!(cases.map(|case| case.to_string()).join("\n"));
    }

    #[test]
    fn the_client_learns_only_the_number_of_an_internal_error() {
        let error = internal("secret path");
        assert_eq!(error.code, INTERNAL_ERROR);
        assert!(!error.message.contains("secret"), "{}", error.message);
    }

    #[test]
    fn usage_can_be_switched_off() {
        let answer = || Answer { result: Ok(Output::default()), usage: Some(Usage::default()) };
        let on = outcome(answer(), Revision::NEWEST, true).unwrap();
        let off = outcome(answer(), Revision::NEWEST, false).unwrap();
        assert_eq!(on["_meta"][USAGE]["fuel"], 0);
        assert_eq!(Value::Object(off), json!({"content": []}));
    }
}
