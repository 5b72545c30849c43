//! Names of packages.

use std::fs;

use toolbay_bundle::PackageName;
use toolbay_registry::PackageRegistries;
use toolbay_testkit::FakeAnswer;

use super::Setup;

/// Returns the artifact of the package `acme:weather@1.2.0`, with this configuration, in which `HOST`
/// is the registry.
async fn locate(setup: &Setup, config: &str) -> Result<String, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let config = config.replace("HOST", setup.registry.address());
    fs::write(file.path(), config).unwrap();
    let registries = PackageRegistries::read(Some(file.path())).map_err(|why| why.to_string())?;
    let package: PackageName = "acme:weather@1.2.0".parse().unwrap();
    let located = setup.client.locate(&package, &registries).await;
    let located = located.map_err(|why| why.to_string())?;
    let text = located.to_string();
    Ok(text.replace(setup.registry.address(), "HOST"))
}

#[tokio::test]
async fn a_package_is_located_by_the_configuration_and_the_description_of_its_registry() {
    let setup = Setup::new();
    let plain = "[registry.\"HOST\".oci]\nprotocol = \"http\"\nauth = \"secret\"\n";
    let namespace = format!("namespace_registries.acme = \"HOST\"\n{plain}");
    // Without a description, the registry itself has the packages.
    let own = Ok("oci+http://HOST/acme/weather:1.2.0".to_owned());
    assert_eq!(locate(&setup, &namespace).await, own);
    let default = format!("default_registry = \"HOST\"\n{plain}");
    assert_eq!(locate(&setup, &default).await, own);
    let path = "GET /.well-known/wasm-pkg/registry.json";
    for (description, expected) in [
        (
            r#"{"preferredProtocol": "oci", "oci": {"registry": "registry.example.com", "namespacePrefix": "all/"}}"#,
            "oci://registry.example.com/all/acme/weather:1.2.0",
        ),
        (
            r#"{"ociRegistry": "registry.example.com", "ociNamespacePrefix": "all/"}"#,
            "oci://registry.example.com/all/acme/weather:1.2.0",
        ),
        ("{}", "oci+http://HOST/acme/weather:1.2.0"),
    ] {
        setup
            .registry
            .answer(path, vec![FakeAnswer::ok(description)]);
        assert_eq!(locate(&setup, &namespace).await.unwrap(), expected);
    }
    for (answer, expected) in [
        (
            FakeAnswer::ok(r#"{"preferredProtocol": "warg"}"#),
            "the protocol \"warg\"",
        ),
        (
            FakeAnswer::ok(r#"{"oci": {"registry": "a/../b"}}"#),
            "is not a reference",
        ),
        (
            FakeAnswer::ok(r#"{"oci": {"namespacePrefix": "../../"}}"#),
            "is not a reference",
        ),
        (FakeAnswer::ok("<html>"), "registry.json: expected value"),
        (FakeAnswer::ok("x".repeat(1 << 20)), "at most 65536 bytes"),
        (
            FakeAnswer::new("500 Internal Server Error", ""),
            "status 500",
        ),
    ] {
        setup.registry.answer(path, vec![answer]);
        let why = locate(&setup, &namespace).await.unwrap_err();
        assert!(why.contains(expected), "{expected}: {why}");
    }
    // The configuration describes the registry, or the package has its own.
    setup.registry.take_requests();
    let described = "[package_registry_overrides]\n\"acme:weather\" = { registry = \"x\", metadata = { preferredProtocol = \"oci\", oci = { registry = \"registry.example.com\" } } }";
    assert_eq!(
        locate(&setup, described).await.unwrap(),
        "oci://registry.example.com/acme/weather:1.2.0"
    );
    assert!(setup.registry.take_requests().is_empty());
    for (config, expected) in [
        ("", "no registry is configured for acme:weather@1.2.0"),
        ("default_registry = 1", "invalid type"),
        ("default_registry = \"a.example.com/x\"", "must be a host"),
        (
            "default_registry = \"user:secret@a.example.com\"",
            "must not contain a user",
        ),
        (
            "default_registry = \"a.example.com\"\n[registry.\"a.example.com\".oci]\nprotocol = \"http\"",
            "is not a URL with https",
        ),
    ] {
        let why = locate(&setup, config).await.unwrap_err();
        assert!(why.contains(expected), "{expected}: {why}");
    }
}
