//! Authentication: tokens of the configuration and of an authorization server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use serde_json::{Value, json};

use crate::support::{
    DEADLINE, Folder, HttpResponse, HttpServer, TinyComponent, ToolbayCommand, initialize,
};

/// P-256 keys that are used only in tests.
pub(crate) const KEY: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgHm6kX/fmM+/SbGElAswma9bGdeabeRCnV4Y3roCEhv6hRANCAARGwXQ7MruX77NPMJAAiKvru/gbSGPrfAgd3oSrdJqO4QiROosuTP6GDAsCgczI3T0fGt1eXcJOf4KcMZEmqRgu";
pub(super) const OTHER_KEY: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgl48bGH0mZF+9PRLuxqX6/RXExPxLb//uuhlnGJSth6ahRANCAAQDsb8Xm1ZpdZ2hy1FJEiAgK3jbPWIlmh0bzcPIt6+FmEaihZMj/WJpeRgAEdsjo1Cs74HR19euhEJmTiD/9PMr";

pub(super) const RESOURCE: &str = "https://tools.example.com/mcp";
pub(super) const ISSUER: &str = "https://auth.example.com";

pub(crate) fn plugins() -> Folder {
    Folder::with(
        "a.wasm",
        TinyComponent::new(&["time.now", "time.zone", "secret"]).build(),
    )
}

/// Creates a token with the command that people use. Returns the token and the lines of the
/// configuration.
pub(crate) fn token(name: &str, tools: &str) -> (String, String) {
    let outcome = ToolbayCommand::new(&Folder::new())
        .args(["token", name])
        .run();
    assert_eq!(outcome.code, 0, "{outcome}");
    let token = outcome
        .stderr
        .split_whitespace()
        .find(|word| word.starts_with("toolbay_"))
        .unwrap();
    assert!(
        !outcome.raw_stdout.contains(token),
        "the token in the configuration"
    );
    (token.to_owned(), format!("{}{tools}\n", outcome.raw_stdout))
}

pub(crate) fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// Checks that the request is refused without details about the server, and returns the status and
/// the challenge.
pub(super) fn refused(response: HttpResponse) -> (u16, String) {
    let status = response.status;
    let challenge = response
        .header("www-authenticate")
        .unwrap_or_default()
        .to_owned();
    let said = response.text();
    assert!(
        !said.contains("time.") && !said.contains("secret"),
        "{said}"
    );
    (status, challenge)
}

