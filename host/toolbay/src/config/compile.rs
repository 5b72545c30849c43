//! `[compile]`: limits of the compiler process, and the compile cache.

use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Deserializer};
use toolbay_model::setting::{positive, size};

/// Name of the compile cache, inside the directory that the operator sets.
const CACHE_FOLDER: &str = "toolbay-compiled";

/// Limits of the compiler process, and the compile cache (`[compile]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompileConfig {
    /// Address space of the compiler process in bytes. 256 MiB to 1 TiB, default 2 GiB.
    #[serde(deserialize_with = "compiler_memory")]
    pub memory: ByteSize,
    /// CPU time of the compiler process over all threads, above 0. Default: 2 min.
    #[serde(deserialize_with = "positive")]
    pub cpu_time: Duration,
    /// Wall-clock time of the compiler process, above 0. Default: 5 min.
    #[serde(deserialize_with = "positive")]
    pub timeout: Duration,
    /// Directory of the compile cache, in which Toolbay creates `toolbay-compiled`. An empty path
    /// turns the cache off. `None` uses `toolbay/compiled` in the user's cache directory.
    pub cache_folder: Option<PathBuf>,
    /// Maximum size of the compile cache in bytes, above 0. The least recently used entries are
    /// removed first. Default: 2 GiB.
    #[serde(deserialize_with = "positive")]
    pub cache_size: ByteSize,
}

impl Default for CompileConfig {
    fn default() -> Self {
        Self {
            memory: ByteSize::gib(2),
            cpu_time: Duration::from_mins(2),
            timeout: Duration::from_mins(5),
            cache_folder: None,
            cache_size: ByteSize::gib(2),
        }
    }
}

impl CompileConfig {
    /// Returns the directory of the compile cache and its maximum size. `None` if the cache is off
    /// or there is no home directory.
    pub(crate) fn cache(&self) -> Option<(PathBuf, ByteSize)> {
        let folder = match &self.cache_folder {
            Some(folder) if folder.as_os_str().is_empty() => return None,
            // A subdirectory, so that the operator's other files are not touched.
            Some(folder) => folder.join(CACHE_FOLDER),
            None => {
                let cache = std::env::var_os("XDG_CACHE_HOME")
                    .filter(|cache| !cache.is_empty())
                    .map(PathBuf::from);
                cache
                    .or_else(|| Some(std::env::home_dir()?.join(".cache")))?
                    .join("toolbay")
                    .join("compiled")
            }
        };
        Some((folder, self.cache_size))
    }
}

fn compiler_memory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::mib(256), ByteSize::tib(1))
}
