//! `[compile]`: what compiling a plugin may use, and where the compile cache is.

use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Deserializer};
use toolbay_model::setting::{positive, size};

/// What the compile cache is called in the folder that the operator names.
const OWN_FOLDER: &str = "toolbay-compiled";

/// What compiling a plugin may use, and where the result is kept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompileConfig {
    /// Address space of the compiling child.
    #[serde(deserialize_with = "compiler_memory")]
    pub memory: ByteSize,
    /// Its processor time.
    #[serde(deserialize_with = "positive")]
    pub cpu: Duration,
    /// Its wall clock.
    #[serde(deserialize_with = "positive")]
    pub timeout: Duration,
    /// The folder in which `toolbay-compiled` has the compiled components.
    /// Empty keeps none; absent means `toolbay/compiled` in the user's cache
    /// folder.
    pub store: Option<PathBuf>,
    /// How large that may get.
    #[serde(deserialize_with = "positive")]
    pub store_size: ByteSize,
}

impl Default for CompileConfig {
    fn default() -> Self {
        Self {
            memory: ByteSize::gib(2),
            cpu: Duration::from_mins(2),
            timeout: Duration::from_mins(5),
            store: None,
            store_size: ByteSize::gib(2),
        }
    }
}

impl CompileConfig {
    /// Where compiled components are kept, and how large that may get.
    pub(super) fn store(&self) -> Option<(PathBuf, ByteSize)> {
        let folder = match &self.store {
            Some(folder) if folder.as_os_str().is_empty() => return None,
            // Whatever else is in the operator's folder is none of ours.
            Some(folder) => folder.join(OWN_FOLDER),
            None => {
                let cache = std::env::var_os("XDG_CACHE_HOME").filter(|cache| !cache.is_empty()).map(PathBuf::from);
                cache.or_else(|| Some(std::env::home_dir()?.join(".cache")))?.join("toolbay").join("compiled")
            }
        };
        Some((folder, self.store_size))
    }
}

fn compiler_memory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::mib(256), ByteSize::tib(1))
}
