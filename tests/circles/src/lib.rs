//! Finds circles among the modules of a crate.
//!
//! The compiler keeps crates from depending on each other in a circle. Inside a crate nothing does, so this crate
//! reads the source and checks.
//!
//! **What counts.** A module is a file; modules written inline belong to their file. Module *a* depends on module *b*
//! when the code of *a* names something that *b* defines. A name is followed through imports, globs and re-exports to
//! the file that has the definition, so it makes no difference through which module a name is reached:
//!
//! - Declaring a module (`mod child;`) is no dependency.
//! - Re-exporting something from further down (`pub use self::child::Item;`) is none either, unless the code of the
//!   re-exporting module uses the name itself. Re-exporting something from elsewhere is.
//! - A child that uses what its parent defines depends on the parent. That is a circle exactly when the code of the
//!   parent also uses the child.
//! - Code that is compiled only under `cfg(test)` or `cfg(fuzzing)` is left out, and so is documentation.
//!
//! **What is read.** Paths in code and in macro calls, the strings of `serde` attributes, `Type::function` and
//! `self.method()` where the inherent method is in another file than its type, and methods of re-exported traits.
//! A method call on anything but `self` counts only by the import that it needs.

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

/// What a module is for the purpose of a circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// One file.
    File,
    /// A file with everything below it, against its siblings: `catalog` with all of `catalog/`.
    Folder,
}

/// Finds the circles of the crate whose root is this file, such as `src/lib.rs`.
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

/// Describes every dependency between the files of a crate, one a line, sorted: `catalog -> limits (crate::Limits)`.
///
/// # Errors
///
/// As [`circles`].
pub fn dependencies(root: &Path) -> Result<Vec<String>> {
    let tree = read::crate_at(root)?;
    Ok(Graph::of(&tree).lines())
}
