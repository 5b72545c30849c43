//! Which calls ask a person, and which calls an approval covers.

use super::*;
use crate::http::auth::token;
use crate::support::{TinyComponent, TinyTool, result_text};

#[test]
fn the_first_approval_is_valid_for_its_session_until_the_grant_changes() {
    let folder = folder("require_approval = \"first\"");
    let mut server = session(&folder, "2025-11-25", &form_capabilities());
    let mut call = |answer: Value| conversation(&mut server, count(), &mut |_| answer.clone());
    // A refusal is not remembered.
    let (response, asked) = call(json!({"result": {"action": "decline"}}));
    assert_eq!(
        (
            error_kind_and_text(&response["result"]).0.as_str(),
            asked.len()
        ),
        ("not-approved", 1)
    );
    let (response, asked) = call(json!({"result": approval_content()}));
    assert_eq!(
        (step_texts(&response["result"]), asked.len()),
        (vec!["1".to_owned()], 1)
    );
    let message = asked[0]["params"]["message"].as_str().unwrap();
    assert!(
        message.contains("A yes counts for all further calls of this tool in this session"),
        "{message}"
    );
    for expected in ["2", "3"] {
        let (response, asked) = call(json!({"result": approval_content()}));
        assert_eq!(
            (step_texts(&response["result"]), asked.len()),
            (vec![expected.to_owned()], 0)
        );
    }
    folder.put(
        "asker.toml",
        "require_approval = \"first\"\n[permissions.state]\n[permissions.scratch]\n",
    );
    let mut asked = 0;
    server.wait_until("it asks again", |server| {
        asked += conversation(
            server,
            count(),
            &mut |_| json!({"result": approval_content()}),
        )
        .1
        .len();
        asked > 0
    });
    assert_eq!(
        conversation(
            &mut server,
            count(),
            &mut |_| json!({"result": approval_content()})
        )
        .1
        .len(),
        0
    );
}

/// Several clients can share one address: each session is asked separately, and a request without a
/// session is always asked.
#[test]
fn approvals_of_callers_without_a_token_are_remembered_only_in_sessions() {
    let server = start_http(&folder("require_approval = \"first\""), "");
    let agreed = json!({"result": approval_content()});
    let [one, other] = ["2025-06-18", "2025-11-25"].map(|revision| {
        server.start_session_with_capabilities(revision, json!({"elicitation": {}}), &[])
    });
    assert_eq!(conversation_over_http(&one, count(), &agreed).1.len(), 1);
    assert_eq!(conversation_over_http(&one, count(), &agreed).1.len(), 0);
    assert_eq!(conversation_over_http(&other, count(), &agreed).1.len(), 1);
    for _ in 0..2 {
        let asked = stateless(&server, &count(), &form_capabilities(), &[]);
        let message = asked["result"]["inputRequests"][KEY]["params"]["message"]
            .as_str()
            .unwrap();
        assert!(
            message.contains("Your answer counts only for this call."),
            "{message}"
        );
        let response = stateless(
            &server,
            &with_answer(&count(), &asked["result"], Some(approval_content())),
            &form_capabilities(),
            &[],
        );
        assert_eq!(response["result"]["isError"], Value::Null);
    }
}

