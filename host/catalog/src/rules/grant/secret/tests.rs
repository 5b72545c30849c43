//! Tests of `secret`.

use std::path::Path;

use super::*;
use crate::rules::grant::Grant;

fn parse(text: &str) -> Result<Grant, String> {
    Grant::parse("acme.toml", text, Path::new("/plugins"))
}

fn source(keys: &str) -> SecretSource {
    let grant = parse(&format!("[secrets.token]\n{keys}")).unwrap();
    grant.secret_specs().unwrap().remove(0).source
}

#[test]
fn each_source_is_read() {
    assert_eq!(
        source("environment = \"A\""),
        SecretSource::Environment("A".to_owned())
    );
    assert_eq!(
        source("file = \"secrets/a\""),
        SecretSource::File("secrets/a".into())
    );
    let words = ["pass", "show", "x"].map(str::to_owned);
    assert_eq!(
        source("command = [\"pass\", \"show\", \"x\"]"),
        SecretSource::Command(words.into())
    );
    let keyring = SecretSource::Keyring {
        service: "github".to_owned(),
        user: "ada".to_owned(),
    };
    assert_eq!(
        source("keyring = { service = \"github\", user = \"ada\" }"),
        keyring
    );
    let folder = SecretSource::CallerFolder("secrets/github".into());
    assert_eq!(source("caller_folder = \"secrets/github\""), folder);
}

#[test]
fn mistakes_say_what_was_expected() {
    let texts = [
        "",
        "environment = \"A\"\nfile = \"a\"",
        "command = [\"a\"]\ncaller_folder = \"a\"",
        "enviroment = \"A\"",
        "fil = \"a\"",
        "keyrng = { service = \"a\", user = \"b\" }",
        "comand = [\"a\"]",
        "caller_foldr = \"a\"",
        "environment = \"A=B\"",
        "file = \"\"",
        "file = \"a/..\"",
        "file = \"a\\u0000\"",
        "keyring = \"a\"",
        "keyring = { service = \"a\" }",
        "keyring = { servce = \"a\", user = \"b\" }",
        "keyring = { service = \"a\", usr = \"b\" }",
        "keyring = { service = \"\", user = \"b\" }",
        "command = \"pass show x\"",
        "command = []",
        "command = [\"\"]",
        "command = [\"a\", 1]",
        "caller_folder = 1",
        "caller_folder = \"\"",
    ];
    let said: Vec<String> = texts
        .iter()
        .map(|text| parse(&format!("[secrets.token]\n{text}")).unwrap_err())
        .collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn a_header_that_is_about_the_connection_is_refused() {
    let secret = |header: &str| {
        let text = format!(
            "[secrets.token]\nenvironment = \"A\"\nheader = {header:?}\norigins = [\"https://a.example\"]"
        );
        parse(&text).unwrap().secret_specs().map(drop)
    };
    assert_eq!(secret("x-key"), Ok(()));
    assert_eq!(
        secret("Connection").unwrap_err(),
        "secrets.token: the header \"Connection\" is about the connection; a secret cannot be in it"
    );
}
