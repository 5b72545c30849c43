//! The digests of all files of a release, in the format that `sha256sum --check` reads.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

/// The file with the digests.
pub(crate) const FILE: &str = "SHA256SUMS";

/// Returns the SHA-256 of a file, in hexadecimal digits.
pub(crate) fn digest(path: &Path) -> Result<String> {
    let failed = || format!("failed to read {}", path.display());
    let mut hasher = Sha256::new();
    std::io::copy(&mut File::open(path).with_context(failed)?, &mut hasher).with_context(failed)?;
    Ok(hex::encode(hasher.finalize()))
}

/// Writes the digests of all files in the directory.
pub(crate) fn write(folder: &Path) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.retain(|name| name != FILE);
    names.sort();
    let lines = names
        .iter()
        .map(|name| Ok(format!("{}  {name}\n", digest(&folder.join(name))?)));
    let lines = lines.collect::<Result<String>>()?;
    fs::write(folder.join(FILE), lines).with_context(|| format!("failed to write {FILE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digests_are_those_of_the_files() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b"), "").unwrap();
        fs::write(folder.path().join("a"), "abc").unwrap();
        // The second run checks that the digest file does not contain its own digest.
        write(folder.path()).unwrap();
        write(folder.path()).unwrap();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(
            fs::read_to_string(folder.path().join(FILE)).unwrap(),
            format!("{abc}  a\n{empty}  b\n")
        );
    }
}
