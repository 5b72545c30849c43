//! A real registry with TLS and passwords, and `oras` as the other tool. `cargo xtask test --only
//! registry` installs both and runs these tests.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use toolbay_testkit::DEADLINE;

use crate::http::tls::pem;
use crate::references::digest;
use crate::requests::create_authority;
use crate::support::{CommandOutput, Folder, TinyComponent, ToolbayCommand};

/// The password file of the registry: the user `ada` with the password `secret`.
const PASSWORDS: &str = "ada:$2a$04$I2lFplDpYqNYpGuCvvJRGe6HBW7.dhiSdmFamGZ8EJHTTl9y51GIy\n";

/// Returns a program that the test step has installed.
fn tool(name: &str) -> PathBuf {
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tools");
    let program = tools.join("registry").join(name);
    assert!(
        program.exists(),
        "{name} is not installed: run `cargo xtask test --only registry`"
    );
    program
}

/// A running registry with TLS, and a folder with the credentials for it.
struct RealRegistry {
    folder: Folder,
    process: Child,
    /// Host and port.
    address: String,
}

impl Drop for RealRegistry {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl RealRegistry {
    fn start() -> Self {
        let folder = Folder::new();
        let issuer = create_authority(&folder);
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["localhost".to_owned()])
            .unwrap()
            .signed_by(&key, &issuer)
            .unwrap();
        let path = |name: &str| folder.sibling_path(name).display().to_string();
        fs::write(path("cert.pem"), pem("CERTIFICATE", certificate.der())).unwrap();
        fs::write(path("key.pem"), pem("PRIVATE KEY", &key.serialize_der())).unwrap();
        fs::write(path("passwords"), PASSWORDS).unwrap();
        let config = json!({
            "version": "0.1",
            "log": {"level": "info", "accesslog": {"disabled": true}},
            "storage": {"filesystem": {"rootdirectory": path("storage")}},
            "http": {
                "addr": "127.0.0.1:0",
                "tls": {"certificate": path("cert.pem"), "key": path("key.pem")},
            },
            "auth": {"htpasswd": {"realm": "test", "path": path("passwords")}},
        });
        fs::write(path("registry.yml"), config.to_string()).unwrap();
        let mut process = Command::new(tool("registry"))
            .args(["serve", &path("registry.yml")])
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(process.stderr.take().unwrap());
        let (sender, ports) = channel();
        thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                if let Some((_, rest)) = line.split_once("listening on 127.0.0.1:") {
                    let port = rest.split(|c: char| !c.is_ascii_digit()).next();
                    drop(sender.send(port.unwrap_or_default().to_owned()));
                }
            }
        });
        let port = ports.recv_timeout(DEADLINE).unwrap();
        folder.write_config("[http_client]\nextra_ca = [\"ca.pem\"]");
        let registry = Self {
            folder,
            process,
            address: format!("localhost:{port}"),
        };
        registry.write_credentials("ada:secret");
        registry
    }

    fn write_credentials(&self, credentials: &str) {
        let entry = json!({"auth": STANDARD.encode(credentials)});
        let config = json!({"auths": {&self.address: entry}});
        fs::create_dir_all(self.folder.sibling_path("docker")).unwrap();
        fs::write(
            self.folder.sibling_path("docker/config.json"),
            config.to_string(),
        )
        .unwrap();
    }

    fn toolbay(&self, args: &[&str]) -> CommandOutput {
        let docker = self.folder.sibling_path("docker");
        ToolbayCommand::new(&self.folder)
            .env("DOCKER_CONFIG", docker.to_str().unwrap())
            .args(args)
            .run()
    }

    /// Runs a command that must succeed.
    fn done(&self, args: &[&str]) -> CommandOutput {
        let outcome = self.toolbay(args);
        assert_eq!(outcome.code, 0, "{outcome}");
        outcome
    }

    /// Runs `oras` in a folder next to the plugin folder.
    fn oras(&self, at: &Path, args: &[&str]) -> String {
        fs::create_dir_all(at).unwrap();
        let Output {
            status,
            stdout,
            stderr,
        } = Command::new(tool("oras"))
            .args(args)
            // By default, oras uses http for this host.
            .arg("--plain-http=false")
            .arg("--ca-file")
            .arg(self.folder.sibling_path("ca.pem"))
            .arg("--registry-config")
            .arg(self.folder.sibling_path("docker/config.json"))
            .current_dir(at)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&stdout).into_owned();
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{args:?}: {stdout}{stderr}");
        stdout
    }

    /// Pushes a component with `oras`. Returns the digest of its manifest.
    fn push(&self, reference: &str, component: &[u8]) -> String {
        let at = self.folder.sibling_path("pushed");
        fs::create_dir_all(&at).unwrap();
        fs::write(at.join("weather.wasm"), component).unwrap();
        self.oras(&at, &["push", reference, "weather.wasm:application/wasm"]);
        let described = self.oras(&at, &["manifest", "fetch", "--descriptor", reference]);
        let described: Value = serde_json::from_str(&described).unwrap();
        described["digest"].as_str().unwrap().to_owned()
    }
}

fn component(text: &str) -> Vec<u8> {
    TinyComponent::new(&["forecast"]).with_text(text).build()
}

