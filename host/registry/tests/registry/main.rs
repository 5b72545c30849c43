//! The client against a registry that misbehaves.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers as well"
)]

mod packages;
mod publish;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use toolbay_bundle::OciReference;
use toolbay_outgoing::ConnectorOptions;
use toolbay_registry::{
    DockerConfig, RegistryClient, RegistryError, RegistryPlugin, RegistryTimeouts,
};
use toolbay_testkit::{FakeAnswer, FakeRegistry};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const COMPONENT: &str = "application/wasm";
const ARCHIVE: &str = "application/vnd.toolbay.plugin.v1.bay";
const LIMIT: u64 = 1 << 20;

fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let hash = Sha256::digest(bytes);
    hash.iter().fold(String::from("sha256:"), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn layer(kind: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": kind, "digest": digest(bytes), "size": bytes.len()})
}

fn manifest(layers: &[Value]) -> Vec<u8> {
    let config = layer("application/vnd.wasm.config.v0+json", b"{}");
    json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers})
        .to_string()
        .into_bytes()
}

fn manifest_answer(manifest: &[u8]) -> FakeAnswer {
    FakeAnswer::ok(manifest).with_header("Content-Type", MANIFEST)
}

/// A registry with an artifact, and a client for it.
struct Setup {
    registry: FakeRegistry,
    client: RegistryClient,
    reference: OciReference,
    _folder: TempDir,
}

impl Setup {
    fn new() -> Self {
        Self::with_credentials("{}")
    }

    /// Creates a client with this `config.json`, in which `HOST` is the registry.
    fn with_credentials(config: &str) -> Self {
        let registry = FakeRegistry::start().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        fs::write(&file, config.replace("HOST", registry.address())).unwrap();
        let reference = format!("oci+http://{}/acme/weather:1", registry.address());
        Self {
            client: client(Some(file)),
            reference: reference.parse().unwrap(),
            registry,
            _folder: folder,
        }
    }

    /// Sets what the tag `1` names.
    fn tag(&self, manifest: &[u8]) {
        self.registry.answer(
            "GET /v2/acme/weather/manifests/1",
            vec![manifest_answer(manifest)],
        );
    }

    fn blob(&self, bytes: &[u8], answers: Vec<FakeAnswer>) {
        let path = format!("GET /v2/acme/weather/blobs/{}", digest(bytes));
        self.registry.answer(&path, answers);
    }

    /// Sets an artifact with a component, whose blob has these answers.
    fn component(&self, bytes: &[u8], answers: Vec<FakeAnswer>) {
        self.tag(&manifest(&[layer(COMPONENT, bytes)]));
        self.blob(bytes, answers);
    }

    async fn resolve(&self) -> Result<RegistryPlugin, RegistryError> {
        self.client.resolve(&self.reference).await
    }

    async fn download(&self) -> Result<Vec<u8>, RegistryError> {
        let plugin = self.resolve().await?;
        self.client.download(&plugin, LIMIT, &mut |_, _| {}).await
    }

    async fn error(&self) -> String {
        self.download().await.unwrap_err().to_string()
    }
}

fn client(credentials: Option<PathBuf>) -> RegistryClient {
    let timeouts = RegistryTimeouts {
        idle: Duration::from_millis(500),
        transfer: Duration::from_mins(1),
        retry_pause: Duration::from_millis(1),
    };
    let credentials = DockerConfig::new(credentials, Duration::from_secs(30));
    RegistryClient::new(&ConnectorOptions::default(), credentials, timeouts).unwrap()
}

fn authorizations(requests: &[String]) -> Vec<&str> {
    requests
        .iter()
        .flat_map(|head| head.lines())
        .filter(|line| line.to_ascii_lowercase().starts_with("authorization:"))
        .collect()
}

#[tokio::test]
async fn a_tag_is_resolved_to_a_digest_and_downloaded() {
    let setup = Setup::new();
    let component = b"a component".repeat(1_000);
    let text = manifest(&[layer(COMPONENT, &component)]);
    setup.component(&component, vec![FakeAnswer::ok(&component)]);
    let plugin = setup.resolve().await.unwrap();
    let pinned = format!("{}@{}", setup.reference, digest(&text));
    assert_eq!(plugin.reference.to_string(), pinned);
    assert_eq!(plugin.size(), component.len() as u64);
    let mut shown = Vec::new();
    let mut progress = |received, total| shown.push((received, total));
    let bytes = setup
        .client
        .download(&plugin, LIMIT, &mut progress)
        .await
        .unwrap();
    assert_eq!(bytes, component);
    let size = component.len() as u64;
    assert_eq!(shown.last(), Some(&(size, size)));
    // The pinned reference asks by digest.
    setup.registry.take_requests();
    let path = format!("/v2/acme/weather/manifests/{}", digest(&text));
    setup
        .registry
        .answer(&format!("GET {path}"), vec![manifest_answer(&text)]);
    let again = setup.client.resolve(&plugin.reference).await.unwrap();
    assert_eq!(again.digest, plugin.digest);
    let requests = setup.registry.take_requests();
    assert!(
        requests[0].starts_with(&format!("GET {path} ")),
        "{requests:?}"
    );
}

