//! Reads component files.

use std::path::{Path, PathBuf};

use tokio::sync::{Semaphore, SemaphorePermit};
use toolbay_model::Digest;
use toolbay_sandbox::CompileSource;

use crate::component::load_environment::LoadEnvironment;
use crate::folder::file_reader::{read_source, read_source_with_stamps};
use crate::folder::known_files::{ComponentStamps, KnownFiles};
use crate::folder::load_error::LoadError;
use crate::folder::plugin_folder::{PluginFiles, component_path};

/// Maximum number of component files that are in memory at the same time.
const MAX_CONCURRENT_READS: usize = 8;

/// Reads component files.
pub(crate) struct SourceReader {
    environment: LoadEnvironment,
    /// Permits to read component files, because a thousand files may change at the same time. A
    /// permit is not held while the file waits to be compiled, because files whose code is stored
    /// would wait, too.
    read_permits: Semaphore,
    /// Components that need not be read at a server start.
    known_files: KnownFiles,
}

/// Component file that was read, with its digest.
pub(crate) struct ReadSource {
    pub(crate) digest: Digest,
    pub(crate) source: CompileSource,
}

/// Component file that was read, with the stamps that identify its content.
pub(crate) struct StampedSource {
    source: CompileSource,
    stamps: Option<ComponentStamps>,
}

impl SourceReader {
    pub(crate) fn new(environment: LoadEnvironment) -> Self {
        Self {
            environment,
            read_permits: Semaphore::new(MAX_CONCURRENT_READS),
            known_files: KnownFiles::default(),
        }
    }

    /// Waits for a permit to read a component.
    pub(crate) async fn acquire(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.read_permits.acquire().await.ok()
    }

    /// Returns the digest of the plugin's component, if the files are known from the previous
    /// start.
    pub(crate) fn find_digest(&self, id: &str, files: &PluginFiles) -> Option<Digest> {
        let limit = self.environment.max_component_bytes();
        self.known_files.find_digest(id, files, limit)
    }

    /// Reads the component of the plugin `id`. Blocks.
    pub(crate) fn read(&self, id: &str) -> Result<StampedSource, LoadError> {
        let path = component_path(&self.environment.folder, id);
        let limit = self.environment.max_component_bytes();
        let (source, stamps) = read_source_with_stamps(&path, limit)?;
        Ok(StampedSource { source, stamps })
    }

    /// Computes the digest of a component that was read, and records it for the next start.
    pub(crate) fn record(&self, id: &str, file: StampedSource) -> ReadSource {
        let StampedSource { source, stamps } = file;
        let digest = source.digest();
        self.known_files.record(id, stamps, digest);
        ReadSource { digest, source }
    }

    /// Loads the record of the components that the previous server read. Blocks.
    pub(crate) fn load_known_files(&self) {
        let folder = absolute_path(&self.environment.folder);
        if let Some(notes) = self.environment.sandbox.folder_notes(&folder) {
            self.known_files.load_notes(&notes);
        }
    }

    /// Ends the server start: saves the record of the components that were read, for the next
    /// start. Blocks.
    pub(crate) fn save_known_files(&self) {
        if let Some(notes) = self.known_files.finish() {
            let folder = absolute_path(&self.environment.folder);
            self.environment.sandbox.save_folder_notes(&folder, notes);
        }
    }
}

/// Reads the component of the plugin `id` without recording its stamps. Blocks.
pub(crate) fn read_again(environment: &LoadEnvironment, id: &str) -> Result<ReadSource, LoadError> {
    let path = component_path(&environment.folder, id);
    let source = read_source(&path, environment.max_component_bytes())?;
    Ok(ReadSource {
        digest: source.digest(),
        source,
    })
}

fn absolute_path(folder: &Path) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}
