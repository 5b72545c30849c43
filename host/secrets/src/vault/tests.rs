//! Tests the secrets of calls by different callers, before and after changes.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use http::Request;
use toolbay_policy::{NormalizedHost, OriginPattern, UrlOrigin, UrlScheme};

use super::*;
use crate::credential::CredentialRule;
use crate::program_runner::ProgramRunner;

const SITE: &str = "https://api.example.com";

fn secret(name: &str, source: SecretSource, is_carried: bool) -> SecretSpec {
    let origins = vec![OriginPattern::parse(SITE).unwrap()];
    let carried = is_carried
        .then(|| CredentialRule::in_header(origins, &format!("x-{name}"), "Bearer {}").unwrap());
    SecretSpec {
        name: name.to_owned(),
        source,
        credential_rule: carried,
    }
}

fn write_secret(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Follow the documentation: write the file elsewhere, then rename it.
    let part = path.with_extension("part");
    fs::write(&part, text).unwrap();
    fs::set_permissions(&part, Permissions::from_mode(0o600)).unwrap();
    fs::rename(part, path).unwrap();
}

fn vault(folder: &Path, secrets: Vec<SecretSpec>) -> SecretVault {
    let fixed = FixedSecrets::with_test_values(&secrets, |name| {
        (name != "absent").then(|| format!("value-of-{name}"))
    });
    SecretVault::new("acme.toml", folder, secrets, fixed).unwrap()
}

/// Returns the headers `x-…` that a request to `url` carries, in order.
fn carried_secrets(
    call_secrets: &CallSecrets,
    url: &str,
) -> Result<Vec<String>, WithheldCredential> {
    let mut request = Request::builder().uri(url).body(()).unwrap();
    call_secrets.add_to(&mut request, &origin(url))?;
    Ok(request
        .headers()
        .values()
        .map(|value| value.to_str().unwrap().to_owned())
        .collect())
}

fn origin(url: &str) -> UrlOrigin {
    let host = NormalizedHost::parse(url.split_once("://").unwrap().1).unwrap();
    UrlOrigin {
        scheme: UrlScheme::Https,
        host,
        port: 443,
    }
}

fn identity(name: &str) -> CallerIdentity {
    CallerIdentity::from_name(name).unwrap()
}

fn callers_folder() -> SecretSource {
    SecretSource::CallerFolder("secrets/github".into())
}

#[tokio::test]
async fn request_is_withheld_if_a_secret_has_no_value() {
    let root = tempfile::tempdir().unwrap();
    let present = secret("known", SecretSource::Environment("A".to_owned()), true);
    let call_secrets = vault(root.path(), vec![present.clone()])
        .open(None)
        .await
        .unwrap();
    assert_eq!(
        carried_secrets(&call_secrets, SITE).unwrap(),
        ["Bearer value-of-known"]
    );
    assert_eq!(
        carried_secrets(&call_secrets, "https://other.example.com").unwrap(),
        [""; 0]
    );
    assert_eq!(
        call_secrets.filter.scrub("a value-of-known b"),
        "a [secret:known] b"
    );
    let absent = secret("absent", SecretSource::Environment("B".to_owned()), true);
    let both = vault(root.path(), vec![present, absent]);
    let mixed_secrets = both.open(None).await.unwrap();
    assert_eq!(
        carried_secrets(&mixed_secrets, SITE).unwrap_err(),
        WithheldCredential::NoValue("absent".to_owned())
    );
    assert_eq!(
        carried_secrets(&mixed_secrets, "https://other.example.com").unwrap(),
        [""; 0]
    );
    let problem = "secrets.absent: the environment variable B is not set, so requests to its origins are denied";
    assert_eq!(both.missing_value_warnings(), [problem]);
    assert_eq!(both.available_names(), ["known"]);
}

#[tokio::test]
async fn secret_without_a_rule_withholds_no_request() {
    let root = tempfile::tempdir().unwrap();
    let vault = vault(
        root.path(),
        vec![secret(
            "absent",
            SecretSource::Environment("B".to_owned()),
            false,
        )],
    );
    assert_eq!(
        carried_secrets(&vault.open(None).await.unwrap(), SITE).unwrap(),
        [""; 0]
    );
    assert_eq!(
        vault.missing_value_warnings(),
        ["secrets.absent: the environment variable B is not set, so there is nothing to redact"]
    );
}

