//! Requirements on the tokens of an authorization server, and the time for which they are trusted.

use std::time::Instant;

use jsonwebtoken::{Algorithm, Header, get_current_timestamp};
use serde_json::{Value, json};

use super::auth::{
    ISSUER, KEY, OTHER_KEY, RESOURCE, bearer, jwks, jwt, plugins, refused, resource, resource_with,
    signed,
};
use crate::support::{DEADLINE, HttpServer, error_kind_and_text};

fn list_status(server: &HttpServer, token: &str) -> u16 {
    server
        .post_stateless(
            "tools/list",
            json!({}),
            &[("Authorization", &bearer(token))],
        )
        .status
}

/// Returns the reason why the token is rejected.
fn rejection_reason(server: &HttpServer, token: &str) -> String {
    let (status, challenge) = refused(server.post_stateless(
        "tools/list",
        json!({}),
        &[("Authorization", &bearer(token))],
    ));
    assert_eq!(status, 401, "{challenge}");
    let (_, why) = challenge.split_once("the token was rejected: ").unwrap();
    why.split_once('"').unwrap().0.to_owned()
}

#[test]
fn a_key_is_trusted_only_for_its_issuer() {
    let folder = plugins();
    std::fs::write(folder.sibling_path("a.json"), jwks(&[("one", KEY)])).unwrap();
    std::fs::write(
        folder.sibling_path("b.json"),
        jwks(&[("one", OTHER_KEY), ("two", OTHER_KEY)]),
    )
    .unwrap();
    let config = format!(
        "[http.oauth]\nresource = \"{RESOURCE}\"\nauthorization_servers = [\"{ISSUER}\", \"https://b.example\"]\n\
         jwks = {{ \"{ISSUER}\" = \"a.json\", \"https://b.example\" = \"b.json\" }}"
    );
    let server = HttpServer::start_with_config(&folder, &config).wait_until_ready();
    let by = |issuer: &str, id: &str, key: &str| jwt(id, key, json!({"iss": issuer}));
    assert_eq!(list_status(&server, &by(ISSUER, "one", KEY)), 200);
    assert_eq!(
        list_status(&server, &by("https://b.example", "one", OTHER_KEY)),
        200
    );
    assert_eq!(
        list_status(&server, &by("https://b.example", "two", OTHER_KEY)),
        200
    );
    // Each of these tokens has the issuer of one key and the signature of the other.
    assert_eq!(
        rejection_reason(&server, &by(ISSUER, "one", OTHER_KEY)),
        "its signature is invalid"
    );
    assert_eq!(
        rejection_reason(&server, &by("https://b.example", "one", KEY)),
        "its signature is invalid"
    );
    assert_eq!(
        rejection_reason(&server, &by(ISSUER, "two", OTHER_KEY)),
        "its signing key is unknown"
    );
    let both = jwt(
        "one",
        OTHER_KEY,
        json!({"iss": [ISSUER, "https://b.example"]}),
    );
    assert_eq!(rejection_reason(&server, &both), "it is invalid");
    let metadata = server
        .get("/.well-known/oauth-protected-resource", &[])
        .json();
    assert_eq!(
        metadata["authorization_servers"],
        json!([ISSUER, "https://b.example"])
    );
}

#[test]
fn a_removed_key_is_not_trusted_for_long() {
    let server = resource();
    let token = jwt("one", KEY, json!({"exp": get_current_timestamp() + 80_000}));
    assert_eq!(list_status(&server, &token), 200);
    let session =
        server.start_session_with_headers("2025-11-25", &[("Authorization", &bearer(&token))]);
    let mut stream = session.open_stream();
    let begun = Instant::now();
    std::fs::write(
        server.folder().sibling_path("keys.json"),
        jwks(&[("two", OTHER_KEY)]),
    )
    .unwrap();
    while list_status(&server, &token) == 200 {
        assert!(begun.elapsed() < DEADLINE);
    }
    assert_eq!(
        rejection_reason(&server, &token),
        "its signing key is unknown"
    );
    assert_eq!(stream.next_message(), None, "what it opened ends as well");
    assert_eq!(list_status(&server, &jwt("two", OTHER_KEY, json!({}))), 200);
    // A truncated file removes no keys: the previous ones stay trusted, and the log states the
    // reason.
    std::fs::write(server.folder().sibling_path("keys.json"), "{").unwrap();
    server.log.wait_for("its previous keys stay trusted for 1m");
    assert_eq!(list_status(&server, &jwt("two", OTHER_KEY, json!({}))), 200);
    // An empty set removes them.
    std::fs::write(server.folder().sibling_path("keys.json"), "{\"keys\": []}").unwrap();
    server.log.wait_for("has no keys any more");
    assert_eq!(
        rejection_reason(&server, &jwt("two", OTHER_KEY, json!({}))),
        "its signing key is unknown"
    );
}

