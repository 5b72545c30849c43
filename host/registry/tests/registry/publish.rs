//! Publishing.

use bytes::Bytes;
use serde_json::Value;
use toolbay_registry::{Publication, PublishedComponent};
use toolbay_testkit::{FakeAnswer, FakeRegistry};

use super::{ARCHIVE, COMPONENT, Setup, digest};

fn publication() -> Publication {
    Publication {
        component: Some(PublishedComponent {
            file_name: "weather.wasm".to_owned(),
            bytes: Bytes::from_static(b"component"),
            is_component: true,
            imports: vec!["wasi:cli/environment@0.2.0".to_owned()],
            exports: vec!["run".to_owned()],
        }),
        archive: Some((
            "weather-1.0.0.bay".to_owned(),
            Bytes::from_static(b"archive"),
        )),
        annotations: [("a".to_owned(), "b".to_owned())].into(),
        author: None,
    }
}

#[tokio::test]
async fn a_plugin_is_published_with_one_layer_and_its_archive_beside_it() {
    let setup = Setup::new();
    let registry = &setup.registry;
    let upload = FakeAnswer::new("202 Accepted", "")
        .with_header("Location", "/v2/acme/weather/blobs/uploads/1?state=x");
    registry.answer("POST /v2/acme/weather/blobs/uploads/", vec![upload]);
    let created = || vec![FakeAnswer::new("201 Created", "")];
    registry.answer("PUT /v2/acme/weather/blobs/uploads/1", created());
    registry.answer("PUT /v2/acme/weather/manifests/1", created());
    let digest_of_manifest = publication().prepare().unwrap().digest();
    let archive_path = format!("PUT /v2/acme/weather/manifests/sha256-{digest_of_manifest}.bay");
    registry.answer(&archive_path, created());
    // What the registry has already is not sent.
    registry.answer(
        &format!("HEAD /v2/acme/weather/blobs/{}", digest(b"{}")),
        vec![FakeAnswer::ok("")],
    );
    let published = setup
        .client
        .push_plugin(&setup.reference, &publication().prepare().unwrap())
        .await
        .unwrap();
    assert_eq!(published, digest_of_manifest);
    let sent = registry
        .received("PUT /v2/acme/weather/manifests/1")
        .unwrap();
    assert_eq!(digest(&sent), format!("sha256:{published}"));
    let sent: Value = serde_json::from_slice(&sent).unwrap();
    assert_eq!(sent["layers"].as_array().unwrap().len(), 1);
    assert_eq!(sent["layers"][0]["mediaType"], COMPONENT);
    assert_eq!(
        sent["config"]["mediaType"],
        "application/vnd.wasm.config.v0+json"
    );
    assert_eq!(
        sent["annotations"]["dev.toolbay.archive.digest"],
        digest(b"archive")
    );
    let archive: Value =
        serde_json::from_slice(&registry.received(&archive_path).unwrap()).unwrap();
    assert_eq!(archive["artifactType"], ARCHIVE);
    assert_eq!(archive["layers"][0]["digest"], digest(b"archive"));
    let requests = registry.take_requests();
    let uploads = requests
        .iter()
        .filter(|head| head.starts_with("PUT /v2/acme/weather/blobs/uploads/1?state=x&digest="));
    // The component, the archive and the configuration; the archive again for its own manifest.
    assert_eq!(uploads.count(), 4);
    // The tag is written last.
    let last = requests.last().unwrap();
    assert!(
        last.starts_with("PUT /v2/acme/weather/manifests/1 "),
        "{last}"
    );
}

#[tokio::test]
async fn an_upload_does_not_leave_the_registry() {
    let setup = Setup::new();
    let other = FakeRegistry::start().unwrap();
    for (location, expected) in [
        (format!("http://{}/upload", other.address()), "another host"),
        ("http://[".to_owned(), "names no URL to upload to"),
    ] {
        let upload = FakeAnswer::new("202 Accepted", "").with_header("Location", &location);
        setup
            .registry
            .answer("POST /v2/acme/weather/blobs/uploads/", vec![upload]);
        let refused = setup
            .client
            .push_plugin(&setup.reference, &publication().prepare().unwrap())
            .await;
        let why = refused.unwrap_err().to_string();
        assert!(why.contains(expected), "{location}: {why}");
        assert!(other.take_requests().is_empty());
    }
    setup.registry.answer(
        "POST /v2/acme/weather/blobs/uploads/",
        vec![FakeAnswer::new("403 Forbidden", "")],
    );
    let refused = setup
        .client
        .push_plugin(&setup.reference, &publication().prepare().unwrap())
        .await;
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("no right to write acme/weather"), "{why}");
}