#[test]
fn unusable_value_is_rejected_without_being_shown() {
    let refused = |value: &str, is_carried: bool| {
        let secrets = vec![secret(
            "pin",
            SecretSource::Environment("PIN".to_owned()),
            is_carried,
        )];
        let fixed = FixedSecrets::with_test_values(&secrets, |_| Some(value.to_owned()));
        SecretVault::new("acme.toml", Path::new("/"), secrets, fixed).map(drop)
    };
    let short = "secrets.pin: the environment variable PIN has fewer than 8 bytes, too few to redact reliably";
    assert_eq!(refused("1234", false).unwrap_err(), short);
    let lines = "secrets.pin: the environment variable PIN cannot be a header: it has line ends or control characters";
    assert_eq!(refused("hunter2\nhunter2", true).unwrap_err(), lines);
    assert_eq!(refused("hunter2\nhunter2", false), Ok(()));
}

#[tokio::test]
async fn changed_value_applies_to_the_next_call() {
    let root = tempfile::tempdir().unwrap();
    let vault = vault(
        root.path(),
        vec![secret("token", SecretSource::File("token".into()), true)],
    );
    assert_eq!(
        vault.missing_value_warnings(),
        ["secrets.token: the file token does not exist, so requests to its origins are denied"]
    );
    assert_eq!(
        carried_secrets(&vault.open(None).await.unwrap(), SITE).unwrap_err(),
        WithheldCredential::NoValue("token".to_owned())
    );
    write_secret(root.path(), "token", "value-one\n");
    let running = vault.open(None).await.unwrap();
    assert_eq!(
        carried_secrets(&running, SITE).unwrap(),
        ["Bearer value-one"]
    );
    assert_eq!(vault.missing_value_warnings(), [""; 0]);
    write_secret(root.path(), "token", "value-two\n");
    let next = vault.open(None).await.unwrap();
    assert_eq!(carried_secrets(&next, SITE).unwrap(), ["Bearer value-two"]);
    assert_eq!(
        (
            carried_secrets(&running, SITE).unwrap(),
            running.filter.scrub("value-one")
        ),
        (vec!["Bearer value-one".to_owned()], "[secret:token]".into())
    );
    // Unchanged secrets are not rebuilt.
    assert!(Arc::ptr_eq(&next, &vault.open(None).await.unwrap()));
    write_secret(root.path(), "token", "bad\nvalue of a header");
    assert_eq!(
        carried_secrets(&vault.open(None).await.unwrap(), SITE).unwrap_err(),
        WithheldCredential::NoValue("token".to_owned())
    );
    fs::remove_file(root.path().join("token")).unwrap();
    assert_eq!(
        carried_secrets(&vault.open(None).await.unwrap(), SITE).unwrap_err(),
        WithheldCredential::NoValue("token".to_owned())
    );
}