#[test]
fn streams_end_when_the_token_that_opened_them_expires() {
    let server = resource_with(&plugins(), "[http]\nsse = true");
    // The server tolerates a clock difference of one minute.
    let token = bearer(&jwt(
        "one",
        KEY,
        json!({"exp": get_current_timestamp() - 56}),
    ));
    let header = ("Authorization", token.as_str());
    let session = server.start_session_with_headers("2025-11-25", &[header]);
    let params = json!({"notifications": {"toolsListChanged": true}});
    let mut subscription = server.post_stateless("subscriptions/listen", params, &[header]);
    assert_eq!(
        subscription.next_message().unwrap()["method"],
        "notifications/subscriptions/acknowledged"
    );
    let mut old = server.get("/sse", &[header]);
    assert_eq!(old.next_event().unwrap().0, "endpoint");
    assert_eq!(session.open_stream().next_message(), None);
    assert_eq!(subscription.next_message(), None);
    assert_eq!(old.next_message(), None);
    let response = server.post_stateless("tools/list", json!({}), &[header]);
    assert_eq!(
        response.status, 401,
        "it was seen before, and is not trusted for that"
    );
}

#[test]
fn a_token_that_is_valid_for_too_long_is_rejected() {
    let server = resource();
    let now = get_current_timestamp();
    let too_long = "it is valid for longer than http.oauth.max_token_lifetime allows";
    let with = |exp: Value| jwt("one", KEY, json!({"exp": exp}));
    let fraction: Value = serde_json::from_str(&format!("{}.5", now + 600)).unwrap();
    for exp in [json!(now + 86_000), json!(now + 86_400), fraction] {
        assert_eq!(list_status(&server, &with(exp.clone())), 200, "{exp}");
    }
    for exp in [
        json!(now + 87_000),
        json!(1_u64 << 63),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(1e18),
    ] {
        for _ in 0..2 {
            assert_eq!(
                rejection_reason(&server, &with(exp.clone())),
                too_long,
                "{exp}"
            );
        }
    }
    for exp in [
        json!(1e300),
        json!(-1),
        json!("2099-01-01"),
        json!(null),
        json!([now + 600]),
    ] {
        let why = rejection_reason(&server, &with(exp.clone()));
        assert!(
            why == "a required claim (exp, aud or iss) is missing" || why == "it is invalid",
            "{exp}: {why}"
        );
    }
    drop(server);
    let folder = plugins();
    std::fs::write(folder.sibling_path("keys.json"), jwks(&[("one", KEY)])).unwrap();
    let config = format!(
        "[http.oauth]\nresource = \"{RESOURCE}\"\nauthorization_servers = [\"{ISSUER}\"]\njwks = \"keys.json\"\n\
         max_token_lifetime = \"5m\""
    );
    let server = HttpServer::start_with_config(&folder, &config).wait_until_ready();
    assert_eq!(list_status(&server, &with(json!(now + 200))), 200);
    assert_eq!(rejection_reason(&server, &with(json!(now + 600))), too_long);
}

