//! TLS with a certificate that can change at run time.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::certificate_files::{CertificateContents, CertificateFiles};
use crate::server_config;

/// Interval at which the files are read. A new pair takes effect within this time.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);

/// TLS with the certificate and the key in two files.
pub struct ReloadingTls {
    files: CertificateFiles,
    current: ArcSwap<ServerConfig>,
    last_read: Mutex<FileVersions>,
}

/// Content of the files when they were last read successfully, and the failure since then.
struct FileVersions {
    contents: CertificateContents,
    /// Reason that the newest pair is not in use.
    failure: Option<String>,
}

impl ReloadingTls {
    /// Reads the current files. Blocks.
    ///
    /// # Errors
    ///
    /// Returns the reason and a way to fix it.
    pub fn open(files: CertificateFiles) -> Result<Self, String> {
        let contents = files.read()?;
        let current = ArcSwap::new(server_config::build_config(&files, &contents)?);
        Ok(Self {
            files,
            current,
            last_read: Mutex::new(FileVersions {
                contents,
                failure: None,
            }),
        })
    }

    /// Returns the paths of the certificate and the key.
    pub fn files(&self) -> &CertificateFiles {
        &self.files
    }

    /// Reads the files, and uses their content if it is a new pair. Blocks.
    pub fn reload(&self) {
        let mut last_read = self.last_read.lock();
        let reloaded = self.files.read().and_then(|contents| {
            if contents == last_read.contents {
                return Ok(None);
            }
            Ok(Some((
                server_config::build_config(&self.files, &contents)?,
                contents,
            )))
        });
        match reloaded {
            Ok(None) => {
                if last_read.failure.take().is_some() {
                    tracing::info!("the certificate files contain the pair in use again");
                }
            }
            Ok(Some((config, contents))) => {
                self.current.store(config);
                *last_read = FileVersions {
                    contents,
                    failure: None,
                };
                tracing::info!(
                    "new connections get the new certificate in {}",
                    self.files.certificate.display()
                );
            }
            Err(why) => {
                if last_read.failure.as_ref() != Some(&why) {
                    tracing::warn!("{why}; the previous certificate stays in use");
                }
                last_read.failure = Some(why);
            }
        }
    }

    /// Reads the files periodically. Does not return.
    pub async fn reload_periodically(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(RELOAD_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let tls = Arc::clone(&self);
            // Fails only when the runtime shuts down.
            drop(tokio::task::spawn_blocking(move || tls.reload()).await);
        }
    }

    /// Performs the server's side of a handshake.
    ///
    /// # Errors
    ///
    /// Returns an error if the client does not use TLS or shares no supported parameters with the
    /// server.
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> io::Result<TlsStream<S>> {
        TlsAcceptor::from(self.current.load_full())
            .accept(stream)
            .await
    }
}

