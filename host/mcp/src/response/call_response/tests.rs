//! Tests of `call_response`.

use std::time::Duration;

use toolbay_model::{
    CallRejection, CapacityLimit, Limit, RateLimit, RejectionReason, SchemaViolation, ToolOutput,
};

use super::*;

fn encode_tool_failure(failure: CallFailure, revision: Revision) -> Value {
    encode_failure(failure, TargetKind::Tool, revision)
}

fn encode_failure(failure: CallFailure, kind: TargetKind, revision: Revision) -> Value {
    match to_response(
        CallResult {
            result: Err(failure),
            usage: None,
        },
        kind,
        revision,
        true,
    ) {
        Ok(result) => result.into(),
        Err(error) => json!({"code": error.code, "message": error.message, "data": error.data}),
    }
}

#[test]
fn every_failure_as_the_client_receives_it() {
    let violation = || SchemaViolation {
        pointer: "/a".into(),
        message: "1 is not of type \"string\"".into(),
    };
    let latest = Revision::NEWEST_SESSION;
    let refused = |reason| {
        CallFailure::Rejected(CallRejection {
            reason,
            retry_after: Some(Duration::from_micros(249_001)),
        })
    };
    let limit = RateLimit::per_minute(60).unwrap();
    let cases = [
            encode_tool_failure(CallFailure::unknown(TargetKind::Tool, "x"), latest),
            encode_tool_failure(CallFailure::MissingCapabilities(Map::from_iter([("sampling".to_owned(), json!({}))])), latest),
            encode_tool_failure(
                CallFailure::MissingCapabilities(Map::from_iter([("sampling".to_owned(), json!({}))])),
                Revision::NEWEST,
            ),
            encode_tool_failure(CallFailure::InvalidArguments { violations: vec![violation()], example: None }, latest),
            encode_tool_failure(CallFailure::InvalidArguments { violations: vec![violation()], example: None }, Revision::V2025_06_18),
            encode_tool_failure(refused(RejectionReason::Busy { limit: CapacityLimit::Server, capacity: 64 }), latest),
            encode_tool_failure(refused(RejectionReason::Busy { limit: CapacityLimit::Plugin, capacity: 16 }), latest),
            encode_tool_failure(refused(RejectionReason::Busy { limit: CapacityLimit::Target, capacity: 15 }), latest),
            encode_tool_failure(refused(RejectionReason::Busy { limit: CapacityLimit::Client, capacity: 32 }), latest),
            encode_tool_failure(refused(RejectionReason::Busy { limit: CapacityLimit::Queue, capacity: 1024 }), latest),
            encode_tool_failure(refused(RejectionReason::ToolRate(limit)), latest),
            encode_tool_failure(refused(RejectionReason::ClientRate(limit)), latest),
            encode_tool_failure(refused(RejectionReason::Disabled), latest),
            encode_tool_failure(
                CallFailure::Rejected(CallRejection { reason: RejectionReason::Suspended, retry_after: None }),
                latest,
            ),
            encode_tool_failure(CallFailure::Call(CallError::InvalidArguments("no such city".into())), latest),
            encode_tool_failure(CallFailure::Call(CallError::Failed("no luck".into())), latest),
            encode_tool_failure(CallFailure::Call(CallError::limit(Limit::Fuel(1000))), latest),
            encode_tool_failure(
                CallFailure::Call(CallError::Denied {
                    message: "no weather".into(),
                    denial: "https://evil.example is not among the origins that this tool may send requests to.".into(),
                }),
                latest,
            ),
            encode_tool_failure(
                CallFailure::Call(CallError::Trap { cause: "unreachable".into(), stderr: Some("boom".into()) }),
                latest,
            ),
            encode_tool_failure(CallFailure::Call(CallError::InvalidOutput("(root): no".into())), latest),
            encode_tool_failure(CallFailure::Call(CallError::Cancelled), latest),
        ];
    insta::assert_snapshot!(cases.map(|case| case.to_string()).join("\n"));
}