#[tokio::test]
async fn each_caller_receives_only_its_secrets() {
    let root = tempfile::tempdir().unwrap();
    write_secret(root.path(), "secrets/github/token/ada", "the-value-of-ada");
    write_secret(root.path(), "secrets/github/token/bob", "the-value-of-bob");
    write_secret(
        root.path(),
        "secrets/github/oauth/https%3A%2F%2Fa.example/ada",
        "of-another-ada",
    );
    write_secret(root.path(), "shared", "shared-value");
    let secrets = vec![
        secret("own", callers_folder(), true),
        secret("shared", SecretSource::File("shared".into()), true),
    ];
    let vault = vault(root.path(), secrets);
    assert_eq!(
        (vault.missing_value_warnings(), vault.available_names()),
        (vec![], vec!["own".to_owned(), "shared".to_owned()])
    );
    let mut keys = Vec::new();
    for _ in 0..2 {
        for (name, value) in [
            ("token:ada", "the-value-of-ada"),
            ("token:bob", "the-value-of-bob"),
            ("oauth:ada of https://a.example", "of-another-ada"),
        ] {
            let call_secrets = vault.open(Some(&identity(name))).await.unwrap();
            assert_eq!(
                carried_secrets(&call_secrets, SITE).unwrap(),
                [format!("Bearer {value}"), "Bearer shared-value".to_owned()]
            );
            let others = ["the-value-of-ada", "the-value-of-bob", "of-another-ada"]
                .iter()
                .filter(|one| **one != value);
            assert_eq!(call_secrets.filter.scrub(value), "[secret:own]");
            for other in others {
                assert_eq!(
                    call_secrets.filter.scrub(other),
                    *other,
                    "not known to this call"
                );
            }
            let mut request = Request::builder().uri(SITE).body(()).unwrap();
            keys.push(
                call_secrets
                    .add_to(&mut request, &origin(SITE))
                    .unwrap()
                    .to_vec(),
            );
        }
    }
    assert_eq!(keys[..3], keys[3..]);
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
    for (caller, why) in [
        (None, WithheldCredential::NoCaller("own".to_owned())),
        (
            Some(identity("stdio")),
            WithheldCredential::NotForCaller("own".to_owned()),
        ),
        (
            Some(identity("token:eve")),
            WithheldCredential::NotForCaller("own".to_owned()),
        ),
        (
            Some(identity("token:../token/ada")),
            WithheldCredential::NotForCaller("own".to_owned()),
        ),
        (
            Some(identity(&format!("token:{}", "x".repeat(300)))),
            WithheldCredential::NotForCaller("own".to_owned()),
        ),
    ] {
        assert_eq!(
            carried_secrets(&vault.open(caller.as_ref()).await.unwrap(), SITE).unwrap_err(),
            why,
            "{caller:?}"
        );
    }
}

#[tokio::test]
async fn caller_secrets_follow_their_file_and_shared_secrets() {
    let root = tempfile::tempdir().unwrap();
    write_secret(root.path(), "shared", "shared-value");
    let secrets = vec![
        secret("own", callers_folder(), true),
        secret("shared", SecretSource::File("shared".into()), true),
    ];
    let vault = vault(root.path(), secrets);
    let ada = identity("token:ada");
    vault.missing_value_warnings();
    let open = || async { carried_secrets(&vault.open(Some(&ada)).await.unwrap(), SITE) };
    assert_eq!(
        open().await.unwrap_err(),
        WithheldCredential::NotForCaller("own".to_owned())
    );
    write_secret(root.path(), "secrets/github/token/ada", "the-value-of-ada");
    assert_eq!(
        open().await.unwrap(),
        ["Bearer the-value-of-ada", "Bearer shared-value"]
    );
    write_secret(root.path(), "shared", "shared-other");
    assert_eq!(
        open().await.unwrap(),
        ["Bearer the-value-of-ada", "Bearer shared-other"]
    );
    write_secret(
        root.path(),
        "secrets/github/token/ada",
        "a-new-value-of-ada",
    );
    assert_eq!(
        open().await.unwrap(),
        ["Bearer a-new-value-of-ada", "Bearer shared-other"]
    );
    write_secret(
        root.path(),
        "secrets/github/token/ada",
        &"x".repeat((8 << 10) + 1),
    );
    assert_eq!(
        open().await.unwrap_err(),
        WithheldCredential::NotForCaller("own".to_owned())
    );
    fs::remove_dir_all(root.path().join("secrets")).unwrap();
    std::os::unix::fs::symlink("/", root.path().join("secrets")).unwrap();
    assert_eq!(
        open().await.unwrap_err(),
        WithheldCredential::NotForCaller("own".to_owned())
    );
}

#[tokio::test]
async fn number_of_cached_callers_is_bounded() {
    let root = tempfile::tempdir().unwrap();
    let vault = vault(root.path(), vec![secret("own", callers_folder(), true)]);
    for index in 0..300 {
        write_secret(
            root.path(),
            &format!("secrets/github/token/{index}"),
            &format!("the-value-of-{index}"),
        );
        let call_secrets = vault
            .open(Some(&identity(&format!("token:{index}"))))
            .await
            .unwrap();
        assert_eq!(
            carried_secrets(&call_secrets, SITE).unwrap(),
            [format!("Bearer the-value-of-{index}")]
        );
    }
    assert_eq!(vault.0.as_ref().unwrap().lock_cache().callers.count(), 256);
    let first = vault.open(Some(&identity("token:0"))).await.unwrap();
    assert_eq!(
        carried_secrets(&first, SITE).unwrap(),
        ["Bearer the-value-of-0"]
    );
}

