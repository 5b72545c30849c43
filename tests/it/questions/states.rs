//! Attacks on `requestState`: a state is valid for one retry of the request that it was issued for,
//! and for nothing else.

use super::*;
use crate::http::auth::token;
use crate::support::ToolbayCommand;

const BASE64URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns the error code and the reason of a server that rejects a request with these answers and
/// this state.
fn rejection(
    server: &HttpServer,
    method: &str,
    params: Value,
    headers: &[(&str, &str)],
) -> (i64, String) {
    let mut params = params;
    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": all_capabilities()});
    let response = server
        .post_stateless(method, params.clone(), headers)
        .response_message();
    let error = &response["error"];
    assert!(
        error.is_object(),
        "{method} {}: {response}",
        params["arguments"]
    );
    (
        error["code"].as_i64().unwrap(),
        error["data"]["reason"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    )
}

/// Makes a call that asks a question. Returns the parameters of the retry with the answers.
fn ask_and_answer(server: &HttpServer, call: &Value, headers: &[(&str, &str)]) -> Value {
    let mut params = call.clone();
    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": all_capabilities()});
    let response = server
        .post_stateless("tools/call", params, headers)
        .response_message();
    retry_params(call, &response["result"], &mut |key, _| accept_answer(key))
}

#[test]
fn every_change_of_a_state_is_refused() {
    let server = start_http(&folder(""));
    let call = steps(json!([{"ask": [form("who")]}]));
    let good = ask_and_answer(&server, &call, &[]);
    let state = good["requestState"].as_str().unwrap().to_owned();
    let other = ask_and_answer(&server, &call, &[])["requestState"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_ne!(state, other);
    let mut attacks: Vec<String> = Vec::new();
    // Changes single characters, spread over the whole text: the version, the nonce, the claim and
    // the tag.
    for part in 0..16 {
        let at = part * (state.len() - 1) / 15;
        let mut changed = state.clone().into_bytes();
        let digit = BASE64URL
            .iter()
            .position(|digit| *digit == changed[at])
            .unwrap();
        changed[at] = BASE64URL[digit ^ 0b10_0000];
        attacks.push(String::from_utf8(changed).unwrap());
    }
    let half = state.len() / 2;
    attacks.extend([
        String::new(),
        "x".to_owned(),
        state[..half].to_owned(),
        state[half..].to_owned(),
        format!("{state}{state}"),
        format!("{}{}", &state[..half], &other[half..]),
        format!("{state}AAAA"),
        format!("{state}="),
        format!(" {state}"),
        state.to_ascii_lowercase(),
        "A".repeat(state.len()),
        "A".repeat(3 << 20),
        "{}".to_owned(),
        "ü".repeat(100),
    ]);
    assert_eq!(attacks.len(), 30);
    for attack in attacks {
        let mut params = good.clone();
        params["requestState"] = attack.as_str().into();
        let shown = attack.get(..attack.floor_char_boundary(80)).unwrap();
        assert_eq!(
            rejection(&server, "tools/call", params, &[]),
            (-32_602, "tampered".to_owned()),
            "{shown}"
        );
    }
    for (malformed, what) in [
        (json!(7), "requestState must be the string"),
        (json!(null), "requestState must be the string"),
        (json!({"a": 1}), "requestState must be the string"),
    ] {
        let mut params = good.clone();
        params["requestState"] = malformed;
        let response = send_stateless(&server, "tools/call", params, &all_capabilities());
        assert_eq!(response["error"]["code"], -32_602, "{response}");
        assert!(
            response["error"]["message"]
                .as_str()
                .unwrap()
                .contains(what),
            "{response}"
        );
    }
    // The original state is still valid.
    let response = send_stateless(&server, "tools/call", good, &all_capabilities());
    assert_eq!(step_outputs(&response["result"]).len(), 1, "{response}");
}

#[test]
fn a_state_belongs_to_one_request_of_one_caller() {
    let folder = folder("");
    let [(ada, of_ada), (bob, of_bob)] = ["ada", "bob"].map(|name| token(name, ""));
    let [ada, bob] = [ada, bob].map(|token| format!("Bearer {token}"));
    let ada = [("Authorization", ada.as_str())];
    let bob = [("Authorization", bob.as_str())];
    let server = HttpServer::start_with_config(&folder, &format!("{of_ada}{of_bob}"));
    let listed = || {
        let mut params = json!({});
        params["_meta"] = json!({});
        server
            .post_stateless("tools/list", params, &ada)
            .response_message()["result"]["tools"]
            .to_string()
    };
    while !listed().contains("\"ask\"") {
        std::thread::yield_now();
    }
    let call = steps(json!([{"ask": [form("who")]}]));
    let good = ask_and_answer(&server, &call, &ada);
    let foreign = (-32_602, "foreign".to_owned());
    assert_eq!(
        rejection(&server, "tools/call", good.clone(), &bob),
        foreign,
        "another caller"
    );
    let mut other = good.clone();
    other["arguments"] = steps(json!([{"ask": [form("whom")]}]))["arguments"].clone();
    assert_eq!(
        rejection(&server, "tools/call", other, &ada),
        foreign,
        "other arguments"
    );
    let mut other = good.clone();
    other["arguments"]["steps"][0]["ask"][0]["optional"] = false.into();
    assert_eq!(
        rejection(&server, "tools/call", other, &ada),
        foreign,
        "one argument more"
    );
    let mut other = good.clone();
    other["name"] = "another".into();
    assert_eq!(
        rejection(&server, "tools/call", other, &ada),
        foreign,
        "another tool"
    );
    let mut other = good.clone();
    other["name"] = "about".into();
    other.as_object_mut().unwrap().remove("arguments");
    assert_eq!(
        rejection(&server, "prompts/get", other.clone(), &ada),
        foreign,
        "a prompt"
    );
    let other = json!({"uri": "asker://names/1", "inputResponses": good["inputResponses"], "requestState": good["requestState"]});
    assert_eq!(
        rejection(&server, "resources/read", other, &ada),
        foreign,
        "a resource"
    );
    // A state can be used only once.
    let mut params = good.clone();
    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": all_capabilities()});
    let response = server
        .post_stateless("tools/call", params, &ada)
        .response_message();
    assert_eq!(
        step_outputs(&response["result"]),
        [accept_answer("who").to_string()]
    );
    assert_eq!(
        rejection(&server, "tools/call", good, &ada),
        (-32_602, "used".to_owned())
    );
}

#[test]
fn a_state_is_rejected_after_a_change_of_its_plugin_or_grant() {
    let folder = folder("");
    let server = start_http(&folder);
    let call = steps(json!([{"ask": [form("who")]}]));
    let outdated = (-32_602, "outdated".to_owned());
    for (word, grant) in [
        ("one", "[limits]\nfuel = 9000000000"),
        ("two", "[config]\na = 1"),
    ] {
        let good = ask_and_answer(&server, &call, &[]);
        folder.put(
            "asker.toml",
            format!("{grant}\n[tools.ask]\ndescription = \"{word}\""),
        );
        while server.result("tools/list", json!({}))["tools"][0]["description"] != word {
            std::thread::yield_now();
        }
        assert_eq!(
            rejection(&server, "tools/call", good, &[]),
            outdated,
            "{grant}"
        );
    }
    let good = ask_and_answer(&server, &call, &[]);
    folder.remove("asker.wasm");
    while server.result("tools/list", json!({}))["tools"] != json!([]) {
        std::thread::yield_now();
    }
    let (code, _) = rejection(&server, "tools/call", good, &[]);
    assert_eq!(code, -32_602, "there is no such tool any more");
}

#[test]
fn answers_with_unknown_keys_or_to_answered_questions_are_ignored() {
    let server = start_http(&folder(""));
    let call = steps(json!([{"ask": [form("one")]}, {"ask": [form("two")]}]));
    // A client may send answers without a state if it expects the questions.
    let mut params = call.clone();
    params["inputResponses"] =
        json!({"one": accept_answer("early"), "three": accept_answer("nobody")});
    let mut response = send_stateless(&server, "tools/call", params, &all_capabilities());
    let first = response["result"].take();
    assert_eq!(
        first["inputRequests"]
            .as_object()
            .unwrap()
            .keys()
            .collect::<Vec<_>>(),
        ["two"]
    );
    // With a state, only the questions that were issued with it can be answered: `one` was answered
    // already.
    let mut params = retry_params(&call, &first, &mut |key, _| accept_answer(key));
    params["inputResponses"]["one"] = accept_answer("late");
    let response = send_stateless(&server, "tools/call", params, &all_capabilities());
    assert_eq!(
        step_outputs(&response["result"]),
        [
            accept_answer("early").to_string(),
            accept_answer("two").to_string()
        ]
    );
    for wrong in [json!(7), json!([]), json!("x"), json!({"a": 1, "b": null})] {
        let mut params = call.clone();
        params["inputResponses"] = wrong.clone();
        let response = send_stateless(&server, "tools/call", params, &all_capabilities());
        if wrong.is_object() {
            assert_eq!(
                response["result"]["resultType"], "input_required",
                "{response}"
            );
        } else {
            assert_eq!(response["error"]["code"], -32_602, "{wrong}: {response}");
        }
    }
}

/// Servers with a key from the environment accept each other's states; a server with another key
/// does not.
#[test]
fn servers_with_the_same_key_accept_each_others_states() {
    let call = steps(json!([{"ask": [form("who")]}]));
    let start = |key: &str| {
        let folder = folder("");
        folder.write_config("[server]\nrequest_state_key_variable = \"STATE_KEY\"");
        let command = ToolbayCommand::new(&folder)
            .args(["serve", "--http", "127.0.0.1:0"])
            .env("STATE_KEY", &key.repeat(32));
        let server = HttpServer::run(command).wait_until_ready();
        while !server.result("tools/list", json!({}))["tools"]
            .to_string()
            .contains("\"ask\"")
        {
            std::thread::yield_now();
        }
        server
    };
    let one = start("ab");
    let two = start("ab");
    let other = start("cd");
    let good = ask_and_answer(&one, &call, &[]);
    assert_eq!(
        rejection(&other, "tools/call", good.clone(), &[]),
        (-32_602, "tampered".to_owned())
    );
    let response = send_stateless(&two, "tools/call", good, &all_capabilities());
    assert_eq!(
        step_outputs(&response["result"]),
        [accept_answer("who").to_string()]
    );
    let folder = folder("");
    folder.write_config("[server]\nrequest_state_key_variable = \"STATE_KEY\"");
    let outcome = ToolbayCommand::new(&folder)
        .args(["serve"])
        .env("STATE_KEY", "too short")
        .run();
    assert_eq!(outcome.code, 64, "{outcome}");
    assert!(
        outcome.stderr.contains("must have 64 hexadecimal digits")
            && !outcome.stderr.contains("too short"),
        "{outcome}"
    );
}
