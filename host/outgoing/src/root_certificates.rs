//! Trusted root certificates.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};

/// Maximum size of a file, in bytes. The certificates of a system have about 250 KiB.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Loads the certificates of the system and of the operator's files. Blocks.
///
/// # Errors
///
/// Returns an error if a file cannot be used, with the reason.
pub fn load(extra: &[PathBuf]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::warn!("some root certificates of the system cannot be read: {error}");
    }
    // Systems list some certificates that cannot be parsed. An operator cannot change that, so they
    // are ignored.
    roots.add_parsable_certificates(native.certs);
    add_all(&mut roots, extra)?;
    if roots.is_empty() {
        tracing::warn!("the system has no root certificates: no request over https can be sent");
    }
    Ok(roots)
}

/// Checks that these files can be used.
pub(crate) fn check(extra: &[PathBuf]) -> Result<(), String> {
    add_all(&mut RootCertStore::empty(), extra)
}

fn add_all(roots: &mut RootCertStore, extra: &[PathBuf]) -> Result<(), String> {
    extra.iter().try_for_each(|path| add(roots, path))
}

/// Adds the certificates of a PEM file, all of which must be valid.
fn add(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    let name = path.display();
    let broken = |error: pem::Error| format!("{name}: is not a valid PEM file: {error}");
    let text = read(path).map_err(|why| format!("{name}: {why}"))?;
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(&text) {
        count += 1;
        let unusable =
            |error| format!("{name}: certificate {count} cannot be used as a root: {error}");
        roots.add(certificate.map_err(broken)?).map_err(unusable)?;
    }
    if count == 0 {
        return Err(format!(
            "{name}: contains no certificate; it must have one that begins with `-----BEGIN CERTIFICATE-----`"
        ));
    }
    Ok(())
}

/// Reads a regular file. Never waits for the writer of a FIFO.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        kind => format!("cannot be read: {kind}"),
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = open(path, flags, Mode::empty()).map_err(|error| unreadable(error.into()))?;
    let file = File::from(opened);
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let mut text = Vec::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("is larger than {} MiB", MAX_FILE_BYTES >> 20));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{MAX_FILE_BYTES, load};

    #[test]
    fn a_mistake_names_the_file_and_what_is_wrong_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let message = |text: Option<&str>| {
            let _absent = fs::remove_file(&path);
            if let Some(text) = text {
                fs::write(&path, text).unwrap();
            }
            let message = load(std::slice::from_ref(&path)).unwrap_err();
            message
                .strip_prefix(&format!("{}: ", path.display()))
                .unwrap_or(&message)
                .to_owned()
        };
        assert_eq!(message(None), "does not exist");
        assert_eq!(
            message(Some("not a certificate")),
            "contains no certificate; it must have one that begins with `-----BEGIN CERTIFICATE-----`"
        );
        let broken = message(Some(
            "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
        ));
        assert!(broken.starts_with("is not a valid PEM file: "), "{broken}");
        let empty = message(Some(
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ));
        assert!(
            empty.starts_with("certificate 1 cannot be used as a root: "),
            "{empty}"
        );
        let large = " ".repeat(usize::try_from(MAX_FILE_BYTES).unwrap() + 1);
        assert_eq!(message(Some(&large)), "is larger than 4 MiB");
        fs::remove_file(&path).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        let fifo = load(std::slice::from_ref(&path)).unwrap_err();
        assert_eq!(fifo, format!("{}: is not a regular file", path.display()));
    }
}
