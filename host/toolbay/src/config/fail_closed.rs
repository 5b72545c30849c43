//! Tests that no mistake in a configuration key makes the server more permissive.

use std::fs;
use std::path::Path;

use super::{Config, Flags, RemainingTokens};

/// The tables whose keys are fields of a struct in this directory: table, file, struct.
const TABLES: &[(&str, &str, &str)] = &[
    ("", "../config.rs", "Config"),
    ("audit", "audit.rs", "AuditConfig"),
    ("compile", "compile.rs", "CompileConfig"),
    ("console", "console.rs", "ConsoleConfig"),
    ("describe", "describe.rs", "Describe"),
    ("engine", "engine.rs", "EngineConfig"),
    ("http", "http.rs", "Http"),
    ("http.oauth", "http/oauth.rs", "OAuth"),
    ("http.tls", "http.rs", "TlsConfig"),
    ("http_client", "http_client.rs", "HttpClient"),
    ("lock", "lock.rs", "LockConfig"),
    ("metrics", "metrics.rs", "MetricsConfig"),
    ("otel", "otel.rs", "OtelConfig"),
    ("record", "record.rs", "RecordConfig"),
    ("results", "results.rs", "ResultsConfig"),
    ("server", "server.rs", "ServerConfig"),
    ("state", "state.rs", "StateConfig"),
    ("approve", "approve.rs", "ApproveConfig"),
    ("tasks", "tasks.rs", "TasksConfig"),
];

/// Tables whose keys are defined elsewhere, with the keys that decide what is allowed.
const OTHERS: &[(&str, &[&str])] = &[
    ("circuit_breaker", &["crashes", "disable_duration"]),
    (
        "limits",
        &["fuel", "timeout", "memory", "concurrency", "http_requests"],
    ),
    (
        "ceilings",
        &["fuel", "timeout", "memory", "concurrency", "http_requests"],
    ),
    ("rate_limit", &["calls", "per", "shared"]),
    ("caller_rate_limit", &["calls", "per"]),
];

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/config"))
}

/// Returns the public fields of the struct with this name.
fn fields(file: &str, name: &str) -> Vec<String> {
    let source = fs::read_to_string(folder().join(file)).unwrap();
    let (_, rest) = source
        .split_once(&format!("pub struct {name} {{\n"))
        .unwrap_or_else(|| panic!("{name} in {file}"));
    let (body, _) = rest.split_once("\n}").unwrap();
    let field = |line: &str| Some(line.strip_prefix("    pub ")?.split_once(':')?.0.to_owned());
    body.lines().filter_map(field).collect()
}

fn keys() -> Vec<(&'static str, String)> {
    let own = TABLES
        .iter()
        .flat_map(|(table, file, name)| fields(file, name).into_iter().map(|key| (*table, key)));
    let others = OTHERS
        .iter()
        .flat_map(|(table, keys)| keys.iter().map(|key| (*table, (*key).to_owned())));
    own.chain(others).collect()
}

fn parse(text: &str) -> Result<Config, String> {
    let flags = Flags {
        plugins: Some(env!("CARGO_MANIFEST_DIR").into()),
        ..Flags::default()
    };
    Config::from_text(text, &[], &flags).map_err(|error| error.to_string())
}

#[test]
fn every_configuration_struct_is_covered() {
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(source) = fs::read_to_string(&path) else {
            continue;
        };
        let product = source.split("#[cfg(test)]").next().unwrap_or_default();
        let is_table = product.contains("#[serde(deny_unknown_fields, default)]\n")
            && name != "fail_closed.rs";
        assert!(
            !is_table || TABLES.iter().any(|(_, file, _)| *file == name),
            "{name} has keys that no test covers"
        );
    }
    assert!(keys().len() > 100, "{}", keys().len());
}

#[test]
fn a_misspelt_name_or_value_of_any_key_stops_the_program() {
    for (table, key) in keys() {
        let head = if table.is_empty() {
            String::new()
        } else {
            format!("[{table}]\n")
        };
        for wrong in [
            format!("{head}{key}x = 1\n"),
            format!("{head}{key} = [[[]]]\n"),
        ] {
            let mistake = parse(&wrong).expect_err(&wrong);
            assert!(mistake.starts_with("toolbay.toml:"), "{wrong}: {mistake}");
        }
        if !table.is_empty() {
            parse(&format!("[{table}x]\n{key} = 1\n")).unwrap_err();
        }
    }
}

#[test]
fn a_truncated_file_admits_no_caller_and_widens_no_token() {
    let token = |name: &str, digit: &str, more: &str| {
        format!(
            "[[http.tokens]]\nname = {name:?}\nsha256 = {:?}\n{more}\n",
            digit.repeat(64)
        )
    };
    let tokens = [
        token("ada", "a", "tools = [\"x.*\"]"),
        token("bob", "b", "tools = [\"y\", \"z\"]\nadmin = true"),
    ];
    let text = format!(
        "require_approval = \"always\"\n[limits]\nfuel = 1000\n{}",
        tokens.concat()
    );
    let running = parse(&text).unwrap();
    for cut in 0..text.len() {
        let half = text.get(..cut).unwrap();
        let narrowed = RemainingTokens::parse(half)
            .and_then(|remaining| running.with_remaining_tokens(&remaining));
        let next = parse(half)
            .ok()
            .map(|next| running.with_live_settings(&next).unwrap());
        for config in narrowed.iter().chain(&next) {
            assert!(config.http.needs_token(), "{half}");
            for token in &config.http.tokens {
                let before = running
                    .http
                    .tokens
                    .iter()
                    .find(|before| before.sha256 == token.sha256)
                    .unwrap();
                assert!(
                    token.tools == before.tools && token.admin <= before.admin,
                    "{half}"
                );
            }
        }
    }
}
