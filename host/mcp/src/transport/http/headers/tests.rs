//! Tests of `headers`.

use serde_json::json;

use super::*;
use crate::testing::stub_host::StubServer;
use crate::testing::test_http_client::TestHttpClient;
use crate::transport::http::HttpOptions;

#[test]
fn the_length_of_a_head_is_what_clients_send() {
    for (target, fields) in [
        ("/mcp", &[][..]),
        (
            "/mcp?a=b",
            &[
                ("host", "localhost"),
                ("accept", "a"),
                ("accept", "b"),
                ("x-empty", ""),
            ][..],
        ),
        ("http://localhost:1/mcp", &[("host", "localhost:1")][..]),
        ("*", &[][..]),
    ] {
        let fields: Vec<(&str, &str)> = fields.to_vec();
        let lines: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let sent = format!("POST {target} HTTP/1.1\r\n{}\r\n", lines.concat());
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                value.parse().unwrap(),
            );
        }
        assert_eq!(
            head_length(&Method::POST, &target.parse().unwrap(), &headers),
            sent.len(),
            "{sent}"
        );
    }
}

#[test]
fn an_event_id_of_another_server_is_none() {
    let id = |value: &str| {
        last_event_id(&HeaderMap::from_iter([(
            LAST_EVENT_ID,
            value.parse().unwrap(),
        )]))
    };
    assert_eq!(
        id("1-2"),
        Some(EventId {
            stream: 1,
            event: 2
        })
    );
    for other in ["", "abc", "5", "1-2x", "-1-0"] {
        assert_eq!(id(other), None, "{other}");
    }
    assert_eq!(last_event_id(&HeaderMap::new()), None);
}

#[tokio::test]
async fn the_name_of_what_is_asked_for_is_repeated() {
    let client = TestHttpClient::new(StubServer::new(), HttpOptions::default()).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let reference = json!({"type": "ref/prompt", "name": "a"});
    let argument = json!({"name": "x", "value": ""});
    for (method, params, name) in [
        ("tools/call", json!({"name": "a", "_meta": meta}), Some("a")),
        (
            "prompts/get",
            json!({"name": "a", "uri": "b", "_meta": meta}),
            Some("a"),
        ),
        (
            "resources/read",
            json!({"uri": "test://a", "name": "b", "_meta": meta}),
            Some("test://a"),
        ),
        ("resources/list", json!({"_meta": meta}), None),
        (
            "completion/complete",
            json!({"ref": reference, "argument": argument, "_meta": meta}),
            None,
        ),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let headers = format!("Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n");
        let absent = client.post(&headers, &body).await;
        let Some(name) = name else {
            assert_eq!(absent.status, 200, "{method}");
            continue;
        };
        let refused = (absent.status, absent.body["error"]["message"].clone());
        assert_eq!(
            refused,
            (400, json!("Header mismatch: Mcp-Name is missing")),
            "{method}"
        );
        let right = client
            .post(&format!("{headers}Mcp-Name: {name}\r\n"), &body)
            .await;
        assert_eq!(
            (right.status, right.body.get("result").is_some()),
            (200, true),
            "{method}: {}",
            right.body
        );
        let wrong = client
            .post(&format!("{headers}Mcp-Name: b\r\n"), &body)
            .await;
        assert_eq!(
            (wrong.status, wrong.body["error"]["code"].clone()),
            (400, json!(-32020)),
            "{method}"
        );
    }
    client.stop().await;
}
