//! Finds dependency cycles among the modules of a crate.
//!
//! The compiler rejects cycles between crates. It accepts cycles inside a crate, so this crate
//! reads the source and reports them.
//!
//! **Dependencies.** A module is a file; inline modules belong to their file. Module *a* depends on
//! module *b* if the code of *a* names an item that *b* defines. A name is resolved through
//! imports, globs and re-exports to the file that contains the definition, regardless of the module
//! through which it is reached:
//!
//! - Declaring a module (`mod child;`) is not a dependency.
//! - Re-exporting a descendant's item (`pub use self::child::Item;`) is not a dependency, unless
//!   the code of the re-exporting module uses the name itself. Re-exporting an item from elsewhere
//!   is.
//! - A child that uses its parent's items depends on the parent. This is a cycle if and only if the
//!   code of the parent also uses the child.
//! - Code under `cfg(test)` or `cfg(fuzzing)` is ignored, and so is documentation.
//!
//! **Input.** Paths in code and in macro calls, the strings of `serde` attributes, `Type::function`
//! and `self.method()` if the inherent method is in another file than its type, and methods of
//! re-exported traits. A method call on anything but `self` counts only through the import that it
//! needs.

mod cfg;
mod circle;
mod graph;
mod names;
mod read;
mod scan;
mod tree;

use std::path::Path;

use anyhow::Result;

pub use self::circle::{Circle, Step};
use self::graph::Graph;

/// The unit between which cycles are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A single file.
    File,
    /// A file with all its descendants, compared with its siblings: `catalog` with all of
    /// `catalog/`.
    Folder,
}

/// Finds the cycles of the crate whose root is this file, such as `src/lib.rs`.
///
/// # Errors
///
/// If a file of the crate cannot be read or is not Rust.
pub fn circles(root: &Path, unit: Unit) -> Result<Vec<Circle>> {
    let tree = read::crate_at(root)?;
    let graph = Graph::of(&tree);
    Ok(match unit {
        Unit::File => graph.circles(),
        Unit::Folder => graph.folder_circles(),
    })
}

/// Describes every dependency between the files of a crate, one per line, sorted: `catalog ->
/// limits (crate::Limits)`.
///
/// # Errors
///
/// See [`circles`].
pub fn dependencies(root: &Path) -> Result<Vec<String>> {
    let tree = read::crate_at(root)?;
    Ok(Graph::of(&tree).lines())
}