#[test]
fn without_a_session_the_first_approval_is_valid_for_its_caller() {
    let folder = folder("require_approval = \"first\"");
    let [(ada, of_ada), (bob, of_bob)] = ["ada", "bob"].map(|name| token(name, ""));
    let server = start_http(&folder, &format!("{of_ada}{of_bob}"));
    let [ada, bob] = [ada, bob].map(|token| format!("Bearer {token}"));
    let call = |token: &str| {
        stateless(
            &server,
            &count(),
            &form_capabilities(),
            &[("Authorization", token)],
        )
    };
    let asked = call(&ada);
    let message = asked["result"]["inputRequests"][KEY]["params"]["message"]
        .as_str()
        .unwrap();
    assert!(message.contains("within one hour"), "{message}");
    let good = with_answer(&count(), &asked["result"], Some(approval_content()));
    assert_eq!(
        step_texts(
            &stateless(
                &server,
                &good,
                &form_capabilities(),
                &[("Authorization", &ada)]
            )["result"]
        ),
        ["1"]
    );
    assert_eq!(step_texts(&call(&ada)["result"]), ["2"]);
    // The approval does not apply to other callers or to the caller's own sessions.
    with_answer(&count(), &call(&bob)["result"], None);
    let session = server.start_session_with_capabilities(
        "2025-11-25",
        form_capabilities(),
        &[("Authorization", &ada)],
    );
    assert_eq!(
        conversation_over_http(&session, count(), &json!({"result": approval_content()}))
            .1
            .len(),
        1
    );
    // With a remembered approval, the client need not support forms.
    let response = stateless(&server, &count(), &json!({}), &[("Authorization", &ada)]);
    assert_eq!(step_texts(&response["result"]), ["4"]);
}

/// Calls each tool and returns those that asked first.
fn tools_that_ask(grant: &str, config: &str) -> Vec<String> {
    let tools = vec![
        TinyTool::new("erase"),
        TinyTool {
            read_only: Some(false),
            ..TinyTool::new("write")
        },
        TinyTool {
            read_only: Some(true),
            ..TinyTool::new("look")
        },
    ];
    let folder = Folder::with("notes.wasm", TinyComponent::with_tools(tools).build());
    folder.put("notes.toml", grant);
    folder.write_config(config);
    let mut server = StdioServer::spawn(&folder);
    let client = json!({"name": "test", "version": "1"});
    server.result(
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": form_capabilities(), "clientInfo": client}),
    );
    server.notify("notifications/initialized", json!({}));
    let mut names = server.tool_names();
    names.retain(|name| {
        let (response, asked) = conversation(
            &mut server,
            json!({"name": name}),
            &mut |_| json!({"result": approval_content()}),
        );
        assert_eq!(result_text(&response["result"]), "fine");
        !asked.is_empty()
    });
    names
}

#[test]
fn approval_of_a_tool_overrides_the_grant_which_overrides_the_server() {
    for (grant, config, expected) in [
        ("", "", &[][..]),
        (
            "require_approval = \"always\"",
            "",
            &["erase", "look", "write"],
        ),
        (
            "require_approval = \"never\"",
            "require_approval = \"always\"",
            &[],
        ),
        (
            "",
            "require_approval = \"always\"",
            &["erase", "look", "write"],
        ),
        (
            "",
            "require_approval = \"destructive\"",
            &["erase", "write"],
        ),
        (
            "[tools.erase]\nrequire_approval = \"first\"",
            "",
            &["erase"],
        ),
        (
            "require_approval = \"always\"\n[tools.look]\nrequire_approval = \"never\"",
            "",
            &["erase", "write"],
        ),
        (
            "[tools.look]\nrequire_approval = \"never\"",
            "require_approval = \"always\"",
            &["erase", "write"],
        ),
        (
            "prefix = \"a\"\n[tools.erase]\nrequire_approval = \"always\"",
            "",
            &["a_erase"],
        ),
        // The operator's annotations take precedence, in either direction.
        (
            "require_approval = \"destructive\"\n[tools.erase]\nannotations = { destructive = false }",
            "",
            &["write"],
        ),
        (
            "require_approval = \"destructive\"\n[tools.erase]\nannotations = { read_only = true }",
            "",
            &["write"],
        ),
        (
            "require_approval = \"destructive\"\n[tools.look]\nannotations = { read_only = false }",
            "",
            &["erase", "look", "write"],
        ),
        ("[tools.look]\nrequire_approval = \"destructive\"", "", &[]),
    ] {
        assert_eq!(tools_that_ask(grant, config), expected, "{grant} {config}");
    }
}
