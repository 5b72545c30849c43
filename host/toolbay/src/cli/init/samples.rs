//! The sample plugins that packages contain, and the selection of those to copy.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use toolbay_settings::toml_file::nearest;

/// Answer that selects all samples.
pub(super) const ALL_SAMPLES: &str = "all";

/// Answer that selects no samples.
const NO_SAMPLES: &str = "none";

/// Extension of a grant that has no effect until the operator renames the file.
pub(super) const PROPOSAL_EXTENSION: &str = "toml.proposed";

/// Path of the samples in a package, relative to the folder of the program.
const PACKAGE_SAMPLES_PATH: &str = "../share/toolbay/plugins";

/// The available samples, sorted by name.
#[derive(Debug)]
pub(super) struct SampleSet {
    files: Vec<PathBuf>,
}

/// The selected samples.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SampleChoice {
    files: Vec<PathBuf>,
}

impl SampleSet {
    /// Finds the samples in `from`, or in the package of the program by default. A package may have
    /// none.
    ///
    /// # Errors
    ///
    /// `from` cannot be read or contains no plugin.
    pub(super) fn find(from: Option<PathBuf>) -> anyhow::Result<Self> {
        match from {
            Some(folder) => {
                let samples = Self::read(&folder)
                    .with_context(|| format!("failed to read {}", folder.display()))?;
                if samples.is_empty() {
                    bail!("{} contains no .wasm file", folder.display());
                }
                Ok(samples)
            }
            None => Ok(Self::from_package().unwrap_or(Self { files: Vec::new() })),
        }
    }

    fn from_package() -> Option<Self> {
        // The program may be started through a link outside of its package.
        let program = fs::canonicalize(std::env::current_exe().ok()?).ok()?;
        Self::read(&program.parent()?.join(PACKAGE_SAMPLES_PATH)).ok()
    }

    fn read(folder: &Path) -> std::io::Result<Self> {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let is_hidden = sample_name(&path).starts_with('.');
            if !is_hidden
                && path
                    .extension()
                    .is_some_and(|extension| extension == "wasm")
                && path.is_file()
            {
                files.push(path);
            }
        }
        files.sort();
        Ok(Self { files })
    }

    /// Returns whether there are no samples.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the names of the samples, sorted.
    pub(super) fn names(&self) -> Vec<&str> {
        self.files.iter().map(|file| sample_name(file)).collect()
    }
}

impl SampleChoice {
    /// Selects all samples.
    pub(super) fn all(samples: &SampleSet) -> Self {
        Self {
            files: samples.files.clone(),
        }
    }

    /// Parses a selection: names separated by commas, `all` or `none`.
    ///
    /// # Errors
    ///
    /// A sample does not exist.
    pub(super) fn parse(text: &str, samples: &SampleSet) -> anyhow::Result<Self> {
        let text = text.trim();
        if text == NO_SAMPLES {
            return Ok(Self { files: Vec::new() });
        }
        if samples.is_empty() {
            bail!(
                "there are no sample plugins next to this program; --from names the folder that has them"
            );
        }
        if text == ALL_SAMPLES {
            return Ok(Self::all(samples));
        }
        let mut files: Vec<PathBuf> = Vec::new();
        for requested in text.split(',').map(str::trim) {
            let Some(file) = samples
                .files
                .iter()
                .find(|file| sample_name(file) == requested)
            else {
                let names = samples.names();
                match nearest(requested, &names) {
                    Some(name) => bail!("there is no sample {requested:?}; did you mean {name:?}?"),
                    None => bail!(
                        "there is no sample {requested:?}; there are {}, or use all or none",
                        names.join(", ")
                    ),
                }
            };
            if !files.contains(file) {
                files.push(file.clone());
            }
        }
        Ok(Self { files })
    }

    /// Returns the selected files.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.files
    }
}

/// Returns the grant that a sample comes with, if it needs permissions: a proposal, or the grant of
/// the same plugin in another plugin folder.
pub(super) fn proposed_grant(file: &Path) -> Option<PathBuf> {
    [PROPOSAL_EXTENSION, "toml"]
        .into_iter()
        .map(|extension| file.with_extension(extension))
        .find(|grant| grant.is_file())
}

/// Returns the name of a sample, which is the stem of its file. A name that is not UTF-8 is empty
/// and cannot be selected.
fn sample_name(file: &Path) -> &str {
    file.file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(names: &[&str]) -> SampleSet {
        SampleSet {
            files: names
                .iter()
                .map(|name| PathBuf::from(format!("/s/{name}.wasm")))
                .collect(),
        }
    }

    #[test]
    fn each_named_sample_is_chosen_once() {
        let samples = samples(&["calculator", "qr", "time"]);
        let chosen = |text: &str| SampleChoice::parse(text, &samples).unwrap().files;
        assert_eq!(
            chosen("time, calculator,time"),
            ["/s/time.wasm", "/s/calculator.wasm"].map(PathBuf::from)
        );
        assert_eq!(chosen("all"), samples.files);
        assert!(chosen(" none ").is_empty());
    }

    #[test]
    fn unknown_samples_are_refused_with_the_available_ones() {
        let samples_ = samples(&["calculator", "qr"]);
        let why = |text: &str| {
            SampleChoice::parse(text, &samples_)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            why("calculater"),
            "there is no sample \"calculater\"; did you mean \"calculator\"?"
        );
        for unlike in ["", "../qr", "/s/qr.wasm"] {
            let rest = "there are calculator, qr, or use all or none";
            assert_eq!(
                why(&format!("qr,{unlike}")),
                format!("there is no sample {unlike:?}; {rest}")
            );
        }
        let empty = samples(&[]);
        assert!(
            SampleChoice::parse("qr", &empty)
                .unwrap_err()
                .to_string()
                .contains("--from")
        );
        assert!(
            SampleChoice::parse("none", &empty)
                .unwrap()
                .files
                .is_empty()
        );
    }

    #[test]
    fn a_sample_comes_with_its_proposed_grant() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["a.toml", "b.toml.proposed", "b.toml", "c.toml.txt"] {
            fs::write(path(name), "").unwrap();
        }
        let proposed = |name: &str| proposed_grant(&path(name));
        assert_eq!(proposed("a.wasm"), Some(path("a.toml")));
        assert_eq!(proposed("b.wasm"), Some(path("b.toml.proposed")));
        assert_eq!(proposed("c.wasm"), None);
    }

    #[test]
    fn only_visible_plugins_are_samples() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.wasm", "a.wasm", ".c.wasm", "d.toml", "e.wasm.part"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir(folder.path().join("f.wasm")).unwrap();
        assert_eq!(SampleSet::read(folder.path()).unwrap().names(), ["a", "b"]);
        assert!(
            SampleSet::find(Some(folder.path().join("f.wasm")))
                .unwrap_err()
                .to_string()
                .contains("no .wasm file")
        );
        assert!(
            SampleSet::find(Some(folder.path().join("none")))
                .unwrap_err()
                .to_string()
                .starts_with("failed to read")
        );
    }
}