#[tokio::test]
async fn an_archive_is_preferred_as_a_layer_or_linked_by_an_annotation() {
    let (component, archive) = (b"component".as_slice(), b"an archive".as_slice());
    let setup = Setup::new();
    setup.blob(archive, vec![FakeAnswer::ok(archive)]);
    setup.tag(&manifest(&[
        layer(COMPONENT, component),
        layer(ARCHIVE, archive),
    ]));
    assert_eq!(setup.download().await.unwrap(), archive);
    let mut linked: Value =
        serde_json::from_slice(&manifest(&[layer(COMPONENT, component)])).unwrap();
    linked["annotations"] = json!({
        "dev.toolbay.archive.digest": digest(archive),
        "dev.toolbay.archive.size": archive.len().to_string(),
    });
    setup.tag(linked.to_string().as_bytes());
    let plugin = setup.resolve().await.unwrap();
    let component_digest = plugin.component().unwrap();
    assert_eq!(format!("sha256:{component_digest}"), digest(component));
    assert_eq!(setup.download().await.unwrap(), archive);
    linked["annotations"]["dev.toolbay.archive.size"] = json!("many");
    setup.tag(linked.to_string().as_bytes());
    assert!(setup.error().await.contains("no valid annotation"));
    // An archive without a component.
    setup.tag(&manifest(&[layer(ARCHIVE, archive)]));
    assert_eq!(setup.download().await.unwrap(), archive);
}

#[tokio::test]
async fn refusals_of_the_registry_are_explained() {
    let body = r#"{"errors": [{"code": "DENIED", "message": "no \u001b[31m way"}]}"#;
    for (answer, expected) in [
        (
            FakeAnswer::new("404 Not Found", body),
            "acme/weather:1 does not exist in the registry",
        ),
        (
            FakeAnswer::new("401 Unauthorized", body).with_header("WWW-Authenticate", "Basic"),
            "there are none for it in Docker's config.json; `docker login 127.0.0.1:",
        ),
        (
            FakeAnswer::new("403 Forbidden", body),
            "the account has no right to read acme/weather; it says \"DENIED no",
        ),
        (
            FakeAnswer::new("429 Too Many Requests", "").with_header("Retry-After", "120"),
            "(429): try again in 120 s",
        ),
        (
            FakeAnswer::new("429 Too Many Requests", "")
                .with_header("Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT"),
            "try again after Fri, 31 Dec 1999 23:59:59 GMT",
        ),
        (
            FakeAnswer::new("500 Internal Server Error", "x".repeat(1 << 20)),
            "answered with status 500",
        ),
    ] {
        let setup = Setup::new();
        setup
            .registry
            .answer("GET /v2/acme/weather/manifests/1", vec![answer]);
        let why = setup.error().await;
        assert!(why.contains(expected), "{expected}: {why}");
        assert!(!why.contains('\u{1b}') && why.len() < 600, "{why}");
    }
}

#[tokio::test]
async fn credentials_are_sent_only_when_the_registry_asks() {
    // ada:secret
    let config = r#"{"auths": {"HOST": {"auth": "YWRhOnNlY3JldA=="}}}"#;
    let setup = Setup::with_credentials(config);
    let text = manifest(&[layer(COMPONENT, b"x")]);
    setup.component(b"x", vec![FakeAnswer::ok(b"x")]);
    setup.download().await.unwrap();
    assert!(authorizations(&setup.registry.take_requests()).is_empty());
    let refusal = FakeAnswer::new("401 Unauthorized", "")
        .with_header("WWW-Authenticate", "Basic realm=\"x\"");
    setup.registry.answer(
        "GET /v2/acme/weather/manifests/1",
        vec![refusal.clone(), manifest_answer(&text)],
    );
    setup.download().await.unwrap();
    // The second request, and the download after it.
    let requests = setup.registry.take_requests();
    assert_eq!(
        authorizations(&requests),
        ["authorization: Basic YWRhOnNlY3JldA=="; 2]
    );
    setup
        .registry
        .answer("GET /v2/acme/weather/manifests/1", vec![refusal]);
    let why = setup.error().await;
    assert!(why.contains("are wrong, or have expired"), "{why}");
    assert!(!why.contains("secret"), "{why}");
}