#[test]
#[ignore = "it needs a registry and oras, which `cargo xtask test --only registry` installs"]
fn what_toolbay_publishes_is_read_by_oras_and_added_again() {
    let registry = RealRegistry::start();
    let project = registry.folder.sibling_path("project");
    fs::create_dir_all(project.join("weather.resources")).unwrap();
    fs::write(project.join("weather.wasm"), component("sun")).unwrap();
    fs::write(project.join("weather.resources/about.md"), "About").unwrap();
    let short = format!("{}/acme/weather:1.2.0", registry.address);
    let reference = format!("oci://{short}");
    let plugin = project.join("weather.wasm").display().to_string();
    let published = registry.done(&["publish", &plugin, &reference]);
    let (_, pinned) = published.raw_stdout.trim().rsplit_once('\n').unwrap();
    let pinned = pinned.strip_prefix("published ").unwrap();
    // The same plugin again has the same digest, so the tag does not move.
    let again = registry.done(&["publish", &plugin, &reference]);
    assert!(again.raw_stdout.contains(pinned), "{again}");
    // Another one does not replace it without a request.
    fs::write(project.join("weather.wasm"), component("rain")).unwrap();
    let refused = registry.toolbay(&["publish", &plugin, &reference]);
    assert!(
        refused.code == 1 && refused.stderr.contains("exists already, with sha256:"),
        "{refused}"
    );
    // oras gets the component and, under the tag of its digest, the archive.
    let pulled = registry.folder.sibling_path("pulled");
    registry.oras(&pulled, &["pull", &short]);
    assert_eq!(
        fs::read(pulled.join("weather.wasm")).unwrap(),
        component("sun")
    );
    let manifest = registry.oras(&pulled, &["manifest", "fetch", &short]);
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["layers"].as_array().unwrap().len(), 1);
    assert_eq!(manifest["annotations"]["dev.toolbay.tools"], "forecast");
    let config = registry.oras(&pulled, &["manifest", "fetch-config", &short]);
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(
        (&config["architecture"], &config["os"]),
        (&json!("wasm"), &json!("wasip2"))
    );
    assert_eq!(config["layerDigests"], json!([digest(&component("sun"))]));
    let archive = format!(
        "{}/acme/weather:{}.bay",
        registry.address,
        pinned.rsplit_once('@').unwrap().1.replace(':', "-")
    );
    registry.oras(&pulled, &["pull", &archive]);
    let archive = fs::read(pulled.join("weather.bay")).unwrap();
    assert_eq!(
        manifest["annotations"]["dev.toolbay.archive.digest"],
        digest(&archive)
    );
    // Everything of the archive is added, by tag and by digest.
    for (name, reference) in [("one", reference.as_str()), ("two", pinned)] {
        registry.done(&["add", reference, "--yes", "--as", name]);
        for (file, content) in [
            ("wasm", component("sun")),
            ("resources/about.md", b"About".to_vec()),
        ] {
            let path = registry.folder.plugin_path(&format!("{name}.{file}"));
            assert_eq!(fs::read(path).unwrap(), content, "{name}.{file}");
        }
    }
}

#[test]
#[ignore = "it needs a registry and oras, which `cargo xtask test --only registry` installs"]
fn what_oras_publishes_is_added_and_stays_when_the_tag_moves() {
    let registry = RealRegistry::start();
    let short = format!("{}/acme/weather:1", registry.address);
    let reference = format!("oci://{short}");
    let first = registry.push(&short, &component("sun"));
    let added = registry.done(&["add", &reference, "--yes"]);
    assert!(added.raw_stdout.contains(&first), "{added}");
    assert_eq!(registry.done(&["call", "forecast"]).stdout.trim(), "sun");
    let second = registry.push(&short, &component("rain"));
    assert_ne!(first, second);
    let outdated = registry.toolbay(&["outdated"]);
    assert_eq!(outdated.code, 1, "{outdated}");
    for digest in [&first, &second] {
        assert!(outdated.raw_stdout.contains(digest), "{outdated}");
    }
    // The pinned version comes back, although the tag names another one.
    fs::remove_file(registry.folder.plugin_path("weather.wasm")).unwrap();
    registry.done(&["sync", "--locked"]);
    assert_eq!(registry.done(&["call", "forecast"]).stdout.trim(), "sun");
    registry.done(&["update", "--yes"]);
    assert_eq!(registry.done(&["call", "forecast"]).stdout.trim(), "rain");
    let by_digest = format!("oci://{}/acme/weather@{first}", registry.address);
    registry.done(&["add", &by_digest, "--yes", "--as", "old"]);
    assert_eq!(
        fs::read(registry.folder.plugin_path("old.wasm")).unwrap(),
        component("sun")
    );
}

#[test]
#[ignore = "it needs a registry and oras, which `cargo xtask test --only registry` installs"]
fn passwords_and_certificates_are_required() {
    let registry = RealRegistry::start();
    let short = format!("{}/acme/weather:1", registry.address);
    registry.push(&short, &component("sun"));
    let add = || {
        let reference = format!("oci://{short}");
        let refused = registry.toolbay(&["add", &reference, "--yes"]);
        assert_eq!(refused.code, 1, "{refused}");
        refused.stderr
    };
    fs::write(registry.folder.sibling_path("docker/config.json"), "{}").unwrap();
    let missing = add();
    assert!(missing.contains("there are none for it"), "{missing}");
    registry.write_credentials("ada:wrong");
    let wrong = add();
    assert!(wrong.contains("are wrong, or have expired"), "{wrong}");
    assert!(!wrong.contains("ada"), "{wrong}");
    registry.write_credentials("ada:secret");
    let none = format!("oci://{}/acme/none:1", registry.address);
    let none = registry.toolbay(&["add", &none, "--yes"]);
    assert!(
        none.stderr.contains("does not exist in the registry"),
        "{none}"
    );
    registry.folder.write_config("");
    let untrusted = add();
    assert!(
        untrusted.contains("was not issued by a trusted authority"),
        "{untrusted}"
    );
    let names = fs::read_dir(registry.folder.plugin_path("x").parent().unwrap());
    assert_eq!(names.unwrap().count(), 0);
}