#[test]
fn only_an_access_token_without_critical_extensions_is_accepted() {
    let server = resource();
    let with = |header: Header| {
        signed(
            &Header {
                kid: Some("one".into()),
                ..header
            },
            KEY,
            json!({}),
        )
    };
    let plain = || Header::new(Algorithm::ES256);
    let typed = |kind: Option<&str>| {
        with(Header {
            typ: kind.map(str::to_owned),
            ..plain()
        })
    };
    for fine in [
        None,
        Some("JWT"),
        Some("jwt"),
        Some("at+jwt"),
        Some("AT+JWT"),
        Some("application/at+jwt"),
    ] {
        assert_eq!(list_status(&server, &typed(fine)), 200, "{fine:?}");
    }
    for foreign in [
        "dpop+jwt",
        "logout+jwt",
        "JWE",
        "",
        "application/",
        "application/json",
        "at+jwt ",
    ] {
        assert_eq!(
            rejection_reason(&server, &typed(Some(foreign))),
            "it is not an access token (typ)",
            "{foreign:?}"
        );
    }
    for critical in [vec!["b64"], vec!["exp", "https://example.com/own"], vec![]] {
        let crit = Some(critical.iter().map(|name| (*name).to_owned()).collect());
        let why = rejection_reason(&server, &with(Header { crit, ..plain() }));
        assert_eq!(
            why, "its header has critical extensions (crit), and none is supported",
            "{critical:?}"
        );
    }
}

#[test]
fn a_key_that_is_not_for_signatures_verifies_no_token() {
    let folder = plugins();
    let server = resource_with(&folder, "");
    let token = jwt("one", KEY, json!({}));
    assert_eq!(list_status(&server, &token), 200);
    for change in [
        json!({"use": "enc"}),
        json!({"key_ops": ["sign"]}),
        json!({"alg": "ES384"}),
    ] {
        let mut keys: Value = serde_json::from_str(&jwks(&[("one", KEY)])).unwrap();
        for (name, value) in change.as_object().unwrap() {
            keys["keys"][0][name] = value.clone();
        }
        std::fs::write(folder.sibling_path("keys.json"), keys.to_string()).unwrap();
        let begun = Instant::now();
        let wanted = if change.get("alg").is_some() {
            "algorithm"
        } else {
            "use, key_ops"
        };
        while list_status(&server, &token) == 200
            || !rejection_reason(&server, &token).contains(wanted)
        {
            assert!(begun.elapsed() < DEADLINE, "{change}");
        }
    }
}

#[test]
fn tokens_without_a_subject_belong_to_different_callers() {
    let server = resource_with(
        &plugins(),
        "[caller_rate_limit]\ncalls = 1\nper = \"1h\"\n[rate_limit]\ncalls = 100\nper = \"1m\"",
    );
    let tokens = ["a", "b"].map(|id| {
        bearer(&jwt(
            "one",
            KEY,
            json!({"sub": null, "client_id": "app", "jti": id}),
        ))
    });
    let call = |token: &str| {
        let response = server
            .post_stateless(
                "tools/call",
                json!({"name": "time.now"}),
                &[("Authorization", token)],
            )
            .response_message();
        response["result"].clone()
    };
    for token in &tokens {
        assert!(
            call(token).get("isError").is_none(),
            "each has its own rate"
        );
        assert_eq!(error_kind_and_text(&call(token)).0, "rate-limited");
    }
    let session = server.start_session_with_headers("2025-11-25", &[("Authorization", &tokens[0])]);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let status = |token: &str| {
        let headers = [
            ("Mcp-Session-Id", session.id.as_str()),
            ("Authorization", token),
        ];
        server.post(&headers, ping.as_bytes()).status
    };
    assert_eq!((status(&tokens[0]), status(&tokens[1])), (200, 404));
    // An empty subject counts as none, and a subject that looks like the name of another caller is
    // not that caller.
    let empty = bearer(&jwt("one", KEY, json!({"sub": "", "jti": "c"})));
    assert!(call(&empty).get("isError").is_none());
    assert_eq!(status(&empty), 404);
    let long = jwt("one", KEY, json!({"sub": "x".repeat(256)}));
    assert_eq!(
        rejection_reason(&server, &long),
        "its subject (sub) is too long"
    );
    let logged = server.log.text();
    assert!(
        !tokens
            .iter()
            .any(|token| logged.contains(&token["Bearer ".len()..])),
        "a token in the log"
    );
}
