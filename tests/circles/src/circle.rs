//! A circle of modules, as it is reported.

use std::fmt;
use std::path::PathBuf;

/// Modules that depend on each other, directly or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circle {
    /// The names of all of them, sorted, as `catalog::tool`; the crate's root is `crate`.
    pub modules: Vec<String>,
    /// One of the shortest ways round: each step depends on the next, and the last on the first.
    pub shortest: Vec<Step>,
}

/// One module of a circle, and how it depends on the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The module.
    pub module: String,
    /// The module that it uses: the next of the circle, or for folders a module in the next of them.
    pub uses: String,
    /// Its file.
    pub file: PathBuf,
    /// The line that has the last word of the name; none where there is no such line.
    pub line: Option<usize>,
    /// The path by which it does, as it is written.
    pub name: String,
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} modules depend on each other: {}", self.modules.len(), self.modules.join(", "))?;
        write!(f, "the shortest way round:")?;
        for step in &self.shortest {
            write!(f, "\n  {} uses {} by `{}` in {}", step.module, step.uses, step.name, step.file.display())?;
            if let Some(line) = step.line {
                write!(f, ":{line}")?;
            }
        }
        Ok(())
    }
}