#[tokio::test]
async fn a_token_service_gets_the_credentials_and_the_registry_the_token() {
    let config = r#"{"auths": {"HOST": {"auth": "YWRhOnNlY3JldA=="}}}"#;
    let setup = Setup::with_credentials(config);
    let service = FakeRegistry::start().unwrap();
    let challenge = format!(
        "Bearer realm=\"http://{}/token\",service=\"reg\",scope=\"repository:other:pull,push\"",
        service.address()
    );
    let refusal =
        FakeAnswer::new("401 Unauthorized", "").with_header("WWW-Authenticate", &challenge);
    let text = manifest(&[layer(COMPONENT, b"x")]);
    setup.component(b"x", vec![FakeAnswer::ok(b"x")]);
    let path = "GET /v2/acme/weather/manifests/1";
    setup
        .registry
        .answer(path, vec![refusal.clone(), manifest_answer(&text)]);
    service.answer("GET /token", vec![FakeAnswer::ok(r#"{"token": "abc"}"#)]);
    setup.download().await.unwrap();
    let asked = service.take_requests();
    // Only the right that is needed, whatever the registry names.
    assert!(
        asked[0].starts_with("GET /token?service=reg&scope=repository%3Aacme%2Fweather%3Apull "),
        "{asked:?}"
    );
    assert_eq!(
        authorizations(&asked),
        ["authorization: Basic YWRhOnNlY3JldA=="]
    );
    assert_eq!(
        authorizations(&setup.registry.take_requests()),
        ["authorization: Bearer abc"; 2]
    );
    // The service refuses, is damaged, or is reached over http.
    for (answer, expected) in [
        (
            FakeAnswer::new("401 Unauthorized", "{}"),
            "are wrong, or have expired",
        ),
        (FakeAnswer::ok("{}"), "it has no token"),
        (FakeAnswer::ok("token"), "its token is not in JSON"),
        (FakeAnswer::ok("x".repeat(1 << 20)), "at most"),
    ] {
        service.answer("GET /token", vec![answer]);
        setup.registry.answer(path, vec![refusal.clone()]);
        let why = setup.error().await;
        assert!(why.contains(expected), "{expected}: {why}");
    }
    for (realm, expected) in [
        ("http://token.example.com/", "is not a URL with https"),
        ("token", "relative URL"),
    ] {
        let challenge = format!("Bearer realm=\"{realm}\"");
        let refusal =
            FakeAnswer::new("401 Unauthorized", "").with_header("WWW-Authenticate", &challenge);
        setup.registry.answer(path, vec![refusal]);
        let why = setup.error().await;
        assert!(why.contains(expected), "{realm}: {why}");
    }
}

#[tokio::test]
async fn a_refresh_token_is_exchanged() {
    let config = r#"{"auths": {"HOST": {"identitytoken": "refresh"}}}"#;
    let setup = Setup::with_credentials(config);
    let realm = format!("Bearer realm=\"http://{}/token\"", setup.registry.address());
    let refusal = FakeAnswer::new("401 Unauthorized", "").with_header("WWW-Authenticate", &realm);
    let text = manifest(&[layer(COMPONENT, b"x")]);
    setup.component(b"x", vec![FakeAnswer::ok(b"x")]);
    setup.registry.answer(
        "GET /v2/acme/weather/manifests/1",
        vec![refusal, manifest_answer(&text)],
    );
    let token = FakeAnswer::ok(r#"{"access_token": "abc"}"#);
    setup.registry.answer("POST /token", vec![token]);
    setup.download().await.unwrap();
    let form = setup.registry.received("POST /token").unwrap();
    let form = String::from_utf8(form).unwrap();
    assert!(form.contains("grant_type=refresh_token"), "{form}");
    assert!(form.ends_with("refresh_token=refresh"), "{form}");
}

#[tokio::test]
async fn wrong_digests_and_sizes_are_refused() {
    let setup = Setup::new();
    let good = b"what was published".as_slice();
    setup.component(good, vec![FakeAnswer::ok(b"what was exchanged")]);
    let why = setup.error().await;
    assert!(why.contains(&digest(b"what was exchanged")), "{why}");
    for body in [
        b"what was published and more".as_slice(),
        b"what was published!",
    ] {
        setup.component(good, vec![FakeAnswer::ok(body)]);
        let why = setup.error().await;
        assert!(why.contains("has not the 18 bytes"), "{why}");
    }
    setup.component(good, vec![FakeAnswer::ok(b"what")]);
    let why = setup.error().await;
    assert!(why.contains("interrupted 5 times; 4 of its bytes"), "{why}");
    // The manifest has another digest than the reference, or than the registry says.
    let text = manifest(&[layer(COMPONENT, good)]);
    let other = manifest(&[layer(COMPONENT, b"other")]);
    let path = format!("GET /v2/acme/weather/manifests/{}", digest(&text));
    setup.registry.answer(&path, vec![manifest_answer(&other)]);
    let pinned: OciReference = format!("{}@{}", setup.reference, digest(&text))
        .parse()
        .unwrap();
    let why = setup.client.resolve(&pinned).await.unwrap_err().to_string();
    assert!(why.contains("the manifest of"), "{why}");
    let lying = manifest_answer(&text).with_header("Docker-Content-Digest", &digest(&other));
    setup
        .registry
        .answer("GET /v2/acme/weather/manifests/1", vec![lying]);
    assert!(setup.error().await.contains("the manifest of"));
}

#[tokio::test]
async fn a_layer_that_is_too_large_is_not_downloaded() {
    let setup = Setup::new();
    let mut huge = layer(COMPONENT, b"x");
    huge["size"] = json!(10_000_000_000_u64);
    setup.tag(&manifest(&[huge]));
    let why = setup.error().await;
    assert!(
        why.ends_with("has 10000000000 bytes, and at most 1048576 bytes are accepted"),
        "{why}"
    );
    let requests = setup.registry.take_requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    // A layer that declares little and sends much.
    setup.component(b"x", vec![FakeAnswer::ok(vec![b'x'; 5 << 20])]);
    assert!(setup.error().await.contains("has not the 1 bytes"));
    setup.tag(&vec![b' '; 5 << 20]);
    let why = setup.error().await;
    assert!(why.contains("at most 4194304 bytes"), "{why}");
}

#[tokio::test]
async fn a_cut_download_continues_where_it_ended() {
    let bytes: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let setup = Setup::new();
    let part = |at: usize| FakeAnswer::ok(&bytes).with_ranges().cut_after(at);
    setup.component(
        &bytes,
        vec![
            part(100_000),
            part(50_000),
            FakeAnswer::ok(&bytes).with_ranges(),
        ],
    );
    assert_eq!(setup.download().await.unwrap(), bytes);
    let requests = setup.registry.take_requests();
    let ranges: Vec<&str> = requests
        .iter()
        .flat_map(|head| head.lines())
        .filter(|line| line.starts_with("range:"))
        .collect();
    assert_eq!(ranges, ["range: bytes=100000-", "range: bytes=150000-"]);
    // A registry without ranges sends everything again.
    let cut = FakeAnswer::ok(&bytes).cut_after(300_000);
    setup.component(&bytes, vec![cut.clone(), FakeAnswer::ok(&bytes)]);
    assert_eq!(setup.download().await.unwrap(), bytes);
    // One that continues elsewhere, and one that is always cut.
    let elsewhere = FakeAnswer::new("206 Partial Content", &bytes)
        .with_header("Content-Range", "bytes 7-399999/400000");
    setup.component(&bytes, vec![cut.clone(), elsewhere]);
    assert!(setup.error().await.contains("at another place"));
    setup.component(&bytes, vec![cut]);
    assert!(setup.error().await.contains("interrupted 5 times"));
}

#[tokio::test]
async fn what_is_not_a_plugin_is_named() {
    let one = layer(COMPONENT, b"x");
    let other = layer("application/vnd.oci.image.layer.v1.tar+gzip", b"x");
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{"mediaType": MANIFEST, "digest": digest(b"m"), "size": 1}],
    });
    let docker = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": one,
        "layers": [one],
    });
    for (text, expected) in [
        (
            index.to_string(),
            format!(
                "is an index of 1 manifests, and not a plugin: name one of them by its digest, @{}",
                digest(b"m")
            ),
        ),
        (
            docker.to_string(),
            "has the media type application/vnd.docker".to_owned(),
        ),
        (
            String::from_utf8(manifest(std::slice::from_ref(&other))).unwrap(),
            "they have application/vnd.oci.image.layer.v1.tar+gzip".to_owned(),
        ),
        (
            String::from_utf8(manifest(&[])).unwrap(),
            "they have none".to_owned(),
        ),
        (
            String::from_utf8(manifest(&[one.clone(), layer(COMPONENT, b"y")])).unwrap(),
            "has 2 components".to_owned(),
        ),
        (
            String::from_utf8(manifest(&[
                json!({"mediaType": COMPONENT, "digest": "md5:1", "size": 1}),
            ]))
            .unwrap(),
            "is not a digest".to_owned(),
        ),
        (
            "<html>".to_owned(),
            "has a manifest that is not valid".to_owned(),
        ),
        (
            "{}".to_owned(),
            "has a manifest that is not valid".to_owned(),
        ),
    ] {
        let setup = Setup::new();
        setup.tag(text.as_bytes());
        let why = setup.error().await;
        assert!(why.contains(&expected), "{expected}: {why}");
    }
}