pub(super) fn names(listed: &Value) -> Vec<&str> {
    listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[test]
fn a_token_allows_its_tools() {
    let (full, all) = token("full", "");
    let (partial, some) = token("partial", "tools = [\"time.*\"]");
    let server =
        HttpServer::start_with_config(&plugins(), &format!("log = \"trace\"\n{all}{some}"))
            .wait_until_ready();
    let with = |token: &str, method: &str, params: Value| {
        server.post_stateless(method, params, &[("Authorization", &bearer(token))])
    };
    let listed = with(&full, "tools/list", json!({})).response_message();
    assert_eq!(
        names(&listed["result"]),
        ["secret", "time.now", "time.zone"]
    );
    // A shared cache must not serve it to callers with fewer rights.
    assert_eq!(listed["result"]["cacheScope"], "private");
    let discovered = with(&full, "server/discover", json!({})).response_message();
    assert_eq!(discovered["result"]["cacheScope"], "private");
    let listed = with(&partial, "tools/list", json!({})).response_message();
    assert_eq!(names(&listed["result"]), ["time.now", "time.zone"]);
    assert_eq!(listed["result"]["cacheScope"], "private");
    assert!(
        with(&full, "tools/call", json!({"name": "secret"}))
            .response_message()
            .get("result")
            .is_some()
    );
    assert!(
        with(&partial, "tools/call", json!({"name": "time.now"}))
            .response_message()
            .get("result")
            .is_some()
    );
    // Tools that the token does not allow do not exist for its owner.
    let hidden = with(&partial, "tools/call", json!({"name": "secret"})).response_message();
    let nowhere = with(&partial, "tools/call", json!({"name": "nowhere"})).response_message();
    assert_eq!(
        hidden["error"],
        json!({"code": -32602, "message": "Unknown tool: secret"})
    );
    assert_eq!(
        nowhere["error"],
        json!({"code": -32602, "message": "Unknown tool: nowhere"})
    );

    // The same holds in a session, which belongs to the token that started it.
    let session =
        server.start_session_with_headers("2025-11-25", &[("Authorization", &bearer(&partial))]);
    let id = ("Mcp-Session-Id", session.id.as_str());
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let full_bearer = bearer(&full);
    assert_eq!(session.tool_names(), ["time.now", "time.zone"]);
    assert_eq!(
        server
            .post(&[id, ("Authorization", &full_bearer)], list.as_bytes())
            .status,
        404
    );
    assert_eq!(
        server
            .request(
                "DELETE",
                "/mcp",
                &[id, ("Authorization", &full_bearer)],
                b""
            )
            .status,
        404
    );
    assert_eq!(server.post(&[id], list.as_bytes()).status, 401);

    server.log.wait_for("token:partial");
    let log = server.log.text();
    assert!(
        !log.contains(&partial) && !log.contains(&full),
        "a token in the log"
    );
}

#[test]
fn without_a_valid_token_nothing_is_revealed() {
    let (_, config) = token("full", "");
    let server = HttpServer::start_with_config(&plugins(), &format!("log = \"trace\"\n{config}"))
        .wait_until_ready();
    let list =
        |headers: &[(&str, &str)]| refused(server.post_stateless("tools/list", json!({}), headers));
    assert_eq!(list(&[]), (401, "Bearer realm=\"toolbay\"".into()));
    for wrong in ["Bearer wrong", "bearer toolbay_wrong", "Bearer \u{1}"] {
        let (status, challenge) = list(&[("Authorization", wrong)]);
        assert_eq!(
            status,
            if wrong.contains('\u{1}') { 400 } else { 401 },
            "{wrong}"
        );
        assert!(
            status == 400 || challenge.contains("error=\"invalid_token\""),
            "{challenge}"
        );
    }
    for none in ["Bearer", "Bearer ", "Basic YTpi", ""] {
        assert_eq!(
            list(&[("Authorization", none)]),
            (401, "Bearer realm=\"toolbay\"".into()),
            "{none:?}"
        );
    }
    let body = initialize("2025-11-25").to_string();
    assert_eq!(refused(server.post(&[], body.as_bytes())).0, 401);
    assert_eq!(
        refused(server.get("/mcp", &[("Accept", "text/event-stream")])).0,
        401
    );
    assert_eq!(refused(server.request("DELETE", "/mcp", &[], b"")).0, 401);
    assert_eq!(
        refused(server.request("POST", "/mcp?access_token=in-the-address", &[], b"{}")).0,
        401
    );
    // A foreign page does not even learn that a token is required.
    assert_eq!(list(&[("Origin", "https://evil.example")]).0, 403);
    assert_eq!(server.get("/healthz", &[]).status, 200);
    assert_eq!(
        server
            .get("/.well-known/oauth-protected-resource", &[])
            .status,
        404
    );
    assert!(
        !server.log.text().contains("in-the-address"),
        "a token in the log"
    );
}

#[test]
fn rejected_requests_are_logged_at_a_limited_rate() {
    let (_, config) = token("full", "");
    let server = HttpServer::start_with_config(&plugins(), &config).wait_until_ready();
    let list = |headers: &[(&str, &str)]| {
        server
            .post_stateless("tools/list", json!({}), headers)
            .status
    };
    for number in 0..200 {
        let (name, other) = (
            format!("https://{number}.example"),
            format!("{number}.example"),
        );
        assert_eq!(list(&[]), 401);
        assert_eq!(list(&[("Authorization", &bearer(&name))]), 401);
        assert_eq!(list(&[("Origin", &name)]), 403);
        assert_eq!(server.get("/mcp", &[("Host", &other)]).status, 403);
        assert_eq!(server.get("/metrics", &[]).status, 401);
    }
    for reason in [
        "a bearer token is required (",
        "it is unknown (",
        "an Origin that is not",
        "a Host that is not",
    ] {
        let counts = |line: &str| line.contains(" rejected within ") && line.contains(reason);
        server.log.wait_for_matching(1, DEADLINE, counts).unwrap();
    }
    let log = server.log.text();
    assert!(
        log.contains("request rejected: the Origin \"https://0.example\" is not allowed"),
        "{log}"
    );
    assert!(!log.contains("https://1.example"), "{log}");
    let lines = log.lines().filter(|line| line.contains("rejected")).count();
    assert!(lines < 25, "{log}");
}

#[test]
fn an_address_that_is_not_loopback_requires_tokens() {
    let folder = Folder::new();
    let outcome = ToolbayCommand::new(&folder)
        .args(["serve", "--http", "0.0.0.0:0"])
        .run();
    assert_eq!(outcome.code, 64, "{outcome}");
    assert_eq!(
        outcome.stderr,
        "toolbay: 0.0.0.0:0 is reachable from other machines: set up tokens (http.tokens or http.oauth), or set http.anonymous = true\n"
    );
    std::fs::write(
        folder.sibling_path("toolbay.toml"),
        "[http]\nanonymous = true",
    )
    .unwrap();
    drop(HttpServer::run(ToolbayCommand::new(&folder).args([
        "serve",
        "--http",
        "0.0.0.0:0",
    ])));
}

pub(super) fn key(text: &str) -> EncodingKey {
    EncodingKey::from_ec_der(&BASE64.decode(text).unwrap())
}

pub(super) fn jwks(keys: &[(&str, &str)]) -> String {
    let keys = keys.iter().map(|(id, text)| {
        let mut jwk = Jwk::from_encoding_key(&key(text), Algorithm::ES256).unwrap();
        jwk.common.key_id = Some((*id).to_owned());
        jwk
    });
    serde_json::to_string(&JwkSet {
        keys: keys.collect(),
    })
    .unwrap()
}

/// Returns a token signed with `secret`. `change` overrides claims of a valid token.
pub(crate) fn jwt(id: &str, secret: &str, change: Value) -> String {
    signed(
        &Header {
            kid: Some(id.to_owned()),
            ..Header::new(Algorithm::ES256)
        },
        secret,
        change,
    )
}

/// Like [`jwt`], with another header.
pub(super) fn signed(header: &Header, secret: &str, change: Value) -> String {
    let mut claims = json!({
        "iss": ISSUER, "aud": [RESOURCE, "https://other.example"], "sub": "somebody",
        "exp": get_current_timestamp() + 600, "scope": "mcp time",
    });
    for (name, value) in change.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
        .as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    encode(header, &claims, &key(secret)).unwrap()
}

pub(super) fn resource() -> HttpServer {
    resource_with(&plugins(), "")
}

/// Like [`resource`], with this folder and additional configuration.
pub(crate) fn resource_with(folder: &Folder, more: &str) -> HttpServer {
    resource_with_oauth(folder, more, "")
}

/// Like [`resource_with`], with additional settings of `[http.oauth]`.
fn resource_with_oauth(folder: &Folder, more: &str, set: &str) -> HttpServer {
    std::fs::write(folder.sibling_path("keys.json"), jwks(&[("one", KEY)])).unwrap();
    let config = format!(
        "log = \"trace\"\n{more}\n[http.oauth]\nresource = \"{RESOURCE}\"\nauthorization_servers = [\"{ISSUER}\"]\n\
         jwks = \"keys.json\"\nrequired_scopes = [\"mcp\"]\n{set}\n\
         [http.oauth.tools]\ntime = [\"time.*\"]\nadmin = [\"*\"]"
    );
    HttpServer::start_with_config(folder, &config).wait_until_ready()
}

#[test]
fn a_token_of_the_authorization_server_allows_the_tools_of_its_scopes() {
    let server = resource();
    let list = |token: &str| {
        server.post_stateless(
            "tools/list",
            json!({}),
            &[("Authorization", &bearer(token))],
        )
    };
    let holds = jwt("one", KEY, json!({}));
    for _ in 0..2 {
        let listed = list(&holds).response_message();
        assert_eq!(names(&listed["result"]), ["time.now", "time.zone"]);
        assert_eq!(listed["result"]["cacheScope"], "private");
    }
    let admin = list(&jwt(
        "one",
        KEY,
        json!({"scope": null, "scp": ["mcp", "admin"]}),
    ))
    .response_message();
    assert_eq!(admin["result"]["cacheScope"], "private");
    assert_eq!(names(&admin["result"]), ["secret", "time.now", "time.zone"]);
    assert!(
        names(&list(&jwt("one", KEY, json!({"scope": "mcp"}))).response_message()["result"])
            .is_empty()
    );
    let one_audience = json!({"aud": RESOURCE});
    assert_eq!(list(&jwt("one", KEY, one_audience)).status, 200);
    let log = server.log.text();
    assert!(!log.contains(&holds), "a token in the log");
}

#[test]
fn an_invalid_token_is_rejected_with_the_reason() {
    let server = resource();
    let list = |token: &str| {
        refused(server.post_stateless(
            "tools/list",
            json!({}),
            &[("Authorization", &bearer(token))],
        ))
    };
    let now = get_current_timestamp();
    let metadata =
        "resource_metadata=\"https://tools.example.com/.well-known/oauth-protected-resource/mcp\"";
    for (token, why) in [
        (
            jwt("one", KEY, json!({"exp": now - 3600})),
            "it has expired",
        ),
        (
            jwt("one", KEY, json!({"exp": null})),
            "a required claim (exp, aud or iss) is missing",
        ),
        (
            jwt("one", KEY, json!({"nbf": now + 3600})),
            "it is not valid yet",
        ),
        (
            jwt("one", KEY, json!({"aud": format!("{RESOURCE}/")})),
            format!("its audience (aud) is {RESOURCE}/, and this server accepts {RESOURCE}")
                .as_str(),
        ),
        (
            jwt("one", KEY, json!({"aud": null})),
            "a required claim (exp, aud or iss) is missing",
        ),
        (
            jwt("one", KEY, json!({"iss": format!("{ISSUER}/")})),
            format!("its issuer (iss) is {ISSUER}/, and this server accepts {ISSUER}").as_str(),
        ),
        (
            jwt("one", KEY, json!({"iss": "\"e\\v\nil\u{e4}"})),
            "its issuer (iss) is evil, and",
        ),
        (
            jwt("one", KEY, json!({"iss": null})),
            "a required claim (exp, aud or iss) is missing",
        ),
        (jwt("one", OTHER_KEY, json!({})), "its signature is invalid"),
        (
            jwt("two", OTHER_KEY, json!({})),
            "its signing key is unknown",
        ),
        (unsigned(), "it is not"),
        (
            signed_with_a_public_key(),
            "it is not signed with an accepted algorithm",
        ),
        ("a.b.c".to_owned(), "it is not a JWT"),
    ] {
        let (status, challenge) = list(&token);
        assert_eq!(status, 401, "{why}");
        assert!(
            challenge.contains("error=\"invalid_token\"") && challenge.contains(why),
            "{why}: {challenge}"
        );
        assert!(
            challenge.contains(metadata) && challenge.contains("scope=\"admin mcp time\""),
            "{challenge}"
        );
    }
    let (status, challenge) = list(&jwt("one", KEY, json!({"scope": "time"})));
    assert_eq!(status, 403);
    assert!(
        challenge.contains("error=\"insufficient_scope\"") && challenge.contains("scope=\"mcp\""),
        "{challenge}"
    );
    let (status, challenge) = refused(server.post_stateless("tools/list", json!({}), &[]));
    assert!(
        status == 401 && challenge.contains(metadata) && !challenge.contains("error="),
        "{challenge}"
    );
    assert!(
        challenge.contains("scope=\"admin mcp time\""),
        "every scope that means something: {challenge}"
    );
}

#[test]
fn with_step_up_a_tool_of_another_scope_requests_that_scope() {
    let token = jwt("one", KEY, json!({}));
    let call = |server: &HttpServer, tool: &str| {
        server.post_stateless(
            "tools/call",
            json!({"name": tool}),
            &[("Authorization", &bearer(&token))],
        )
    };
    let quiet = resource();
    assert_eq!(
        call(&quiet, "secret").response_message()["error"]["code"],
        -32602,
        "nobody learns that it exists"
    );
    let server = resource_with_oauth(&plugins(), "", "step_up = true");
    let (status, challenge) = refused(call(&server, "secret"));
    assert_eq!(status, 403);
    assert!(
        challenge.contains("error=\"insufficient_scope\""),
        "{challenge}"
    );
    assert!(
        challenge.contains("scope=\"admin mcp\"") && challenge.contains("resource_metadata="),
        "{challenge}"
    );
    // Likewise in a session.
    let session =
        server.start_session_with_headers("2025-11-25", &[("Authorization", &bearer(&token))]);
    assert_eq!(
        session
            .request("tools/call", json!({"name": "secret"}))
            .status,
        403
    );
    assert_eq!(
        call(&server, "nothing").response_message()["error"]["code"],
        -32602,
        "what does not exist"
    );
    assert_eq!(call(&server, "time.now").status, 200);
}

/// Returns a token with `"alg": "none"`.
fn unsigned() -> String {
    let holds = jwt("one", KEY, json!({}));
    let claims = holds.split('.').nth(1).unwrap();
    let header =
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#);
    format!("{header}.{claims}.")
}

/// Returns a token signed with a secret that everyone has: the public key.
fn signed_with_a_public_key() -> String {
    let header = Header {
        kid: Some("one".into()),
        ..Header::new(Algorithm::HS256)
    };
    let claims = json!({"iss": ISSUER, "aud": RESOURCE, "exp": get_current_timestamp() + 600, "scope": "mcp admin"});
    encode(
        &header,
        &claims,
        &EncodingKey::from_secret(jwks(&[("one", KEY)]).as_bytes()),
    )
    .unwrap()
}

#[test]
fn the_metadata_names_the_authorization_servers() {
    let server = resource();
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        let response = server.get(path, &[]);
        assert_eq!(
            (response.status, response.header("content-type")),
            (200, Some("application/json"))
        );
        assert_eq!(
            response.json(),
            json!({
                "resource": RESOURCE,
                "resource_name": "Toolbay",
                "authorization_servers": [ISSUER],
                "scopes_supported": ["admin", "mcp", "time"],
                "bearer_methods_supported": ["header"],
            })
        );
    }
}

#[test]
fn unreadable_keys_prevent_the_start() {
    let folder = plugins();
    let config = format!(
        "[http.oauth]\nresource = \"{RESOURCE}\"\nauthorization_servers = [\"{ISSUER}\"]\njwks = \"keys.json\""
    );
    std::fs::write(folder.sibling_path("toolbay.toml"), config).unwrap();
    for (keys, why) in [
        (None, "keys.json: does not exist"),
        (Some("{"), "is not a JWK set"),
        (Some("{\"keys\":[]}"), "has no keys"),
    ] {
        if let Some(keys) = keys {
            std::fs::write(folder.sibling_path("keys.json"), keys).unwrap();
        }
        let outcome = ToolbayCommand::new(&folder)
            .args(["serve", "--http", "127.0.0.1:0"])
            .run();
        assert_ne!(outcome.code, 0);
        assert!(outcome.stderr.contains(why), "{outcome}");
    }
}
