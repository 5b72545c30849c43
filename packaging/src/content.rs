//! The files of every package, with their paths relative to the package's prefix, such as `/usr`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use toolbay_testkit::build::wasm_files;
use toolbay_testkit::command;
use toolbay_testkit::workspace::CargoWorkspace;

use crate::release::NAME;
use crate::tarred::{DATA, PROGRAM};

/// Path of the program.
pub(crate) const BINARY: &str = "bin/toolbay";

/// Directory in which `toolbay init` finds the sample plugins.
pub(crate) const SAMPLES: &str = "share/toolbay/plugins";

/// Examples that are samples as well. They need a grant, which packages contain as a proposal.
const SAMPLES_WITH_GRANT: [&str; 1] = ["fetch"];

/// Directories that only system-wide packages contain: the manual and shell completions.
const FOR_SYSTEMS: [&str; 4] = [
    "share/man/",
    "share/bash-completion/",
    "share/zsh/",
    "share/fish/",
];

/// The text files, relative to the root of the workspace.
const TEXTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// The shells, and the path of the completions for each.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/toolbay"),
    ("zsh", "share/zsh/site-functions/_toolbay"),
    ("fish", "share/fish/vendor_completions.d/toolbay.fish"),
];

/// A file of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// Its path relative to the prefix.
    pub(crate) to: String,
    /// Its current path.
    pub(crate) from: PathBuf,
}

/// All files, sorted.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    files: Vec<File>,
}

impl File {
    /// Returns the mode bits of the file.
    pub(crate) fn mode(&self) -> u32 {
        if self.to == BINARY { PROGRAM } else { DATA }
    }

    /// Returns whether only system-wide packages contain the file.
    fn is_for_systems(&self) -> bool {
        FOR_SYSTEMS.iter().any(|folder| self.to.starts_with(folder))
    }
}

impl Content {
    /// Collects the files. `speaker` is the program, or a build of it that this machine can run: it
    /// generates the manual and the shell completions. The samples are in `samples`, and those that
    /// need a grant in `examples`. `work` is a directory for generated files.
    pub(crate) fn collect(
        workspace: &CargoWorkspace,
        program: &Path,
        speaker: &Path,
        [samples, examples]: [&Path; 2],
        sbom: Option<&Path>,
        work: &Path,
    ) -> Result<Self> {
        let mut files = vec![File {
            to: BINARY.to_owned(),
            from: program.to_owned(),
        }];
        for from in wasm_files(samples)? {
            let name = from
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            files.push(File {
                to: format!("{SAMPLES}/{name}"),
                from,
            });
        }
        for name in SAMPLES_WITH_GRANT {
            files.push(File {
                to: format!("{SAMPLES}/{name}.wasm"),
                from: examples.join(name).with_extension("wasm"),
            });
            // Some packages serve the samples in place. Under this name, the grant has no effect.
            files.push(File {
                to: format!("{SAMPLES}/{name}.toml.proposed"),
                from: workspace.root.join(format!("examples/{name}/{name}.toml")),
            });
        }
        ensure!(
            files.len() > 1,
            "there are no sample plugins in {}",
            samples.display()
        );
        for name in TEXTS {
            files.push(File {
                to: format!("share/doc/{NAME}/{name}"),
                from: workspace.root.join(name),
            });
        }
        if let Some(sbom) = sbom {
            files.push(File {
                to: format!("share/doc/{NAME}/{NAME}.cdx.json"),
                from: sbom.to_owned(),
            });
        }
        for (shell, to) in SHELLS {
            let from = work.join(format!("completions.{shell}"));
            let script = command::output(
                Command::new(speaker)
                    .args(["completions", shell])
                    .env_clear(),
            )?;
            fs::write(&from, script)?;
            files.push(File {
                to: to.to_owned(),
                from,
            });
        }
        let manual = work.join("manual");
        fs::create_dir_all(&manual)?;
        command::run(Command::new(speaker).arg("manual").arg(&manual).env_clear())?;
        for page in fs::read_dir(&manual)? {
            let from = page?.path();
            let name = from
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            files.push(File {
                to: format!("share/man/man1/{name}"),
                from,
            });
        }
        files.sort_by(|one, other| one.to.cmp(&other.to));
        Ok(Self { files })
    }

    /// Returns all files, for system-wide packages.
    pub(crate) fn all(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    /// Returns the program, the samples and the texts, for packages of one project or one user.
    pub(crate) fn lean(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| !file.is_for_systems())
    }

    /// Returns the sample plugins.
    pub(crate) fn samples(&self) -> impl Iterator<Item = &File> {
        self.files
            .iter()
            .filter(|file| file.to.starts_with(SAMPLES))
    }
}

/// Copies files to their paths below `prefix`, with their modes.
pub(crate) fn copy<'a>(files: impl Iterator<Item = &'a File>, prefix: &Path) -> Result<()> {
    for file in files {
        let to = prefix.join(&file.to);
        let failed = || format!("failed to copy {} to {}", file.from.display(), to.display());
        fs::create_dir_all(to.parent().unwrap_or(prefix)).with_context(failed)?;
        fs::copy(&file.from, &to).with_context(failed)?;
        fs::set_permissions(&to, fs::Permissions::from_mode(file.mode())).with_context(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_systems_need_is_left_out_of_lean_packages() {
        let file = |to: &str| File {
            to: to.to_owned(),
            from: PathBuf::new(),
        };
        let all = [
            BINARY,
            "share/man/man1/toolbay.1",
            "share/toolbay/plugins/qr.wasm",
            "share/zsh/site-functions/_toolbay",
        ];
        let content = Content {
            files: all.map(file).to_vec(),
        };
        let lean: Vec<&str> = content.lean().map(|file| file.to.as_str()).collect();
        assert_eq!(lean, [BINARY, "share/toolbay/plugins/qr.wasm"]);
        assert_eq!(content.samples().count(), 1);
        assert_eq!(
            (content.files[0].mode(), content.files[1].mode()),
            (0o755, 0o644)
        );
        assert!(SHELLS.iter().all(|(_, to)| file(to).is_for_systems()));
    }
}