#[tokio::test]
async fn programs_run_once_and_their_failures_are_reported() {
    let root = tempfile::tempdir().unwrap();
    let command =
        |script: &str| SecretSource::Command(["sh", "-c", script].map(str::to_owned).into());
    let secrets = vec![
        secret("good", command("echo $$ > count; echo value-of-good"), true),
        secret("fails", command("echo hunter2-hunter2; exit 7"), true),
        secret(
            "none",
            SecretSource::Command(vec!["no-such-program-of-toolbay".to_owned()]),
            false,
        ),
    ];
    let fixed = FixedSecrets::fetch(
        &secrets,
        ("a.toml", root.path()),
        &ProgramRunner::default(),
        |_| None,
    )
    .await;
    let vault = SecretVault::new("acme.toml", root.path(), secrets, fixed).unwrap();
    assert!(
        root.path().join("count").exists(),
        "it runs in the plugin folder"
    );
    assert_eq!(vault.available_names(), ["good"]);
    assert_eq!(
        vault
            .open(None)
            .await
            .unwrap()
            .filter
            .scrub("value-of-good"),
        "[secret:good]"
    );
    assert_eq!(
        vault.missing_value_warnings(),
        [
            "secrets.fails: the command sh exited with code 7; run it yourself, as the user of the server, to see why, so \
             requests to its origins are denied",
            "secrets.none: the command no-such-program-of-toolbay was not found, so there is nothing to redact",
        ]
    );
    let short = vec![secret("short", command("echo 1234"), false)];
    let fixed = FixedSecrets::fetch(
        &short,
        ("a.toml", root.path()),
        &ProgramRunner::default(),
        |_| None,
    )
    .await;
    let why = SecretVault::new("acme.toml", root.path(), short, fixed).unwrap_err();
    assert!(
        why.starts_with("secrets.short: the command sh wrote a value that has fewer than 8 bytes"),
        "{why}"
    );
}

#[tokio::test]
async fn a_disabled_runner_starts_nothing_and_leaves_the_secrets_of_programs_without_a_value() {
    let root = tempfile::tempdir().unwrap();
    let words = ["sh", "-c", "echo > was-run; echo value-of-program"].map(str::to_owned);
    let secrets = vec![
        secret("program", SecretSource::Command(words.into()), true),
        secret(
            "keyring",
            SecretSource::Keyring {
                service: "a".to_owned(),
                user: "b".to_owned(),
            },
            false,
        ),
        secret("fixed", SecretSource::Environment("A".to_owned()), false),
    ];
    let fixed = FixedSecrets::fetch(
        &secrets,
        ("a.toml", root.path()),
        &ProgramRunner::disabled(),
        |_| None,
    )
    .await;
    let vault = SecretVault::new("acme.toml", root.path(), secrets, fixed).unwrap();
    assert!(!root.path().join("was-run").exists());
    assert_eq!(
        vault.missing_value_warnings(),
        ["secrets.fixed: the environment variable A is not set, so there is nothing to redact"]
    );
    assert_eq!(vault.available_names(), ["program", "keyring"]);
    // A request that must carry it is not sent.
    let call_secrets = vault.open(None).await.unwrap();
    assert!(carried_secrets(&call_secrets, SITE).is_err());
}

#[test]
fn vaults_are_equal_if_their_grants_and_fixed_values_are() {
    let root = tempfile::tempdir().unwrap();
    let vault_with_value = |value: &str| {
        let secrets = vec![
            secret("fixed", SecretSource::Environment("A".to_owned()), true),
            secret("file", SecretSource::File("token".into()), true),
        ];
        let fixed = FixedSecrets::with_test_values(&secrets, |_| Some(value.to_owned()));
        SecretVault::new("acme.toml", root.path(), secrets, fixed).unwrap()
    };
    let one = vault_with_value("value-one");
    write_secret(root.path(), "token", "value-of-the-file");
    one.missing_value_warnings();
    assert_eq!(one, vault_with_value("value-one"));
    assert_ne!(one, vault_with_value("value-two"));
    assert_ne!(one, SecretVault::default());
    assert!(!format!("{one:?}").contains("value-"), "{one:?}");
}
