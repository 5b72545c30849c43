//! The compile cache stores compiled components on disk by their content digest. A component's
//! notes are read at once, in microseconds. Its code is opened when the first call needs it.
//!
//! Compiled code is native code: anyone who can write to this directory can run code as the server.
//! The directory is therefore private. The owner and mode of it and of every parent directory are
//! checked by descriptor. Nothing from a plugin folder enters it without passing the compiler.
//!
//! Each entry has two message authentication codes (MACs). One covers the compiled code and is
//! checked when the code is opened. The other covers the component's digest, the build identifier,
//! the notes and the first MAC, and is checked when the entry is found. Only this user has the
//! [`key`]. The checked bytes are the ones that run: the file is checked and mapped through one
//! descriptor, and only this user could change it in between.
//!
//! Files are written under a temporary name, synced, renamed, and never changed. Several servers
//! can share the directory. A server that is killed at any moment leaves it usable.
//!
//! The reason why a component could not be loaded is stored as well, with the conditions under
//! which it holds: a refused plugin costs a compilation once, and not at every start. These files
//! have a message authentication code, too. Their number and their age are bounded.

mod cache_file;
mod code;
mod compile_cache;
mod entry;
mod folder_notes;
mod key;
mod refusal;

pub(crate) use self::code::{create_memory_file, open_file, open_from_memory};
pub(crate) use self::compile_cache::CompileCache;
pub(crate) use self::entry::{CachedComponent, ComponentNotes, StoredCode};
pub use self::refusal::StoredRefusal;

#[cfg(test)]
mod tests;
