//! Tests of `http`.

use toolbay_settings::toml_file;

use super::*;

fn said(text: &str) -> String {
    match toml_file::parse::<Http>("a.toml", text) {
        Ok(http) => http.check().unwrap_err().to_string(),
        Err(mistake) => mistake,
    }
}

#[test]
fn a_unix_socket_is_an_address_of_this_machine() {
    let mut http: Http =
        toml::from_str("listen = \"unix:run/mcp.sock\"\nsocket_mode = \"0660\"").unwrap();
    http.resolve(Path::new("/etc/toolbay"));
    assert_eq!(
        (http.listen.clone(), http.socket_mode),
        (
            Some(ListenAddress::Unix("/etc/toolbay/run/mcp.sock".into())),
            0o660
        )
    );
    http.check().unwrap();
    assert_eq!(Http::default().socket_mode, 0o600);
    let longest = format!("listen = \"unix:/{}\"", "x".repeat(106));
    toml::from_str::<Http>(&longest).unwrap().check().unwrap();
}

#[test]
fn default_shares_follow_their_limit() {
    let options = |text: &str| toml::from_str::<Http>(text).unwrap().options(true, None);
    let default = http::HttpOptions::default();
    let found = options("");
    assert_eq!(
        (
            found.connections_per_address,
            found.requests_per_caller,
            found.sessions_per_caller,
            found.sessions_per_address
        ),
        (
            default.connections_per_address,
            default.requests_per_caller,
            default.sessions_per_caller,
            default.sessions_per_address
        )
    );
    let few = options("connections = 3\nsessions = 100");
    assert_eq!(
        (few.connections_per_address, few.requests_per_caller),
        (64, 64)
    );
    assert_eq!(
        (few.sessions_per_caller, few.sessions_per_address),
        (64, 64)
    );
    let set = options(
        "connections_per_address = 1\nrequests_per_caller = 2\nsessions_per_caller = 3\nsessions_per_address = 4",
    );
    assert_eq!(
        (set.connections_per_address, set.requests_per_caller),
        (1, 2)
    );
    assert_eq!((set.sessions_per_caller, set.sessions_per_address), (3, 4));
}

#[test]
fn invalid_settings_are_reported_with_what_was_expected() {
    let hash = "0".repeat(64);
    let token =
        |name: &str, hash: &str| format!("[[tokens]]\nname = \"{name}\"\nsha256 = \"{hash}\"\n");
    let oauth = "[oauth]\nresource = \"tools\"\nauthorization_servers = []\njwks = \"keys.json\"";
    let two = |jwks: &str| {
        format!(
            "[oauth]\nresource = \"https://a.example/mcp\"\n\
                 authorization_servers = [\"https://b.example\", \"https://c.example\"]\n{jwks}"
        )
    };
    let cases = [
        said("sessions = 0"),
        said("sessions = true"),
        said("sessions = \"no\""),
        said("sessions = 1_000_001"),
        said("connections = \"many\""),
        said("connections = 10_000_000"),
        said("connections_per_address = 0"),
        said("requests_per_caller = \"few\""),
        said("sessions_per_caller = 0"),
        said("sessions_per_address = -1"),
        said("write_timeout = \"0s\""),
        said("stream_keep_alive = \"1ms\""),
        said("stream_keep_alive = \"0s\""),
        said("session_idle_timeout = \"2days\""),
        said("session_idle_timeout = \"0s\""),
        said("idle_timeout = 30"),
        said("resume = \"2days\""),
        said("resume_size = \"1KiB\""),
        said("poll_after = \"1ms\""),
        said("resume = \"0s\"\npoll_after = \"10s\""),
        said("sse = \"yes\""),
        said("listen = 8931"),
        said("listen = \"localhost\""),
        said("listen = \"unix:\""),
        said(&format!("listen = \"unix:/{}\"", "x".repeat(107))),
        said("listen = \"unix:/a\"\n[tls]\ncertificate = \"a\"\nkey = \"b\""),
        said("socket_mode = 432"),
        said("socket_mode = \"660\""),
        said("socket_mode = \"0888\""),
        said("socket_mode = \"4755\""),
        said("allowed_hosts = 7"),
        said("tokens = 7"),
        said("oauth = true"),
        said("allowed_origins = [\"https://a.example/\"]"),
        said("allowed_origins = \"a.example\""),
        said("allowed_hosts = [\"http://a.example\"]"),
        said("allowed_hosts = [\"*\"]"),
        said(&token("ci", "secret")),
        said(&[token("ci", &hash), token("ci", &hash)].concat()),
        said(&oauth.replace("[]", "[\"https://b.example\"]")),
        said(&oauth.replace("\"tools\"", "\"https://a.example/mcp\"")),
        said(&two("jwks = \"keys.json\"")),
        said(&two("jwks = 7")),
        said(&two("jwks = { \"https://b.example\" = \"b.json\" }")),
        said(&two(
            "jwks = { \"https://b.example\" = \"k.json\", \"https://c.example\" = \"k.json\" }",
        )),
        said(&two(
            "jwks = { \"https://b.example\" = \"b\", \"https://c.example\" = \"c\", \"https://d.example\" = \"d\" }",
        )),
        said(&two("jwks = \"keys.json\"").replace("c.example", "b.example")),
        said(&two(
            "jwks = \"keys.json\"\nmax_token_lifetime = \"2years\"",
        )),
        said(&two("jwks = \"keys.json\"\nmax_token_lifetime = \"0s\"")),
        said(&format!("anonymous = true\n{}", token("ci", &hash))),
        said("listen = \"0.0.0.0:1\""),
    ];
    insta::assert_snapshot!(cases.join("\n"));
    assert_eq!(
        said(&[token("ci", &hash), token("cd", &hash)].concat()),
        "http.tokens: \"cd\" and \"ci\" have the same sha256: which rights apply is ambiguous; remove one"
    );
    let empty = said(&two(
        "jwks = \"keys.json\"\n[oauth.tools]\n# read = [\"time_*\"]",
    ));
    assert!(
        empty.contains("oauth.tools: the table names no scope; add lines such as read"),
        "{empty}"
    );
    let own =
        two("jwks = { \"https://b.example\" = \"b.json\", \"https://c.example\" = \"c.json\" }");
    toml::from_str::<Http>(&own).unwrap().check().unwrap();
    toml::from_str::<Http>("listen = \"0.0.0.0:1\"\nanonymous = true\nallowed_hosts = \"a, b\"")
        .unwrap()
        .check()
        .unwrap();
}
