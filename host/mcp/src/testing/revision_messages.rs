//! Tests of the messages that clients of each revision receive.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::exchange::resource_subscriptions::MAX_URI_BYTES;
use crate::host::interface::ServerInfo;
use crate::lists::access_rights::CallerRights;
use crate::protocol::revision::Revision;
use crate::testing::revision_changes::revision_changes;
use crate::testing::stub_host::StubServer;
use crate::testing::stub_items::{ASKING, URIS};
use crate::testing::test_peer::{TestPeer, rights_to};

/// The lists, with the items of the first and second page if a page has two items.
const LISTS: [(&str, &str, &str, [&str; 3]); 4] = [
    ("tools/list", "tools", "name", ["a", "b", "c"]),
    ("prompts/list", "prompts", "name", ["a", "b", "c"]),
    ("resources/list", "resources", "uri", URIS),
    (
        "resources/templates/list",
        "resourceTemplates",
        "uriTemplate",
        ["memo://1/{id}", "memo://2/{id}", "memo://3/{id}"],
    ),
];

/// Returns a host with pages of two items.
fn small_pages() -> Arc<StubServer> {
    StubServer::with(|options| options.page_size = 2)
}

/// Returns the responses to a request, in each revision in which they differ from the previous one.
async fn in_every_revision(method: &str, params: Value) -> String {
    let mut responses = Vec::new();
    for revision in Revision::ALL {
        let mut peer = TestPeer::with_rights(small_pages(), revision, CallerRights::All).await;
        let mut response = peer.request_response(method, params.clone()).await;
        let result = if response.get("result").is_some() {
            "result"
        } else {
            "error"
        };
        let mut result = response[result].take();
        redact_dates(&mut result, revision);
        responses.push((revision, format!("{result:#}")));
    }
    revision_changes(responses).replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

/// Checks and replaces the dates of revisions, which change with each revision.
fn redact_dates(result: &mut Value, revision: Revision) {
    if let Some(chosen) = result.get_mut("protocolVersion") {
        assert_eq!(*chosen, revision.as_str());
        *chosen = "REVISION".into();
    }
    if let Some(supported) = result.get_mut("supportedVersions") {
        assert_eq!(*supported, json!(Revision::dates()));
        *supported = "REVISIONS".into();
    }
}

#[tokio::test]
async fn every_method_in_every_revision() {
    let prompt = json!({"type": "ref/prompt", "name": "a"});
    let cases = [
        ("discover", "server/discover", json!({})),
        ("tools_list", "tools/list", json!({})),
        ("tools_call", "tools/call", json!({"name": "a"})),
        ("prompts_list", "prompts/list", json!({})),
        (
            "prompts_get",
            "prompts/get",
            json!({"name": "a", "arguments": {"x": "1"}}),
        ),
        ("resources_list", "resources/list", json!({})),
        ("templates_list", "resources/templates/list", json!({})),
        (
            "resources_read",
            "resources/read",
            json!({"uri": "memo://1/7"}),
        ),
        (
            "resources_read_unknown",
            "resources/read",
            json!({"uri": "memo://4/7"}),
        ),
        (
            "resources_subscribe",
            "resources/subscribe",
            json!({"uri": "test://a"}),
        ),
        (
            "resources_unsubscribe",
            "resources/unsubscribe",
            json!({"uri": "test://a"}),
        ),
        (
            "completion",
            "completion/complete",
            json!({"ref": prompt, "argument": {"name": "y", "value": "1"}, "context": {"arguments": {"x": "0"}}}),
        ),
    ];
    for (name, method, params) in cases {
        insta::assert_snapshot!(name, in_every_revision(method, params).await);
    }
}

#[tokio::test]
async fn the_server_describes_itself_in_every_revision() {
    let mut descriptions = Vec::new();
    for revision in Revision::ALL {
        let host = StubServer::with(|options| {
            options.server = ServerInfo {
                title: Some("Workshop".into()),
                description: Some("Tools of the workshop.".into()),
                website_url: Some("https://workshop.example".into()),
                icons: vec![toolbay_model::Icon {
                    src: "data:,".into(),
                    mime_type: None,
                    sizes: vec!["any".into()],
                    theme: None,
                }],
            };
        });
        let mut peer = TestPeer::with_rights(host, revision, CallerRights::All).await;
        let hello = json!({"protocolVersion": revision.as_str(), "capabilities": {}});
        let method = if revision.features().sessions {
            "initialize"
        } else {
            "server/discover"
        };
        let mut result = peer.result(method, hello).await;
        redact_dates(&mut result, revision);
        let mut text = format!("{result:#}");
        if !revision.features().sessions {
            let read = peer
                .result("resources/read", json!({"uri": "test://a"}))
                .await;
            let _ = write!(text, "\nany other result\n{:#}", read["_meta"]);
        }
        descriptions.push((revision, text));
    }
    insta::assert_snapshot!(
        revision_changes(descriptions).replace(env!("CARGO_PKG_VERSION"), "VERSION")
    );
}

#[tokio::test]
async fn every_list_has_a_second_page() {
    for revision in Revision::ALL {
        let host = small_pages();
        for (method, member, name, expected) in LISTS {
            // In the second round, the pages are already cached.
            for _ in 0..2 {
                let mut peer =
                    TestPeer::with_rights(Arc::clone(&host), revision, CallerRights::All).await;
                let first = peer.result(method, json!({})).await;
                let second = peer
                    .result(method, json!({"cursor": first["nextCursor"]}))
                    .await;
                let names = |page: &Value| -> Vec<String> {
                    let items = page[member].as_array().unwrap();
                    items
                        .iter()
                        .map(|item| item[name].as_str().unwrap().to_owned())
                        .collect()
                };
                assert_eq!(names(&first), expected[..2], "{method} in {revision}");
                assert_eq!(names(&second), expected[2..], "{method} in {revision}");
                assert_eq!(second.get("nextCursor"), None);
            }
        }
    }
}

#[tokio::test]
async fn a_cursor_of_another_list_is_rejected() {
    let mut peer = TestPeer::with_rights(small_pages(), Revision::NEWEST, CallerRights::All).await;
    for (from, ..) in LISTS {
        let cursor = peer.result(from, json!({})).await["nextCursor"].clone();
        for (to, ..) in LISTS.into_iter().filter(|(to, ..)| *to != from) {
            let error = peer.error(to, json!({"cursor": cursor})).await;
            assert_eq!(
                (error["code"].clone(), error["message"].clone()),
                (json!(-32602), json!("Invalid cursor")),
                "{to}"
            );
        }
        assert_eq!(
            peer.error(from, json!({"cursor": "x".repeat(1 << 20)}))
                .await["code"],
            -32602
        );
        assert_eq!(peer.error(from, json!({"cursor": 7})).await["code"], -32602);
    }
}

#[tokio::test]
async fn lists_wait_for_plugins_and_delay_nothing_else() {
    for (method, ..) in LISTS
        .into_iter()
        .chain([("resources/subscribe", "", "", [""; 3])])
    {
        let mut peer = TestPeer::new(Revision::NEWEST_SESSION).await;
        peer.host.set_complete(false);
        let waiting = peer.request(method, json!({"uri": "test://a"})).await;
        peer.result("ping", json!({})).await;
        peer.host.set_complete(true);
        assert_eq!(peer.next_notification().await["id"], waiting, "{method}");
    }
}

#[tokio::test]
async fn forbidden_items_do_not_exist_for_the_caller() {
    let host = StubServer::new();
    for revision in Revision::ALL {
        let mut peer =
            TestPeer::with_rights(Arc::clone(&host), revision, rights_to("test://a")).await;
        for (method, member, ..) in LISTS {
            let count = peer.result(method, json!({})).await[member]
                .as_array()
                .unwrap()
                .len();
            assert_eq!(count, usize::from(method == "resources/list"), "{method}");
        }
        peer.result("resources/read", json!({"uri": "test://a"}))
            .await;
        let hidden = peer
            .error("resources/read", json!({"uri": "test://b"}))
            .await;
        let missing = peer
            .error("resources/read", json!({"uri": "test://x"}))
            .await;
        assert_eq!(hidden["code"], missing["code"]);
        assert_eq!(hidden["data"], json!({"uri": "test://b"}));
        assert_eq!(
            peer.error("prompts/get", json!({"name": "a"})).await["message"],
            "Unknown prompt: a"
        );
        let template = json!({"type": "ref/resource", "uri": "memo://1/{id}"});
        let argument = json!({"name": "id", "value": ""});
        let error = peer
            .error(
                "completion/complete",
                json!({"ref": template, "argument": argument}),
            )
            .await;
        assert_eq!(error["message"], "Unknown resource template: memo://1/{id}");
        if revision.features().sessions {
            let refused = peer
                .error("resources/subscribe", json!({"uri": "test://b"}))
                .await;
            assert_eq!(
                (refused["code"].clone(), refused["data"].clone()),
                (json!(-32002), json!({"uri": "test://b"}))
            );
        }
    }
}

#[tokio::test]
async fn malformed_parameters_are_named() {
    let mut peer = TestPeer::new(Revision::NEWEST).await;
    let mut said = Vec::new();
    for (method, params) in [
        ("prompts/get", json!({})),
        ("prompts/get", json!({"name": "a", "arguments": {"x": 1}})),
        ("prompts/get", json!({"name": "a", "arguments": ["x"]})),
        ("resources/read", json!({})),
        ("resources/read", json!({"uri": ["test://a"]})),
        (
            "completion/complete",
            json!({"argument": {"name": "x", "value": ""}}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/tool", "name": "a"}, "argument": {"name": "x", "value": ""}}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt"}, "argument": {"name": "x", "value": ""}}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "x"}}),
        ),
        (
            "subscriptions/listen",
            json!({"notifications": {"resourceSubscriptions": "test://a"}}),
        ),
    ] {
        let error = peer.error(method, params).await;
        said.push(format!(
            "{method}: {}: {}",
            error["code"],
            error["message"].as_str().unwrap()
        ));
    }
    insta::assert_snapshot!(said.join("\n"));
}

