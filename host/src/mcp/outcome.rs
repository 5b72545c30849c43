//! How a call that ended is told to the peer: the one place that maps errors to the protocol.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};

use super::jsonrpc::{Error, INTERNAL_ERROR, INVALID_PARAMS};
use super::revision::Revision;
use super::shape;
use crate::sandbox::{CallError, Usage, crash};
use crate::service::{Answer, Failure};

/// The client did not declare what a tool needs (2026-07-28, "Error Codes").
pub(super) const MISSING_CAPABILITY: i32 = -32021;

/// What a call used, in every result's `_meta`: `fuel`, `wall_ms`, `memory`.
const USAGE: &str = "dev.toolbay/usage";

/// Which limit or rule ended a call, in a failed result's `_meta`.
const ERROR: &str = "dev.toolbay/error";

/// Milliseconds after which a call that found no room may be tried again.
const RETRY_AFTER: &str = "dev.toolbay/retry-after-ms";

/// The answer to `tools/call`: a result, or an error of the protocol. `None`
/// when nobody waits for one.
pub(super) fn outcome(
    answer: Answer,
    revision: Revision,
    with_usage: bool,
) -> Option<Result<Map<String, Value>, Error>> {
    let usage = answer.usage.filter(|_| with_usage);
    let failed = |text: &str, kind: Option<&str>| Some(Ok(failure(text, kind, usage)));
    match answer.result {
        Ok(output) => {
            let mut result = shape::output(output, revision);
            add_meta(&mut result, usage.map(|usage| (USAGE, self::usage(usage))));
            Some(Ok(result))
        }
        Err(Failure::UnknownTool(name)) => Some(Err(Error::new(INVALID_PARAMS, format!("Unknown tool: {name}")))),
        Err(Failure::Incapable(missing)) => {
            let names: Vec<&str> = missing.keys().map(String::as_str).collect();
            let message = format!("the tool needs a client that declares: {}", names.join(", "));
            let data = Some(Box::new(json!({"requiredCapabilities": missing})));
            // Sessions have no code of their own for it.
            let code = if revision.stateless() { MISSING_CAPABILITY } else { INVALID_PARAMS };
            Some(Err(Error { data, ..Error::new(code, message) }))
        }
        Err(Failure::BadArguments(violations)) => {
            let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
            let text = format!("The arguments do not fit the tool's input schema:\n{}", lines.join("\n"));
            if revision.bad_arguments_are_results() {
                return failed(&text, Some("invalid-arguments"));
            }
            let data: Value = violations.iter().map(|v| json!({"pointer": v.pointer, "message": v.message})).collect();
            Some(Err(Error { data: Some(Box::new(data)), ..Error::new(INVALID_PARAMS, text) }))
        }
        Err(Failure::Refused(refused)) => {
            // Rounded up: a hint that is a moment early is a second refusal.
            let wait = u64::try_from(refused.retry_after.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
            let (kind, why) = (refused.why.kind(), refused.why.message());
            let mut result = failure(&format!("{why} Try again in {wait} ms."), Some(kind), usage);
            add_meta(&mut result, Some((RETRY_AFTER, wait.into())));
            Some(Ok(result))
        }
        Err(Failure::Call(error)) => match error {
            CallError::InvalidArguments(text) => failed(&text, Some("invalid-arguments")),
            CallError::Failed(text) => failed(&text, None),
            CallError::Limit(limit) => failed(&limit.message(), Some(limit.kind())),
            CallError::Trap { what, stderr } => {
                failed(&format!("The tool crashed: {}.", crash(&what, stderr.as_deref())), Some("trap"))
            }
            CallError::InvalidOutput(what) => {
                failed(&format!("The tool's output is not valid: {what}."), Some("invalid-output"))
            }
            CallError::Cancelled => None,
            CallError::Internal(what) => Some(Err(internal(&what))),
        },
    }
}

/// A fault of ours: the peer gets a number, the log gets the number and the fault.
pub(super) fn internal(what: &str) -> Error {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let id = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    tracing::error!(id, "internal error: {what}");
    Error::new(INTERNAL_ERROR, format!("Internal error {id}; the server's log has the details."))
}

fn failure(text: &str, kind: Option<&str>, usage: Option<Usage>) -> Map<String, Value> {
    let mut result = Map::new();
    result.insert("content".into(), vec![shape::text(text)].into());
    result.insert("isError".into(), true.into());
    add_meta(&mut result, kind.map(|kind| (ERROR, kind.into())));
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
    // Microseconds are as fine as a wall clock gets; more digits only make answers longer.
    let wall_ms = (usage.wall.as_secs_f64() * 1e6).round() / 1e3;
    json!({"fuel": usage.fuel, "wall_ms": wall_ms, "memory": usage.memory})
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::admission::{Bound, Refused, Why};
    use crate::rate::RateLimit;
    use crate::sandbox::Limit;
    use crate::schema::Violation;

    fn told(failure: Failure, revision: Revision) -> Value {
        match outcome(Answer { result: Err(failure), usage: None }, revision, true) {
            Some(Ok(result)) => result.into(),
            Some(Err(error)) => json!({"code": error.code, "message": error.message, "data": error.data}),
            None => Value::Null,
        }
    }

    #[test]
    fn every_failure_as_the_peer_sees_it() {
        let violation = || Violation { pointer: "/a".into(), message: "1 is not of type \"string\"".into() };
        let latest = Revision::LATEST_SESSION;
        let refused = |why| Failure::Refused(Refused { why, retry_after: Duration::from_micros(249_001) });
        let limit: RateLimit = toml::from_str("calls = 60\nper = \"1m\"").unwrap();
        let cases = [
            told(Failure::UnknownTool("x".into()), latest),
            told(Failure::Incapable(Map::from_iter([("sampling".to_owned(), json!({}))])), latest),
            told(Failure::Incapable(Map::from_iter([("sampling".to_owned(), json!({}))])), Revision::LATEST),
            told(Failure::BadArguments(vec![violation()]), latest),
            told(Failure::BadArguments(vec![violation()]), Revision::V2025_06_18),
            told(refused(Why::Busy { bound: Bound::Server, most: 64 }), latest),
            told(refused(Why::Busy { bound: Bound::Plugin, most: 16 }), latest),
            told(refused(Why::Busy { bound: Bound::Client, most: 32 }), latest),
            told(refused(Why::Busy { bound: Bound::Queue, most: 1024 }), latest),
            told(refused(Why::ToolRate(limit)), latest),
            told(refused(Why::ClientRate(limit)), latest),
            told(refused(Why::Resting), latest),
            told(Failure::Call(CallError::InvalidArguments("no such city".into())), latest),
            told(Failure::Call(CallError::Failed("no luck".into())), latest),
            told(Failure::Call(CallError::Limit(Limit::Fuel(1000))), latest),
            told(Failure::Call(CallError::Trap { what: "unreachable".into(), stderr: Some("boom".into()) }), latest),
            told(Failure::Call(CallError::InvalidOutput("(root): no".into())), latest),
            told(Failure::Call(CallError::Cancelled), latest),
        ];
        insta::assert_snapshot!(cases.map(|case| case.to_string()).join("\n"));
    }

    #[test]
    fn a_fault_of_ours_says_nothing_but_a_number() {
        let error = internal("secret path");
        assert_eq!(error.code, INTERNAL_ERROR);
        assert!(!error.message.contains("secret"), "{}", error.message);
    }

    #[test]
    fn usage_can_be_switched_off() {
        let answer = || Answer { result: Ok(crate::content::Output::default()), usage: Some(Usage::default()) };
        let on = outcome(answer(), Revision::LATEST, true).unwrap().unwrap();
        let off = outcome(answer(), Revision::LATEST, false).unwrap().unwrap();
        assert_eq!(on["_meta"][USAGE]["fuel"], 0);
        assert_eq!(Value::Object(off), json!({"content": []}));
    }
}
