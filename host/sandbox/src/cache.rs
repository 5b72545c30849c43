//! The compile cache: compiled components on disk, by content. Opening one takes a millisecond.
//!
//! Compiled code is native code: whoever can write to this folder can run code as the server. The folder is therefore
//! private (its owner and mode are checked), and nothing from a plugin folder gets into it without passing the
//! compiler. Files are written under a temporary name, synced, renamed, and never changed. Several servers can share
//! the folder, and one that is killed at any moment leaves it usable.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;
use toolbay_model::{Description, Digest};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::about::About;
use crate::error::too_large;
use crate::versions::SERVED;

/// Prefix of the name of a file that is being written.
const TEMPORARY: &str = ".tmp-";

/// An older temporary file was left behind by a server that was killed.
const ABANDONED: Duration = Duration::from_hours(1);

/// Age from which the time of last use is renewed. A server that opens a thousand components at startup should not
/// write a thousand times.
const FRESH: Duration = Duration::from_hours(24);

/// The version of the code that derives descriptions and schemas from a component. Increase it with every change to
/// what is derived, so that a newer Toolbay does not show what an older one derived.
const DERIVATION: u32 = 4;

/// Identifies the engine's version, settings and target, the versions of the contract, and the version of the code that
/// derives descriptions.
fn maker(engine: &Engine, derivation: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    SERVED.map(|(version, _)| version).hash(&mut hasher);
    derivation.hash(&mut hasher);
    hasher.finish()
}

/// A folder of compiled components of one maker. It may contain files of other makers.
#[derive(Debug)]
pub(crate) struct CompileCache {
    folder: PathBuf,
    /// Identifies everything that made the files, see [`maker`]. Files of other makers are ignored.
    maker: u64,
    size: u64,
}

/// The file `<digest>-<engine>.json`. It is written last, so the files that it names are complete.
#[derive(Deserialize, Serialize)]
struct Record {
    /// The name of the file with the code.
    code: String,
    /// The code's length and checksum, to detect damage.
    length: u64,
    crc32: u32,
    /// The tools that the component listed.
    description: Description,
    /// What is known about its file.
    about: About,
}

/// Why a compiled component is not used.
enum Unusable {
    /// It is damaged.
    Damaged(String),
    /// It is intact but exceeds this server's ceilings, which are lower; compiling it again reports that.
    TooLarge,
}

impl CompileCache {
    /// Opens the cache. Creates the folder if necessary.
    ///
    /// # Errors
    ///
    /// Why the cache cannot be used, in one line.
    pub(crate) fn open(folder: &Path, engine: &Engine, size: ByteSize) -> Result<Self, String> {
        make_private(folder).map_err(|why| format!("the compile cache is off: {why}"))?;
        let cache = Self { folder: folder.to_owned(), maker: maker(engine, DERIVATION), size: size.as_u64() };
        cache.sweep();
        Ok(cache)
    }

    /// The component with this digest, and the tools that it listed. Removes a damaged file and logs that.
    pub(crate) fn find(&self, engine: &Engine, digest: Digest) -> Option<(Component, Description, About)> {
        let path = self.record(digest);
        let text = fs::read(&path).ok()?;
        let found = self.open_record(engine, &text);
        match found {
            Ok(found) => {
                Self::mark_used(&path);
                Some(found)
            }
            Err(Unusable::TooLarge) => None,
            Err(Unusable::Damaged(why)) => {
                tracing::warn!(%digest, "compile cache: an entry was dropped and will be compiled again: {why}");
                drop(fs::remove_file(&path));
                None
            }
        }
    }

    fn open_record(&self, engine: &Engine, text: &[u8]) -> Result<(Component, Description, About), Unusable> {
        let damaged = |why: String| Unusable::Damaged(why);
        let record: Record =
            serde_json::from_slice(text).map_err(|error| damaged(format!("its record is corrupt: {error}")))?;
        let name = Path::new(&record.code).file_name().ok_or_else(|| damaged("its record is corrupt".to_owned()))?;
        let path = self.folder.join(name);
        let code = fs::read(&path).map_err(|error| damaged(format!("cannot read its code: {error}")))?;
        if code.len() as u64 != record.length || crc32fast::hash(&code) != record.crc32 {
            // Whoever compiles it again must not find the damaged file.
            drop(fs::remove_file(&path));
            return Err(damaged("its code is corrupt (length or checksum differs)".to_owned()));
        }
        drop(code);
        let component = open(engine, &path).map_err(|error| {
            let root = error.root_cause().to_string();
            if too_large(&root).is_some() { Unusable::TooLarge } else { Unusable::Damaged(root) }
        })?;
        Ok((component, record.description, record.about))
    }