#[tokio::test]
async fn the_message_about_an_invalid_manifest_is_short() {
    let setup = Setup::new();
    let long = json!({"schemaVersion": "x\u{1b}[2J".repeat(100_000)});
    setup.tag(long.to_string().as_bytes());
    let why = setup.error().await;
    assert!(
        why.contains("has a manifest that is not valid"),
        "{}",
        why.len()
    );
    assert!(
        why.len() < 1_000 && !why.contains('\u{1b}'),
        "{}",
        why.len()
    );
}

#[tokio::test]
async fn credentials_do_not_follow_a_redirect() {
    let config = r#"{"auths": {"HOST": {"auth": "YWRhOnNlY3JldA=="}}}"#;
    let setup = Setup::with_credentials(config);
    let storage = FakeRegistry::start().unwrap();
    let refusal = FakeAnswer::new("401 Unauthorized", "").with_header("WWW-Authenticate", "Basic");
    let text = manifest(&[layer(COMPONENT, b"x")]);
    setup.registry.answer(
        "GET /v2/acme/weather/manifests/1",
        vec![refusal, manifest_answer(&text)],
    );
    let to = |url: &str| FakeAnswer::new("307 Temporary Redirect", "").with_header("Location", url);
    let elsewhere = format!("http://{}/blob", storage.address());
    setup.blob(b"x", vec![to(&elsewhere)]);
    storage.answer("GET /blob", vec![FakeAnswer::ok(b"x")]);
    assert_eq!(setup.download().await.unwrap(), b"x");
    let requests = storage.take_requests();
    assert_eq!(requests.len(), 1);
    assert!(authorizations(&requests).is_empty(), "{requests:?}");
    // A storage that asks for credentials gets none.
    let asks = FakeAnswer::new("401 Unauthorized", "").with_header("WWW-Authenticate", "Basic");
    storage.answer("GET /blob", vec![asks]);
    assert!(setup.error().await.contains("answered with status 401"));
    assert!(authorizations(&storage.take_requests()).is_empty());
    for (url, expected) in [
        ("http://storage.example.com/x", "is not a URL with https"),
        ("http://10.0.0.1/x", "is not a URL with https"),
        ("https://10.0.0.1/x", "is in a private network"),
        ("https://169.254.169.254/x", "is in a private network"),
        ("ftp://storage.example.com/x", "is not a URL with https"),
        (
            "https://user:secret@storage.example.com/",
            "must not contain a user",
        ),
        ("/v2/acme/weather/blobs/loop", "redirects more than 5 times"),
    ] {
        setup
            .registry
            .answer("GET /v2/acme/weather/blobs/loop", vec![to("loop")]);
        setup.blob(b"x", vec![to(url)]);
        let why = setup.error().await;
        assert!(why.contains(expected), "{url}: {why}");
    }
}

#[tokio::test]
async fn a_silent_registry_is_left() {
    let setup = Setup::new();
    setup.registry.answer(
        "GET /v2/acme/weather/manifests/1",
        vec![FakeAnswer::silence()],
    );
    let why = setup.error().await;
    assert!(why.contains("did not answer in time"), "{why}");
    // One that stops in the middle is interrupted, again and again.
    let slow = FakeAnswer::ok(b"ab").with_header("Content-Length", "10");
    setup.component(b"abcdefghij", vec![slow, FakeAnswer::silence()]);
    let why = setup.error().await;
    assert!(why.contains("interrupted 5 times; 2 of its bytes"), "{why}");
    let nowhere: OciReference = "oci+http://127.0.0.1:1/acme/weather".parse().unwrap();
    let why = setup
        .client
        .resolve(&nowhere)
        .await
        .unwrap_err()
        .to_string();
    assert!(why.contains("refused the connection"), "{why}");
}
