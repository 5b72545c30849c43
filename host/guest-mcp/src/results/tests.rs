//! Tests of `results`.

use serde_json::json;

use super::*;

fn done<T>(answered: Result<GuestResult<T>, String>) -> T {
    match answered {
        Ok(GuestResult::Done(done)) => done,
        Ok(GuestResult::NeedsInput(questions)) => panic!("{questions:?}"),
        Err(why) => panic!("{why}"),
    }
}

#[test]
fn the_result_of_a_tool_is_parsed() {
    let result = json!({
        "resultType": "complete", "content": [{"type": "text", "text": "a"}], "structuredContent": {"b": [1]},
        "_meta": {"c": 1}, "isError": false,
    });
    let result = done(parse_tool_result(&result.to_string()));
    assert_eq!(
        (result.structured.as_deref(), result.meta.as_deref()),
        (Some(r#"{"b":[1]}"#), Some(r#"{"c":1}"#))
    );
    assert!(!result.is_error);
    let none = done(parse_tool_result(r#"{"structuredContent":null}"#));
    assert_eq!((none.structured, none.content.len()), (None, 0));
}

#[test]
fn a_failure_has_a_message() {
    let failed = |result: Value| done(parse_tool_result(&result.to_string())).failure_text();
    let texts = json!([{"type": "text", "text": "no"}, {"type": "text", "text": "way"}]);
    assert_eq!(
        failed(json!({"isError": true, "content": texts})),
        "no\nway"
    );
    assert_eq!(
        failed(json!({"isError": true, "structuredContent": {"e": 1}})),
        r#"{"e":1}"#
    );
    assert!(failed(json!({"isError": true})).contains("without a reason"));
}

#[test]
fn questions_are_parsed_in_order() {
    let schema = json!({"type": "object", "properties": {}});
    let result = json!({"resultType": "input_required", "requestState": "s", "inputRequests": {
        "z": {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": schema}},
        "y": {"method": "elicitation/create", "params": {"mode": "url", "message": "m", "url": "https://a.example"}},
        "x": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
        "w": {"method": "roots/list"},
    }});
    let Ok(GuestResult::NeedsInput(asked)) = parse_tool_result(&result.to_string()) else {
        panic!()
    };
    let kinds: Vec<(&str, GuestQuestionKind)> = asked
        .questions
        .iter()
        .map(|asked| (asked.key.as_str(), asked.kind))
        .collect();
    assert_eq!(
        kinds,
        [
            ("z", GuestQuestionKind::Form),
            ("y", GuestQuestionKind::Url),
            ("x", GuestQuestionKind::Sampling),
            ("w", GuestQuestionKind::Roots)
        ]
    );
    assert_eq!(
        (asked.state.as_deref(), asked.questions[3].params.as_str()),
        (Some("s"), "{}")
    );
    for wrong in [
        json!({"resultType": "input_required", "requestState": "s"}),
        json!({"resultType": "input_required", "inputRequests": {"a": {"method": "tools/call"}}}),
        json!({"resultType": "task", "taskId": "t"}),
    ] {
        assert!(parse_tool_result(&wrong.to_string()).is_err(), "{wrong}");
    }
}

#[test]
fn results_of_prompts_resources_and_completions_are_parsed() {
    let message = json!({"role": "assistant", "content": {"type": "text", "text": "a"}});
    let filled = done(parse_prompt_result(
        &json!({"description": "d", "messages": [message]}).to_string(),
    ));
    assert_eq!(
        (filled.messages[0].0, filled.messages[0].1.text.as_deref()),
        ("assistant", Some("a"))
    );
    let other = json!({"messages": [{"role": "system", "content": {"type": "text", "text": "a"}}]});
    assert!(
        parse_prompt_result(&other.to_string())
            .unwrap_err()
            .contains("system")
    );
    let items = done(parse_resource_result(
        &json!({"contents": [{"uri": "a:b", "blob": "AQ=="}]}).to_string(),
    ));
    assert_eq!(items[0].data.as_deref(), Some(&[1][..]));
    let wrong = json!({"contents": [{"uri": "a:b", "blob": "%"}]});
    assert!(
        parse_resource_result(&wrong.to_string())
            .unwrap_err()
            .starts_with("contents[0] has data")
    );
    let values =
        parse_completion_result(r#"{"completion":{"values":["a"],"total":2,"hasMore":true}}"#)
            .unwrap();
    assert_eq!(
        (values.values.len(), values.total, values.has_more),
        (1, Some(2), true)
    );
}