    /// Whether the cache has the component with this digest, in hexadecimal.
    pub(crate) fn has(&self, digest: &str) -> bool {
        self.record(digest).exists()
    }

    /// Creates a file for the compiler's output, which [`CompileCache::keep`] can add to the cache.
    pub(crate) fn scratch(&self) -> io::Result<NamedTempFile> {
        tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(&self.folder)
    }

    /// Adds compiled code and the tools that it listed. Errors are only logged: without the cache, the next start is
    /// slower.
    pub(crate) fn keep(&self, digest: Digest, code: NamedTempFile, description: Description, about: About) {
        if let Err(error) = self.try_keep(digest, code, description, about) {
            tracing::warn!(%digest, "compile cache: an entry could not be written: {error}");
        }
    }

    fn try_keep(&self, digest: Digest, code: NamedTempFile, description: Description, about: About) -> io::Result<()> {
        // Another server was faster. Compiling twice gives different bytes, and a second file would be superfluous.
        if self.record(digest).exists() {
            return Ok(());
        }
        let bytes = fs::read(code.path())?;
        let crc32 = crc32fast::hash(&bytes);
        // The name contains the checksum, so that the files of two servers that compile the same component are not
        // mixed.
        let name = format!("{digest}-{:016x}-{crc32:08x}.cwasm", self.maker);
        code.as_file().sync_all()?;
        code.persist(self.folder.join(&name))?;
        let record = Record { code: name, length: bytes.len() as u64, crc32, description, about };
        let mut file = self.scratch()?;
        file.write_all(&serde_json::to_vec(&record)?)?;
        file.as_file().sync_all()?;
        file.persist(self.record(digest))?;
        self.evict();
        Ok(())
    }

    fn record(&self, digest: impl std::fmt::Display) -> PathBuf {
        self.folder.join(format!("{digest}-{:016x}.json", self.maker))
    }

    fn mark_used(record: &Path) {
        let age = fs::metadata(record).and_then(|metadata| metadata.modified()).ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > FRESH) {
            drop(File::options().append(true).open(record).and_then(|file| file.set_modified(SystemTime::now())));
        }
    }

    /// Removes what killed servers left behind.
    fn sweep(&self) {
        for file in self.files() {
            if file.name.starts_with(TEMPORARY) && file.used.elapsed().is_ok_and(|age| age > ABANDONED) {
                drop(fs::remove_file(self.folder.join(&file.name)));
            }
        }
    }

    /// Removes the least recently used components until the rest fits.
    fn evict(&self) {
        let mut files = self.files();
        let mut total: u64 = files.iter().map(|file| file.length).sum();
        if total <= self.size {
            return;
        }
        files.retain(|file| !file.name.starts_with(TEMPORARY));
        files.sort_by_key(|file| file.used);
        let keys: Vec<String> =
            files.iter().filter_map(|file| file.name.strip_suffix(".json")).map(str::to_owned).collect();
        for key in keys {
            if total <= self.size {
                return;
            }
            // The record first: code without a record only wastes space.
            for file in files.iter().filter(|file| file.name.starts_with(&key)).rev() {
                if fs::remove_file(self.folder.join(&file.name)).is_ok() {
                    total = total.saturating_sub(file.length);
                }
            }
        }
    }

    fn files(&self) -> Vec<Listed> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_name().to_str().is_some_and(is_ours))
            .filter_map(|entry| {
                let metadata = entry.metadata().ok()?;
                Some(Listed {
                    name: entry.file_name().into_string().ok()?,
                    length: metadata.len(),
                    used: metadata.modified().ok()?,
                })
            })
            .collect()
    }
}

