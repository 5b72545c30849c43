//! Tests of `conversation`.

use toolbay_model::CompletionRequest;

use super::*;

fn next_request(
    speaker: &mut GuestConversation,
    ask: &GuestMethod<'_>,
) -> (Value, BTreeMap<String, String>) {
    let request = speaker.next_message(ask, &QuestionAnswers::default());
    assert!(!request.body.contains('\n'));
    let headers = request
        .headers
        .into_iter()
        .map(|(name, value)| (name.into_owned(), value))
        .collect();
    (serde_json::from_str(&request.body).unwrap(), headers)
}

#[test]
fn a_stateless_request_contains_its_whole_context() {
    let capabilities = json!({"roots": {}}).as_object().unwrap().clone();
    let mut speaker = GuestConversation::new(STATELESS, ClientDescription { capabilities });
    let region = ParamHeader {
        name: "Region".into(),
        path: vec!["at".into(), "region".into()],
        kind: HeaderKind::String,
    };
    let count = ParamHeader {
        name: "N".into(),
        path: vec!["n".into()],
        kind: HeaderKind::Integer,
    };
    let arguments = "{\"at\":\n {\"region\": \"Zürich\"}, \"n\": 42}";
    let ask = GuestMethod::Tool {
        name: "add",
        arguments,
        headers: &[region, count],
    };
    let (body, headers) = next_request(&mut speaker, &ask);
    assert_eq!(
        (&body["jsonrpc"], &body["id"], &body["method"]),
        (&json!("2.0"), &json!(1), &json!("tools/call"))
    );
    let params = &body["params"];
    assert_eq!(
        params["arguments"],
        json!({"at": {"region": "Zürich"}, "n": 42})
    );
    let meta = &params["_meta"];
    assert_eq!(meta["progressToken"], 1);
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], STATELESS);
    assert_eq!(
        meta["io.modelcontextprotocol/clientCapabilities"],
        json!({"roots": {}})
    );
    assert_eq!(headers["mcp-protocol-version"], STATELESS);
    assert_eq!(
        (headers["mcp-method"].as_str(), headers["mcp-name"].as_str()),
        ("tools/call", "add")
    );
    assert_eq!(headers["mcp-param-region"], "=?base64?WsO8cmljaA==?=");
    assert_eq!(headers["mcp-param-n"], "42");
    let (body, headers) = next_request(&mut speaker, &GuestMethod::Resource { uri: "notes://ü" });
    assert_eq!(
        (&body["id"], &body["params"]["uri"]),
        (&json!(2), &json!("notes://ü"))
    );
    assert_eq!(headers["mcp-name"], "=?base64?bm90ZXM6Ly/DvA==?=");
}

#[test]
fn a_session_begins_with_a_handshake_and_later_requests_name_it() {
    let mut speaker = GuestConversation::new(NEWEST_WITH_SESSIONS, ClientDescription::default());
    let (body, headers) = next_request(&mut speaker, &GuestMethod::Initialize);
    assert_eq!(body["params"]["protocolVersion"], NEWEST_WITH_SESSIONS);
    assert!(
        !headers.contains_key("mcp-protocol-version") && !headers.contains_key("mcp-session-id")
    );
    speaker.complete_handshake("2025-06-18", Some("s".into()));
    let (body, headers) = next_request(&mut speaker, &GuestMethod::Initialized);
    assert_eq!(
        body,
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
    );
    assert_eq!(
        (
            headers["mcp-protocol-version"].as_str(),
            headers["mcp-session-id"].as_str()
        ),
        ("2025-06-18", "s")
    );
    let (body, headers) = next_request(
        &mut speaker,
        &GuestMethod::List(crate::GuestList::Tools, Some("")),
    );
    assert_eq!(body["params"], json!({"cursor": ""}));
    assert!(!headers.contains_key("mcp-method"));
    speaker.complete_handshake("2025-03-26", None);
    let arguments = BTreeMap::from([("who".to_owned(), "Ada".to_owned())]);
    let (body, headers) = next_request(
        &mut speaker,
        &GuestMethod::Prompt {
            name: "greet",
            arguments: &arguments,
        },
    );
    assert_eq!(
        body["params"],
        json!({"name": "greet", "arguments": {"who": "Ada"}, "_meta": {"progressToken": 3}})
    );
    assert!(!headers.contains_key("mcp-protocol-version"));
}

#[test]
fn completions_are_requested_by_their_reference() {
    let mut speaker = GuestConversation::new(NEWEST_WITH_SESSIONS, ClientDescription::default());
    let request = CompletionRequest {
        reference: CompletionReference::Resource("notes://{id}".into()),
        argument: "id".into(),
        value: "7".into(),
        context: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
    };
    let (body, _) = next_request(&mut speaker, &GuestMethod::Completion(&request));
    assert_eq!(
        body["params"]["ref"],
        json!({"type": "ref/resource", "uri": "notes://{id}"})
    );
    assert_eq!(body["params"]["context"], json!({"arguments": {"a": "b"}}));
}

#[test]
fn values_that_no_header_can_contain_are_encoded() {
    for plain in ["add", "a b", "=?x?="] {
        assert_eq!(encode_header_value(plain), plain);
    }
    for (text, encoded) in [
        ("", "=?base64??="),
        (" a", "=?base64?IGE=?="),
        ("a\r\nb: c", "=?base64?YQ0KYjogYw==?="),
    ] {
        assert_eq!(encode_header_value(text), encoded);
    }
    assert!(encode_header_value("=?base64?YQ==?=").starts_with("=?base64?PT9"));
}

#[test]
fn requests_of_guests_are_rejected_except_ping() {
    assert_eq!(
        respond_to_request("7", "ping"),
        r#"{"id":7,"jsonrpc":"2.0","result":{}}"#
    );
    let refused: Value = serde_json::from_str(&respond_to_request(r#""a""#, "roots/list")).unwrap();
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!("a"), &json!(-32601))
    );
}