#[tokio::test]
async fn a_uri_of_a_megabyte_is_rejected_with_a_short_message() {
    let long = format!("memo://1/{}", "x".repeat(1 << 20));
    for revision in Revision::ALL {
        let mut peer = TestPeer::new(revision).await;
        let reference = json!({"type": "ref/resource", "uri": long});
        let mut cases = vec![
            ("resources/read", json!({"uri": long})),
            (
                "completion/complete",
                json!({"ref": reference, "argument": {"name": "id", "value": ""}}),
            ),
            ("prompts/get", json!({"name": long})),
        ];
        if revision.features().sessions {
            cases.push(("resources/subscribe", json!({"uri": long})));
            assert_eq!(
                peer.result("resources/unsubscribe", json!({"uri": long}))
                    .await,
                json!({})
            );
        }
        for (method, params) in cases {
            let error = peer.error(method, params).await;
            assert!(
                error.to_string().len() < 2 * MAX_URI_BYTES,
                "{method}: {:.300}",
                error.to_string()
            );
            assert!(
                matches!(error["code"].as_i64(), Some(-32602 | -32002)),
                "{method}: {:.300}",
                error.to_string()
            );
        }
        let fits = format!("memo://1/{}", "x".repeat(MAX_URI_BYTES - 9));
        peer.result("resources/read", json!({"uri": fits})).await;
    }
}

