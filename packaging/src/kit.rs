//! The inputs and output directories of all packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anstream::println;
use anyhow::{Context as _, Result};
use bytesize::ByteSize;
use toolbay_testkit::build::{BuildProfile, WorkspaceBuilder};
use toolbay_testkit::command;
use toolbay_testkit::workspace::{CargoWorkspace, HOST_PACKAGE};

use crate::build::{self, Target};
use crate::content::Content;
use crate::machine::Program;
use crate::release::Release;
use crate::tools::{Tools, path_with};

/// The directory of all packages, in the target directory.
const FOLDER: &str = "dist";

/// The release, its files and its directories.
#[derive(Debug)]
pub(crate) struct Kit {
    /// The release.
    pub(crate) release: Release,
    /// The program's file.
    pub(crate) program: Program,
    /// The files of every package.
    pub(crate) content: Content,
    /// The tools that write packages.
    pub(crate) tools: Tools,
    /// The root of the workspace.
    pub(crate) root: PathBuf,
    /// The directory in which packages are assembled.
    work: PathBuf,
    /// The directory to which packages are written.
    pub(crate) out: PathBuf,
}

impl Kit {
    /// Prepares the release. Builds the sample plugins, and the program unless `binary` is given.
    pub(crate) fn new(
        workspace: &CargoWorkspace,
        binary: Option<&Path>,
        target: Target,
        url: &str,
    ) -> Result<Self> {
        let release = Release::of(workspace, url)?;
        let tools = Tools::new(&workspace.target);
        let path = match binary {
            Some(path) => {
                fs::canonicalize(path).with_context(|| format!("no program {}", path.display()))?
            }
            None => build::server(workspace, target, &tools)?,
        };
        let program = Program::read(&path)?;
        let folder = workspace.target.join(FOLDER).join(program.triple());
        let work = folder.join("work");
        let out = folder.join("packages");
        for folder in [&work, &out] {
            // Files from an earlier run are not part of this release.
            drop(fs::remove_dir_all(folder));
            fs::create_dir_all(folder)
                .with_context(|| format!("failed to create {}", folder.display()))?;
        }
        // Only releases have a list of crates; packages for tests do not.
        let sbom = if binary.is_none() {
            Some(sbom(workspace, target, &tools, &out)?)
        } else {
            None
        };
        let samples = WorkspaceBuilder::new(workspace).build_samples()?;
        let examples = WorkspaceBuilder::new(workspace).build_examples()?;
        let speaker = if program.runs_here() {
            path.clone()
        } else {
            WorkspaceBuilder::new(workspace).build_server(BuildProfile::Dev)?
        };
        let content = Content::collect(
            workspace,
            &path,
            &speaker,
            [&samples, &examples],
            sbom.as_deref(),
            &work,
        )?;
        let kit = Self {
            release,
            program,
            content,
            tools,
            root: workspace.root.clone(),
            work,
            out,
        };
        println!("{}", kit.describe()?);
        Ok(kit)
    }

    /// Returns an empty directory in which to assemble one format.
    pub(crate) fn work(&self, format: &str) -> Result<PathBuf> {
        let folder = self.work.join(format);
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder)
            .with_context(|| format!("failed to create {}", folder.display()))?;
        Ok(folder)
    }

    /// Describes the program in one line.
    pub(crate) fn describe(&self) -> Result<String> {
        let Program {
            is_static,
            is_auditable,
            size,
            ..
        } = self.program;
        let linked = if is_static {
            "static"
        } else {
            "needs the libraries of this machine: for tests only"
        };
        let listed = if is_auditable {
            "with a list of its crates"
        } else {
            "without a list of its crates"
        };
        let samples = self
            .content
            .samples()
            .map(|file| Ok(fs::metadata(&file.from)?.len()))
            .sum::<Result<u64>>()?;
        Ok(format!(
            "{}, {}, {linked}, {listed}; sample plugins, {}",
            self.program.triple(),
            ByteSize::b(size),
            ByteSize::b(samples)
        ))
    }
}

/// Writes the list of the crates in the program, with their versions and licences (`CycloneDX`).
fn sbom(workspace: &CargoWorkspace, target: Target, tools: &Tools, out: &Path) -> Result<PathBuf> {
    let name = format!("{HOST_PACKAGE}.cdx");
    let manifest = workspace.root.join("host/toolbay/Cargo.toml");
    let mut cargo = command::cargo(&workspace.root);
    cargo
        .args([
            "cyclonedx",
            "--format",
            "json",
            "--spec-version",
            "1.5",
            "--no-build-deps",
            "--quiet",
        ])
        .args([
            "--target",
            target.triple(),
            "--override-filename",
            &name,
            "--manifest-path",
        ])
        .arg(&manifest)
        .env("PATH", path_with(&tools.cyclonedx()?)?);
    command::run(&mut cargo)?;
    // The tool writes a file next to every manifest of the workspace.
    let mut found = Vec::new();
    for package in &workspace.packages {
        let written = workspace
            .root
            .join(&package.folder)
            .join(&name)
            .with_added_extension("json");
        if package.name == HOST_PACKAGE {
            let to = out.join(format!("{name}.json"));
            fs::copy(&written, &to)
                .with_context(|| format!("failed to copy {}", written.display()))?;
            found.push(to);
        }
        drop(fs::remove_file(&written));
    }
    found
        .pop()
        .context("cargo cyclonedx has written no list of crates")
}

/// Runs a tool and checks that it wrote `file`.
pub(crate) fn write(tool: &mut Command, file: PathBuf) -> Result<PathBuf> {
    command::run(tool)?;
    file.is_file()
        .then_some(file)
        .context("the tool has not written the package")
}
