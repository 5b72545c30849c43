//! The input of the compiler.

use sha2::{Digest as _, Sha256};
use toolbay_model::Digest;

/// A plugin file, and the accompanying `.wit` file.
#[derive(Clone, Debug, Default)]
pub struct CompileSource {
    /// The bytes of the plugin file.
    pub file: Vec<u8>,
    /// The text of the accompanying `.wit` file, which documents its functions; empty if there is
    /// none.
    pub wit: String,
}

impl CompileSource {
    /// Returns the digest of all input: the SHA-256 of the file, or of the digests of the file and
    /// the `.wit` file.
    pub fn digest(&self) -> Digest {
        let file: [u8; 32] = Sha256::digest(&self.file).into();
        if self.wit.is_empty() {
            return Digest::new(file);
        }
        let wit: [u8; 32] = Sha256::digest(&self.wit).into();
        Digest::new(Sha256::digest([file, wit].concat()).into())
    }
}