#[tokio::test]
async fn a_batch_has_all_methods() {
    let mut peer = TestPeer::new(Revision::V2025_03_26).await;
    let request = |id: u64, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let reference = json!({"type": "ref/prompt", "name": "a"});
    let batch = json!([
        request(1, "prompts/list", json!({})),
        request(2, "prompts/get", json!({"name": "a"})),
        request(3, "resources/list", json!({})),
        request(4, "resources/templates/list", json!({})),
        request(5, "resources/read", json!({"uri": "test://a"})),
        request(6, "resources/subscribe", json!({"uri": "test://a"})),
        request(
            7,
            "completion/complete",
            json!({"ref": reference, "argument": {"name": "x", "value": ""}})
        ),
        request(8, "resources/read", json!({"uri": "test://x"})),
        request(9, "tools/call", json!({"name": "a"})),
    ]);
    peer.send(&batch).await;
    let answers = peer.receive().await;
    let mut ids: Vec<_> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| answer["id"].as_u64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=9).collect::<Vec<_>>());
    for answer in answers.as_array().unwrap() {
        assert_eq!(answer.get("error").is_some(), answer["id"] == 8, "{answer}");
    }
    peer.host.updates().notify_changed("test://a");
    assert_eq!(
        peer.receive().await["method"],
        "notifications/resources/updated"
    );
}

#[tokio::test]
async fn progress_of_every_method_that_enters_a_plugin() {
    let reference = json!({"type": "ref/prompt", "name": "a"});
    for (method, mut params) in [
        ("tools/call", json!({"name": "a"})),
        ("prompts/get", json!({"name": "a"})),
        ("resources/read", json!({"uri": "test://a"})),
        (
            "completion/complete",
            json!({"ref": reference, "argument": {"name": "x", "value": ""}}),
        ),
    ] {
        let mut peer = TestPeer::new(Revision::NEWEST_SESSION).await;
        params["_meta"] = json!({"progressToken": "p"});
        peer.result(method, params).await;
        let progress = peer.next_notification().await;
        assert_eq!(
            (
                progress["method"].clone(),
                progress["params"]["progressToken"].clone()
            ),
            ("notifications/progress".into(), "p".into())
        );
    }
}

#[tokio::test]
async fn unanswerable_questions_are_an_internal_error() {
    for revision in Revision::ALL {
        let mut peer = TestPeer::new(revision).await;
        let error = peer.error("prompts/get", json!({"name": ASKING})).await;
        assert_eq!(error["code"], -32603, "{error}");
    }
}
