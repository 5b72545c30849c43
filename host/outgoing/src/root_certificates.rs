//! Trusted root certificates.

use std::io;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};

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
    let broken = |error: pem::Error| match error {
        pem::Error::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            format!("{name}: does not exist")
        }
        pem::Error::Io(error) => format!("{name}: cannot be read: {}", error.kind()),
        error => format!("{name}: is not a valid PEM file: {error}"),
    };
    let mut count = 0;
    for certificate in CertificateDer::pem_file_iter(path).map_err(broken)? {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::load;

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
    }
}