impl fmt::Debug for ReloadingTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReloadingTls")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    use std::path::Path;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as BASE64;
    use rcgen::{CertifiedKey, KeyPair};
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, RootCertStore, version};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio_rustls::TlsConnector;

    use super::*;

    fn new_pair() -> CertifiedKey<KeyPair> {
        rcgen::generate_simple_self_signed(["tools.example".to_owned()]).unwrap()
    }

    fn certificate(pair: &CertifiedKey<KeyPair>) -> String {
        pem("CERTIFICATE", pair.cert.der())
    }

    fn key(pair: &CertifiedKey<KeyPair>) -> String {
        pem("PRIVATE KEY", &pair.signing_key.serialize_der())
    }

    fn pem(label: &str, der: &[u8]) -> String {
        format!(
            "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
            BASE64.encode(der)
        )
    }

    fn write(path: &Path, text: &str) {
        let mut options = fs::File::options();
        let mut file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
            .unwrap();
        io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    }

    fn write_pair(files: &CertificateFiles, pair: &CertifiedKey<KeyPair>) {
        write(&files.certificate, &certificate(pair));
        write(&files.key, &key(pair));
    }

    fn open_with_new_pair(dir: &Path) -> (CertificateFiles, CertifiedKey<KeyPair>, ReloadingTls) {
        let files = CertificateFiles {
            certificate: dir.join("cert.pem"),
            key: dir.join("key.pem"),
        };
        let pair = new_pair();
        write_pair(&files, &pair);
        let tls = ReloadingTls::open(files.clone()).unwrap();
        (files, pair, tls)
    }

    /// Returns the negotiated protocol of a client that trusts only this certificate, or `None` if
    /// it rejects the server.
    async fn trusted(
        tls: &ReloadingTls,
        pair: &CertifiedKey<KeyPair>,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> io::Result<Option<Vec<u8>>> {
        let mut roots = RootCertStore::empty();
        roots.add(pair.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let (server_end, client_end) = duplex(1 << 16);
        let name = ServerName::try_from("tools.example").unwrap();
        let serving = async {
            let mut stream = tls.accept(server_end).await?;
            stream.write_all(b"hello").await?;
            stream.shutdown().await
        };
        let requesting = async {
            let mut stream = TlsConnector::from(Arc::new(client))
                .connect(name, client_end)
                .await?;
            let mut received = Vec::new();
            stream.read_to_end(&mut received).await?;
            assert_eq!(received, b"hello");
            Ok(stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec))
        };
        let (_, protocol) = tokio::join!(serving, requesting);
        protocol
    }

    #[tokio::test]
    async fn both_tls_versions_and_http_1_1_are_negotiated() {
        let dir = tempfile::tempdir().unwrap();
        let (_, pair, tls) = open_with_new_pair(dir.path());
        for version in [&version::TLS12, &version::TLS13] {
            let protocol = trusted(&tls, &pair, &[version]).await.unwrap();
            assert_eq!(protocol.as_deref(), Some(&b"http/1.1"[..]));
        }
        trusted(&tls, &new_pair(), &[&version::TLS13])
            .await
            .unwrap_err();
    }

    #[tokio::test]
    async fn clients_without_tls_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let (_, _, tls) = open_with_new_pair(dir.path());
        let (server_end, mut client_end) = duplex(1 << 16);
        client_end
            .write_all(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .await
            .unwrap();
        assert_eq!(
            tls.accept(server_end).await.unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }

    #[tokio::test]
    async fn only_complete_new_pairs_take_effect() {
        let dir = tempfile::tempdir().unwrap();
        let (files, old, tls) = open_with_new_pair(dir.path());
        let new = new_pair();
        let both_versions = &[&version::TLS12, &version::TLS13];
        // Some programs write the files one after the other.
        write(&files.certificate, &certificate(&new));
        tls.reload();
        trusted(&tls, &old, both_versions).await.unwrap();
        write(&files.key, "-----BEGIN PRIVATE KEY-----\nMIG");
        tls.reload();
        trusted(&tls, &old, both_versions).await.unwrap();
        write(&files.key, &key(&new));
        tls.reload();
        trusted(&tls, &new, both_versions).await.unwrap();
        trusted(&tls, &old, both_versions).await.unwrap_err();
        // A key that other users can read is rejected, and a missing file changes nothing.
        write_pair(&files, &old);
        fs::set_permissions(&files.key, fs::Permissions::from_mode(0o644)).unwrap();
        tls.reload();
        trusted(&tls, &new, both_versions).await.unwrap();
        fs::remove_file(&files.key).unwrap();
        tls.reload();
        trusted(&tls, &new, both_versions).await.unwrap();
        write_pair(&files, &old);
        fs::set_permissions(&files.key, fs::Permissions::from_mode(0o600)).unwrap();
        tls.reload();
        trusted(&tls, &old, both_versions).await.unwrap();
    }

    #[test]
    fn mistakes_name_the_file_and_never_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let (files, pair, _) = open_with_new_pair(dir.path());
        let open_error = |files: &CertificateFiles| {
            ReloadingTls::open(files.clone())
                .map(drop)
                .unwrap_err()
                .replace(&format!("{}/", dir.path().display()), "")
        };
        let missing = CertificateFiles {
            certificate: dir.path().join("nowhere.pem"),
            ..files.clone()
        };
        assert_eq!(open_error(&missing), "nowhere.pem: does not exist");
        assert_eq!(
            open_error(&CertificateFiles {
                key: dir.path().to_owned(),
                ..files.clone()
            })
            .split(": ")
            .nth(1),
            Some("is not a regular file")
        );
        write(&files.key, &key(&new_pair()));
        assert_eq!(
            open_error(&files),
            "key.pem: is not the key of the certificate in cert.pem"
        );
        write(&files.key, "hunter2");
        assert_eq!(
            open_error(&files),
            "key.pem: contains no private key; it must have one that begins with `-----BEGIN PRIVATE KEY-----`"
        );
        write_pair(&files, &pair);
        write(&files.certificate, "nothing");
        assert!(open_error(&files).starts_with("cert.pem: contains no certificate"));
        write(
            &files.certificate,
            &certificate(&pair).replace("MII", "AAA"),
        );
        assert!(
            open_error(&files).contains("cert.pem"),
            "{}",
            open_error(&files)
        );
        write(&files.certificate, &"x".repeat(300 << 10));
        assert_eq!(open_error(&files), "cert.pem: is larger than 256 KiB");
    }
}
