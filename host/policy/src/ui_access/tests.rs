//! Tests of `ui_access`.

use proptest::prelude::*;
use proptest::sample::select;
use toolbay_settings::toml_file;

use super::*;
use crate::permissions::Permissions;

fn access(text: &str) -> UiAccess {
    toml_file::parse("a.toml", text).unwrap()
}

#[test]
fn every_key_is_read() {
    let text = "connect = [\"https://api.example.com\", \"wss://live.example.com\"]\n\
            resources = [\"https://*.example.org\"]\nframes = [\"https://a.example\"]\nbase = [\"https://b.example\"]\n\
            permissions = [\"camera\", \"microphone\", \"geolocation\", \"clipboard-write\"]\ndomain = \"a.example\"";
    let all = access(text);
    assert_eq!(all.permissions, UiPermission::ALL);
    assert_eq!(access(&toml::to_string(&all).unwrap()), all);
    assert_eq!((all.summary_lines().len(), all.remedies().len()), (6, 6));
    let granted: Permissions = toml_file::parse("a.toml", &all.remedies().join("\n")).unwrap();
    assert_eq!(granted.ui, all);
    let mut sum = UiAccess::default();
    (0..2).for_each(|_| sum.merge(&all));
    assert_eq!(sum, all);
    assert!(access("").is_empty() && access("").summary_lines().is_empty());
}

#[test]
fn a_mistake_names_its_place_and_the_nearest_key() {
    let mistakes = [
        "[ui]\nconect = []",
        "[ui]\nresource = []",
        "[ui]\nframe = []",
        "[ui]\nscripts = []",
        "[ui]\nconnect = [\"*\"]",
        "[ui]\nresources = [\"wss://a.example\"]",
        "[ui]\nconnect = [\"https://a.example; script-src *\"]",
        "[ui]\npermissions = [\"clipboard\"]",
        "[ui]\npermissions = [\"clipboardWrite\"]",
        "[ui]\ndomain = \"https://a.example\"",
        "[ui]\nconnect = \"https://a.example\"",
    ];
    let parse = |text: &str| toml_file::parse::<Permissions>("a.toml", text).unwrap_err();
    let messages: Vec<String> = mistakes.iter().map(|text| parse(text)).collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_view_gets_what_it_asks_for_and_is_granted() {
    let granted = access(
        "connect = [\"https://api.example.com\"]\nresources = [\"https://cdn.example.org\"]\npermissions = [\"camera\"]",
    );
    let requested = access(
        "connect = [\"https://api.example.com\", \"https://api.example.com\", \"https://evil.example\"]\n\
             resources = [\"https://*.example.org\"]\nframes = [\"https://a.example\"]\nbase = [\"https://b.example\"]\n\
             permissions = [\"camera\", \"microphone\"]\ndomain = \"c.example\"",
    );
    let (allowed, denied) = granted.restrict(&requested);
    assert_eq!(allowed, granted);
    let messages: Vec<String> = denied
        .iter()
        .map(|denied| format!("{denied}: {}", denied.remedy()))
        .collect();
    insta::assert_snapshot!(messages.join("\n"));
    assert_eq!(
        UiAccess::default().restrict(&requested).0,
        UiAccess::default()
    );
    assert_eq!(
        granted.restrict(&UiAccess::default()),
        (UiAccess::default(), Vec::new())
    );
    for denied in denied {
        let more: Permissions = toml_file::parse("a.toml", &denied.remedy()).unwrap();
        assert!(!more.ui.is_empty(), "{denied:?}");
    }
}

/// Texts as an attacker would write them.
fn origin() -> impl Strategy<Value = String> {
    let scheme = select(vec![
        "https://", "http://", "wss://", "ws://", "HTTPS://", "data:", "blob:", "//", "", "'", "*",
    ]);
    let host = select(vec![
        "a.example",
        "*.a.example",
        "b.a.example",
        "*.b.a.example",
        "A.EXAMPLE",
        "a.example.",
        "*",
        "*.example",
        "localhost",
        "127.0.0.1",
        "[::1]",
        "'self'",
        "self'",
        "a example",
        "bücher.example",
        "a。example",
        "",
    ]);
    let end = select(vec![
        "",
        "",
        "",
        ":443",
        ":80",
        ":8080",
        ":*",
        "/",
        "/x",
        "; script-src *",
        " 'unsafe-inline'",
        "\n",
        ",",
        "?",
        "#",
        "%3b",
        "\u{0}",
        "@b.example",
    ]);
    prop_oneof![
        (scheme, host, end).prop_map(|(scheme, host, end)| format!("{scheme}{host}{end}")),
        ".{0,40}"
    ]
}

fn accesses() -> impl Strategy<Value = UiAccess> {
    let origins = || {
        prop::collection::vec(origin(), 0..6).prop_map(|texts| {
            texts
                .iter()
                .filter_map(|text| WebOrigin::parse(text).ok())
                .collect::<Vec<_>>()
        })
    };
    let permissions = prop::collection::vec(select(UiPermission::ALL.to_vec()), 0..4);
    let domain = select(vec![
        None,
        Some("a.example".to_owned()),
        Some("b.example".to_owned()),
    ]);
    (
        origins(),
        origins(),
        origins(),
        origins(),
        permissions,
        domain,
    )
        .prop_map(
            |(connect, resources, frames, base, permissions, domain)| UiAccess {
                connect,
                resources,
                frames,
                base,
                permissions,
                domain,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn an_origin_is_one_source_of_a_policy(text in origin()) {
        if let Ok(origin) = WebOrigin::parse(&text) {
            let text = origin.to_string();
            let (scheme, rest) = text.split_once("://").unwrap();
            prop_assert!(["https", "http", "wss", "ws"].contains(&scheme), "{text}");
            let host = rest.strip_prefix("*.").unwrap_or(rest);
            let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.:".contains(c);
            prop_assert!(!host.is_empty() && host.chars().all(allowed), "{text}");
            prop_assert_eq!(WebOrigin::parse(&text), Ok(origin));
        }
    }

    #[test]
    fn restricted_access_is_requested_and_granted(granted in accesses(), wanted in accesses()) {
        let (allowed, denied) = granted.restrict(&wanted);
        let covered = |by: &[WebOrigin], all: &[WebOrigin]| {
            all.iter().all(|origin| by.iter().any(|one| one.covers_all_of(origin)))
        };
        for by in [&granted, &wanted] {
            prop_assert!(covered(&by.connect, &allowed.connect) && covered(&by.resources, &allowed.resources));
            prop_assert!(covered(&by.frames, &allowed.frames) && covered(&by.base, &allowed.base));
            prop_assert!(allowed.permissions.iter().all(|one| by.permissions.contains(one)));
            prop_assert!(allowed.domain.is_none() || allowed.domain == by.domain);
        }
        // All requests that are not denied are allowed.
        if denied.is_empty() {
            prop_assert!(covered(&allowed.connect, &wanted.connect) && covered(&allowed.frames, &wanted.frames));
        }
        // A second intersection changes nothing and denies nothing more.
        prop_assert_eq!(granted.restrict(&allowed), (allowed.clone(), Vec::new()));
    }
}
