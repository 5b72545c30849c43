//! The container image, as an archive of an OCI layout: the program, the CA certificates that TLS
//! trusts, an unprivileged user, and no shell. `podman load`, `skopeo copy` and `docker load` read
//! it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::content::{BINARY, SAMPLES};
use crate::kit::Kit;
use crate::release::{AUTHORS, HOMEPAGE, IMAGE, LICENSE, NAME, REGISTRY_NAME, SUMMARY};
use crate::tarred::{DATA, Tarred, gzip};

/// The user ID and group ID, which images conventionally use for an unprivileged user.
pub(crate) const USER: u64 = 65_532;

/// The plugin folder, over which users mount their own.
pub(crate) const PLUGINS: &str = "/plugins";

/// Paths at which systems store the trusted CA certificates in one file.
const AUTHORITIES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
];

/// The users of the image, as `/etc/passwd`.
const PASSWD: &str = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n";
const GROUP: &str = "root:x:0:\nnonroot:x:65532:\n";

/// The media types of the parts of the layout.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A blob of the layout, addressed by its digest.
struct Blob {
    digest: String,
    content: Vec<u8>,
}

impl Blob {
    fn new(content: Vec<u8>) -> Self {
        Self {
            digest: hex::encode(Sha256::digest(&content)),
            content,
        }
    }

    fn json(value: &Value) -> Result<Self> {
        Ok(Self::new(serde_json::to_vec(value)?))
    }

    /// Returns the descriptor that refers to it.
    fn descriptor(&self, media_type: &str) -> Value {
        json!({"mediaType": media_type, "digest": format!("sha256:{}", self.digest), "size": self.content.len()})
    }
}

pub(crate) fn make(kit: &Kit) -> Result<Vec<PathBuf>> {
    let time = kit.release.time;
    let version = &kit.release.version;
    let layer = layer(kit)?;
    let compressed = {
        let mut gzip = gzip(Vec::new());
        std::io::Write::write_all(&mut gzip, &layer)?;
        Blob::new(gzip.finish()?)
    };
    let platform = json!({"architecture": kit.program.machine.debian, "os": "linux"});
    let config = Blob::json(&config(kit, &hex::encode(Sha256::digest(&layer))))?;
    let manifest = Blob::json(&json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config.descriptor(CONFIG),
        "layers": [compressed.descriptor(LAYER)],
        "annotations": annotations(version, &kit.release.date),
    }))?;
    let mut listed = manifest.descriptor(MANIFEST);
    if let Some(listed) = listed.as_object_mut() {
        listed.insert("platform".to_owned(), platform);
        listed.insert(
            "annotations".to_owned(),
            json!({"org.opencontainers.image.ref.name": version, "io.containerd.image.name": format!("{IMAGE}:{version}")}),
        );
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [listed]});

    let path = kit.out.join(format!(
        "{NAME}-{version}-{}.oci.tar",
        kit.program.machine.debian
    ));
    let out =
        File::create(&path).with_context(|| format!("failed to create {}", path.display()))?;
    let mut tarred = Tarred::new(out, time);
    tarred.file("oci-layout", DATA, br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    tarred.file("index.json", DATA, &serde_json::to_vec(&index)?)?;
    for blob in [&manifest, &config, &compressed] {
        tarred.file(
            &format!("blobs/sha256/{}", blob.digest),
            DATA,
            &blob.content,
        )?;
    }
    tarred.finish()?;
    Ok(vec![path])
}

/// Returns the annotations, which tools find without reading the configuration. The MCP registry
/// requires the name of the server.
fn annotations(version: &str, date: &str) -> Value {
    json!({
        "org.opencontainers.image.title": NAME,
        "org.opencontainers.image.description": SUMMARY,
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.created": date,
        "org.opencontainers.image.licenses": LICENSE,
        "org.opencontainers.image.authors": AUTHORS,
        "org.opencontainers.image.url": HOMEPAGE,
        "io.modelcontextprotocol.server.name": REGISTRY_NAME,
    })
}

/// Returns the configuration with which the image is run. The root can be read-only: the program
/// writes only to the two directories below, and only if they are writable.
fn config(kit: &Kit, layer: &str) -> Value {
    let date = &kit.release.date;
    let version = &kit.release.version;
    json!({
        "created": date,
        "architecture": kit.program.machine.debian,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "WorkingDir": "/home/nonroot",
            "Entrypoint": [format!("/usr/{BINARY}")],
            "Cmd": ["serve"],
            "Env": [
                "PATH=/usr/bin",
                "HOME=/home/nonroot",
                format!("TOOLBAY_PLUGINS={PLUGINS}"),
                format!("SSL_CERT_FILE={}", AUTHORITIES[0]),
            ],
            "Labels": annotations(version, date),
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
        "history": [{"created": date, "created_by": "cargo xtask dist"}],
    })
}

/// Returns the files as a compressed archive.
fn layer(kit: &Kit) -> Result<Vec<u8>> {
    let mut tarred = Tarred::new(Vec::new(), kit.release.time);
    for file in kit.content.lean() {
        // The image serves its samples unless another directory is mounted over them.
        let to = match file.to.strip_prefix(SAMPLES) {
            Some(name) => format!("{}{name}", PLUGINS.trim_start_matches('/')),
            None => format!("usr/{}", file.to),
        };
        tarred.copy(&to, file.mode(), &file.from)?;
    }
    let authorities = AUTHORITIES
        .iter()
        .map(Path::new)
        .find(|path| path.is_file());
    let authorities = authorities
        .context("TLS in the image trusts whom this system trusts: install ca-certificates")?;
    tarred.file(
        AUTHORITIES[0].trim_start_matches('/'),
        DATA,
        &fs::read(authorities)?,
    )?;
    tarred.file("etc/passwd", DATA, PASSWD.as_bytes())?;
    tarred.file("etc/group", DATA, GROUP.as_bytes())?;
    tarred.folder("tmp", 0o1777, 0)?;
    tarred.folder("home/nonroot", 0o700, USER)?;
    tarred.finish()
}
