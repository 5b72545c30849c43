//! What the files of components state about themselves, for the console. A file is read again only
//! if it has changed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use toolbay_bundle::{ProposedGrant, read_manifest};
use toolbay_catalog::{Plugin, component_path, read_source};
use toolbay_console::{GrantProposal, PluginFile};
use toolbay_model::Digest;
use toolbay_model::text::clean_line;

use super::rows::MAX_LINE_BYTES;
use crate::serve::grant_comparison::GrantComparison;

/// Maximum number of files whose proposals are kept.
const MAX_FILES: usize = 2_000;

/// The proposals in the files of components.
pub(super) struct PluginFiles {
    folder: PathBuf,
    /// Maximum size of a component, in bytes.
    max_bytes: u64,
    proposals: Mutex<BTreeMap<String, ReadProposal>>,
}

/// The proposal in a file, and what identifies the content of the file.
struct ReadProposal {
    stamp: FileStamp,
    digest: Digest,
    proposal: Option<Arc<ProposedGrant>>,
}

/// Device, file number, size, and time of the last change in seconds and nanoseconds.
type FileStamp = (u64, u64, u64, i64, i64);

impl PluginFiles {
    /// Creates the proposals in the files of a plugin folder.
    pub(super) fn new(folder: &Path, max_bytes: u64) -> Self {
        Self {
            folder: std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()),
            max_bytes,
            proposals: Mutex::default(),
        }
    }

    /// Returns the file of the component of this plugin. Blocks.
    pub(super) fn file(&self, id: &str) -> Option<PluginFile> {
        let path = component_path(&self.folder, id);
        let metadata = fs::metadata(&path).ok()?;
        let shown = |path: &Path| clean_line(&path.to_string_lossy(), MAX_LINE_BYTES);
        Some(PluginFile {
            link_target: fs::read_link(&path).ok().map(|target| shown(&target)),
            path: shown(&path),
            size: metadata.len(),
            modified_at: metadata.modified().ok(),
        })
    }

    /// Returns the grant that the component in service proposes, compared with the grant in force.
    /// Returns `None` if it proposes none, or if its file has been replaced since. Blocks.
    pub(super) fn proposal(&self, plugin: &Plugin) -> Option<GrantProposal> {
        let digest = plugin.digest()?;
        let proposal = self.read_proposal(&plugin.id, digest)?;
        if proposal.is_empty() {
            return None;
        }
        // A proposal that could not be a grant is not shown.
        let grant = &plugin.terms.source_grant;
        let GrantComparison { excess, missing } = GrantComparison::new(grant, &proposal).ok()?;
        let clean_lines = |lines: Vec<String>| {
            lines
                .iter()
                .map(|line| clean_line(line, MAX_LINE_BYTES))
                .collect()
        };
        Some(GrantProposal {
            text: proposal.to_toml(),
            excess: clean_lines(excess),
            missing: clean_lines(missing),
        })
    }

    fn read_proposal(&self, id: &str, digest: Digest) -> Option<Arc<ProposedGrant>> {
        let path = component_path(&self.folder, id);
        let stamp = file_stamp(&path)?;
        // Held while the file is read, so that several pages do not read it at the same time.
        let mut proposals = self.proposals.lock();
        let known = proposals.get(id).filter(|known| known.stamp == stamp);
        if known.is_none() {
            let source = read_source(&path, self.max_bytes).ok()?;
            let (manifest, _) = read_manifest(&source.file);
            if proposals.len() >= MAX_FILES {
                proposals.clear();
            }
            let read = ReadProposal {
                stamp,
                digest: source.digest(),
                proposal: manifest.proposed_grant.map(Arc::new),
            };
            proposals.insert(id.to_owned(), read);
        }
        proposals
            .get(id)
            .filter(|read| read.digest == digest)?
            .proposal
            .clone()
    }
}

fn file_stamp(path: &Path) -> Option<FileStamp> {
    let metadata = fs::metadata(path).ok()?;
    Some((
        metadata.dev(),
        metadata.ino(),
        metadata.len(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    ))
}