/// Opens compiled code that our compiler wrote into our private folder.
pub(crate) fn open(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    // SAFETY: the file is in a folder that only this user can write; our compiler wrote all of it, and it is never
    // changed in place.
    #[expect(unsafe_code, reason = "native code of our own compiler; see the comment above and the module's")]
    unsafe {
        Component::deserialize_file(engine, path)
    }
}

/// A file in memory, for code that is not added to the cache.
pub(crate) fn memory() -> io::Result<File> {
    Ok(rustix::fs::memfd_create("toolbay-code", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

/// Opens compiled code that our compiler wrote into `file`, which has no name.
pub(crate) fn open_memory(engine: &Engine, file: &mut File) -> wasmtime::Result<Component> {
    let mut code = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut code)?;
    // SAFETY: only our compiler, a child process that has ended, had access to the file.
    #[expect(unsafe_code, reason = "native code of our own compiler; see the comment above and the module's")]
    unsafe {
        Component::deserialize(engine, code)
    }
}

/// Whether a file with this name belongs to the cache. Other files in the folder are left alone.
fn is_ours(name: &str) -> bool {
    let digest = name.get(..64).is_some_and(|digest| digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    name.starts_with(TEMPORARY) || (digest && name.get(64..65) == Some("-"))
}

/// A file of the cache.
struct Listed {
    name: String,
    length: u64,
    used: SystemTime,
}

/// Creates the folder, or checks that nobody else can write to it or replace it.
fn make_private(folder: &Path) -> Result<(), String> {
    let cannot = |error: io::Error| format!("cannot use {}: {error}", folder.display());
    if !folder.exists() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(cannot)?;
        tracing::info!("created the folder {} for compiled components", folder.display());
    }
    let me = rustix::process::geteuid().as_raw();
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for (folder, own) in [(folder, true), (parent, false)] {
        let metadata = fs::metadata(folder).map_err(cannot)?;
        let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
        if owner != me && (own || owner != 0) {
            return Err(format!("{} belongs to another user", folder.display()));
        }
        // In a sticky folder such as /tmp, users cannot move each other's files.
        if mode & 0o022 != 0 && (own || mode & 0o1000 == 0) {
            let mode = mode & 0o777;
            let folder = folder.display();
            return Err(format!("{folder} is writable by other users (mode {mode:o}; to fix it, run chmod go-w)"));
        }
    }
    // The cache must be writable. Find out now instead of at the first plugin.
    tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(folder).map_err(cannot)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use toolbay_model::{Limits, ToolDefinition};

    use super::*;
    use crate::engine;
    use crate::source::Source;

    const COMPONENT: &str = "(component (core module (func (export \"f\"))))";

    fn engine() -> Engine {
        engine::build(16, ByteSize::kib(512), &Limits::CEILING).unwrap().0
    }

    fn digest_of(text: &str) -> Digest {
        Source { file: text.into(), wit: String::new() }.digest()
    }

    fn digest() -> Digest {
        digest_of(COMPONENT)
    }

    fn tools() -> Description {
        let tool = ToolDefinition { name: "t".into(), ..ToolDefinition::default() };
        Description { tools: vec![tool], ..Description::default() }
    }

    /// A cache with one component.
    fn filled(folder: &Path) -> CompileCache {
        let store = CompileCache::open(folder, &engine(), ByteSize::mib(10)).unwrap();
        let mut code = store.scratch().unwrap();
        let wasm = wat::parse_str(COMPONENT).unwrap();
        let compiled = engine::compiler(ByteSize::kib(512)).unwrap().precompile_component(&wasm).unwrap();
        code.write_all(&compiled).unwrap();
        store.keep(digest(), code, tools(), About::default());
        store
    }

    fn code_file(folder: &Path) -> PathBuf {
        let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.find(|path| path.extension().is_some_and(|extension| extension == "cwasm")).unwrap()
    }

    #[test]
    fn the_server_opens_what_the_compiler_process_wrote() {
        let dir = tempfile::tempdir().unwrap();
        let store = filled(dir.path());
        let (_, found, _) = store.find(&engine(), digest()).unwrap();
        assert_eq!(found, tools());
        assert!(store.find(&engine(), digest_of("another")).is_none());
    }

    #[test]
    fn entries_of_an_older_toolbay_are_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let older = CompileCache { maker: maker(&engine(), DERIVATION - 1), ..filled(dir.path()) };
        assert!(older.find(&engine(), digest()).is_none());
        assert!(filled(dir.path()).find(&engine(), digest()).is_some());
    }

    #[test]
    fn damaged_files_are_a_miss_and_are_removed() {
        let damages: [fn(&Path); 4] = [
            |code| fs::write(code, b"nonsense").unwrap(),
            |code| File::options().write(true).open(code).unwrap().set_len(100).unwrap(),
            |code| fs::remove_file(code).unwrap(),
            |code| {
                let mut bytes = fs::read(code).unwrap();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                fs::write(code, bytes).unwrap();
            },
        ];
        for damage in damages {
            let dir = tempfile::tempdir().unwrap();
            let store = filled(dir.path());
            damage(&code_file(dir.path()));
            assert!(store.find(&engine(), digest()).is_none());
            assert!(!store.record(digest()).exists());
            assert!(filled(dir.path()).find(&engine(), digest()).is_some(), "compiled anew, it is whole again");
        }
    }

    #[test]
    fn a_damaged_record_is_a_miss() {
        let dir = tempfile::tempdir().unwrap();
        let store = filled(dir.path());
        fs::write(store.record(digest()), b"{\"code\":").unwrap();
        assert!(store.find(&engine(), digest()).is_none());
    }

    #[test]
    fn a_record_cannot_lead_out_of_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let store = filled(dir.path());
        let mut record: Record = serde_json::from_slice(&fs::read(store.record(digest())).unwrap()).unwrap();
        record.code = "/etc/passwd".into();
        fs::write(store.record(digest()), serde_json::to_vec(&record).unwrap()).unwrap();
        assert!(store.find(&engine(), digest()).is_none());
    }

    #[test]
    fn code_of_another_engine_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        filled(dir.path());
        let mut other = CompileCache::open(dir.path(), &engine(), ByteSize::mib(10)).unwrap();
        other.maker ^= 1;
        assert!(other.find(&engine(), digest()).is_none());
        assert!(code_file(dir.path()).exists(), "it is another's, and stays");
    }

    #[test]
    fn a_folder_that_others_can_write_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o770)).unwrap();
        for folder in [dir.path().to_owned(), dir.path().join("below")] {
            let error = CompileCache::open(&folder, &engine(), ByteSize::mib(1)).unwrap_err();
            assert!(error.ends_with("is writable by other users (mode 770; to fix it, run chmod go-w)"), "{error}");
        }
        // It may be in a folder that everybody can write to but where users cannot move each other's files.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        CompileCache::open(&dir.path().join("below"), &engine(), ByteSize::mib(1)).unwrap();
    }

    #[test]
    fn the_least_recently_used_is_removed_when_the_cache_is_full() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = filled(dir.path());
        let record = store.record(digest());
        let long_ago = SystemTime::now() - 2 * FRESH;
        File::options().append(true).open(&record).unwrap().set_modified(long_ago).unwrap();
        store.size = fs::metadata(code_file(dir.path())).unwrap().len() + 2000;
        let mut code = store.scratch().unwrap();
        code.write_all(&fs::read(code_file(dir.path())).unwrap()).unwrap();
        fs::write(dir.path().join("notes.json"), vec![b'x'; 5000]).unwrap();
        store.keep(digest_of("newer"), code, tools(), About::default());
        assert!(!record.exists());
        assert!(dir.path().join("notes.json").exists(), "what is not ours stays");
        assert!(store.record(digest_of("newer")).exists());
    }

    #[test]
    fn a_use_renews_the_time_of_last_use() {
        let dir = tempfile::tempdir().unwrap();
        let store = filled(dir.path());
        let record = store.record(digest());
        let long_ago = SystemTime::now() - 2 * FRESH;
        File::options().append(true).open(&record).unwrap().set_modified(long_ago).unwrap();
        store.find(&engine(), digest()).unwrap();
        assert!(fs::metadata(&record).unwrap().modified().unwrap().elapsed().unwrap() < FRESH);
    }
}