#[test]
fn every_failure_without_a_result_as_the_client_receives_it() {
    let violation = || SchemaViolation {
        pointer: "/a".into(),
        message: "is required".into(),
    };
    let latest = Revision::NEWEST_SESSION;
    let busy = RejectionReason::Busy {
        limit: CapacityLimit::Server,
        capacity: 64,
    };
    let refused = |reason| {
        CallFailure::Rejected(CallRejection {
            reason,
            retry_after: Some(Duration::from_micros(249_001)),
        })
    };
    let missing =
        || CallFailure::MissingCapabilities(Map::from_iter([("sampling".to_owned(), json!({}))]));
    let long = format!("test://{}", "x".repeat(MAX_URI_BYTES));
    let no_resource = |uri: &str| CallFailure::unknown(TargetKind::Resource, uri);
    let of_prompt = |failure, revision| encode_failure(failure, TargetKind::Prompt, revision);
    let cases = [
        of_prompt(CallFailure::unknown(TargetKind::Prompt, "x"), latest),
        of_prompt(missing(), latest),
        of_prompt(missing(), Revision::NEWEST),
        of_prompt(
            CallFailure::InvalidArguments {
                violations: vec![violation()],
                example: None,
            },
            latest,
        ),
        of_prompt(refused(busy), latest),
        of_prompt(
            refused(RejectionReason::ToolRate(
                RateLimit::per_minute(60).unwrap(),
            )),
            Revision::NEWEST,
        ),
        of_prompt(
            CallFailure::Call(CallError::InvalidArguments("no such city".into())),
            latest,
        ),
        of_prompt(
            CallFailure::Call(CallError::Failed("no luck".into())),
            latest,
        ),
        of_prompt(
            CallFailure::Call(CallError::limit(Limit::Fuel(1000))),
            latest,
        ),
        of_prompt(
            CallFailure::Call(CallError::Trap {
                cause: "unreachable".into(),
                stderr: None,
            }),
            latest,
        ),
        of_prompt(CallFailure::Call(CallError::Cancelled), latest),
        encode_failure(
            no_resource("test://x"),
            TargetKind::Resource,
            Revision::V2024_11_05,
        ),
        encode_failure(no_resource("test://x"), TargetKind::Resource, latest),
        encode_failure(
            no_resource("test://x"),
            TargetKind::Resource,
            Revision::NEWEST,
        ),
        encode_failure(
            CallFailure::Call(CallError::InvalidOutput("(root): no".into())),
            TargetKind::Resource,
            latest,
        ),
        encode_failure(
            CallFailure::unknown(TargetKind::Template, "test://{x}"),
            TargetKind::Template,
            latest,
        ),
    ];
    insta::assert_snapshot!(cases.map(|case| case.to_string()).join("\n"));
    let error = encode_failure(no_resource(&long), TargetKind::Resource, latest);
    assert_eq!(error["data"]["uri"].as_str().unwrap().len(), MAX_URI_BYTES);
    assert!(error["message"].as_str().unwrap().len() < 2 * MAX_QUOTED_BYTES);
}

#[test]
fn the_client_learns_only_the_number_of_an_internal_error() {
    let error = internal_error("secret path");
    assert_eq!(error.code, INTERNAL_ERROR);
    assert!(!error.message.contains("secret"), "{}", error.message);
}

#[test]
fn usage_can_be_switched_off() {
    let answer = || CallResult {
        result: Ok(CallReply::Tool(ToolOutput::default())),
        usage: Some(CallUsage::default()),
    };
    let on = to_response(answer(), TargetKind::Tool, Revision::NEWEST, true).unwrap();
    let off = to_response(answer(), TargetKind::Tool, Revision::NEWEST, false).unwrap();
    assert_eq!(on["_meta"][USAGE_KEY]["fuel"], 0);
    assert_eq!(Value::Object(off), json!({"content": []}));
}
