use std::fs;

use tempfile::TempDir;

use super::*;

fn config(text: &str) -> (TempDir, DockerConfig) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    fs::write(&file, text).unwrap();
    let config = DockerConfig::new(Some(file), Duration::from_secs(30));
    (folder, config)
}

async fn find(text: &str, registry: &str) -> Result<Option<RegistryCredential>, String> {
    let (_folder, config) = config(text);
    config.find(registry).await.map_err(|why| why.to_string())
}

fn password(username: &str, password: &str) -> RegistryCredential {
    RegistryCredential::new(username.to_owned(), password.to_owned())
}

#[tokio::test]
async fn entries_are_found_under_every_usual_key() {
    // ada:secret
    let auth = "YWRhOnNlY3JldA==";
    for (key, registry) in [
        ("registry.example.com", "registry.example.com"),
        ("https://registry.example.com", "registry.example.com"),
        ("https://registry.example.com/v2/", "registry.example.com"),
        ("registry.example.com:5000", "registry.example.com:5000"),
        ("https://index.docker.io/v1/", "docker.io"),
    ] {
        let text = format!(r#"{{"auths": {{"{key}": {{"auth": "{auth}"}}}}}}"#);
        assert!(
            find(&text, registry).await.unwrap() == Some(password("ada", "secret")),
            "{key}"
        );
        assert!(find(&text, "other.example.com").await.unwrap().is_none());
        // Another port is another registry.
        assert!(
            find(&text, "registry.example.com:1")
                .await
                .unwrap()
                .is_none()
        );
    }
}

#[tokio::test]
async fn each_form_of_an_entry_is_read() {
    for (entry, expected) in [
        (
            r#"{"username": "a", "password": "b"}"#,
            Some(password("a", "b")),
        ),
        (
            r#"{"auth": "YTpi", "identitytoken": "t"}"#,
            Some(RegistryCredential::Refresh("t".to_owned())),
        ),
        (
            r#"{"registrytoken": "t"}"#,
            Some(RegistryCredential::Access("t".to_owned())),
        ),
        (r#"{"auth": "!"}"#, None),
        (r#"{"auth": ""}"#, None),
        ("{}", None),
    ] {
        let text = format!(r#"{{"auths": {{"a.example.com": {entry}}}, "other": 1}}"#);
        assert!(
            find(&text, "a.example.com").await.unwrap() == expected,
            "{entry}"
        );
    }
}

#[tokio::test]
async fn a_damaged_file_is_an_error_that_does_not_show_it() {
    let why = find(r#"{"auths": {"a": {"auth": c2VjcmV0}}}"#, "a").await;
    let why = why.err().unwrap();
    assert!(why.contains("not valid at line 1"), "{why}");
    assert!(!why.contains("c2Vj"), "{why}");
    let large = format!(r#"{{"x": "{}"}}"#, "a".repeat(2 << 20));
    assert!(find(&large, "a").await.err().unwrap().contains("larger"));
    let missing = DockerConfig::new(Some(PathBuf::from("/missing/config.json")), Duration::MAX);
    assert!(missing.find("a").await.unwrap().is_none());
}

#[tokio::test]
async fn the_name_of_a_helper_is_not_a_path() {
    for name in ["../../tmp/x", "a/b", "", "a b"] {
        let text = format!(r#"{{"credHelpers": {{"a": "{name}"}}}}"#);
        let why = find(&text, "a").await.err().unwrap();
        assert!(
            why.contains("is not the name of a credential helper"),
            "{why}"
        );
    }
    let text = r#"{"credsStore": "of-no-one"}"#;
    let why = find(text, "a").await.err().unwrap();
    assert!(why.starts_with("docker-credential-of-no-one"), "{why}");
}
