//! A cycle of modules, as it is reported.

use std::fmt;
use std::path::PathBuf;

/// Modules that depend on each other, directly or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circle {
    /// Their names, sorted, such as `catalog::tool`; the crate's root is `crate`.
    pub modules: Vec<String>,
    /// One of the shortest cycles: each step depends on the next, and the last on the first.
    pub shortest: Vec<Step>,
}

/// A module of a cycle, and its dependency on the next module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The module.
    pub module: String,
    /// The module that it uses: the next one of the cycle, or for folders a module in the next
    /// folder.
    pub uses: String,
    /// Its file.
    pub file: PathBuf,
    /// The line that contains the last segment of the path; `None` if there is no such line.
    pub line: Option<usize>,
    /// The path that causes the dependency, as written in the code.
    pub name: String,
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} modules depend on each other: {}",
            self.modules.len(),
            self.modules.join(", ")
        )?;
        write!(f, "the shortest way round:")?;
        for step in &self.shortest {
            write!(
                f,
                "\n  {} uses {} by `{}` in {}",
                step.module,
                step.uses,
                step.name,
                step.file.display()
            )?;
            if let Some(line) = step.line {
                write!(f, ":{line}")?;
            }
        }
        Ok(())
    }
}
