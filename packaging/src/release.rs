//! What every package says of the program.

use std::process::Command;

use anyhow::{Context as _, Result, bail};
use toolbay_testkit::command;
use toolbay_testkit::workspace::{HOST, Workspace};

/// The program.
pub(crate) const NAME: &str = "toolbay";

/// The one line about it.
pub(crate) const SUMMARY: &str = "An MCP server whose tools are WebAssembly components";

/// A few more, for who has not heard of it.
pub(crate) const DESCRIPTION: &str = "Copy a .wasm file into a folder, and a moment later MCP clients have a new tool, \
    without a restart of the server. Each call runs in a fresh sandbox that limits its fuel, time, memory and permissions.";

/// The licence, as SPDX writes it.
pub(crate) const LICENSE: &str = "MIT OR Apache-2.0";

/// Whose packages they are.
pub(crate) const AUTHORS: &str = "The Toolbay developers";

/// How to reach them, in the form of package managers for Linux.
pub(crate) const MAINTAINER: &str = "The Toolbay developers <packages@toolbay.dev>";

/// The home of the project.
pub(crate) const HOMEPAGE: &str = "https://toolbay.dev";

/// Where the files of a release are downloaded from, unless `--url` says otherwise.
pub(crate) const DOWNLOADS: &str = "https://toolbay.dev/releases";

/// The name in the MCP registry. README.md has it as well, because the registry looks for it on `PyPI`'s page.
pub(crate) const REGISTRY_NAME: &str = "dev.toolbay/toolbay";

/// The image's name, without a tag.
pub(crate) const IMAGE: &str = "docker.io/toolbay/toolbay";

/// What differs from release to release.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    /// Such as 0.2.0.
    pub(crate) version: String,
    /// Seconds since 1970: the time of every file in every package, so that the same commit makes the same packages.
    pub(crate) time: u64,
    /// The same as people read it.
    pub(crate) date: String,
    /// Where the files are downloaded from, without a slash at the end.
    pub(crate) downloads: String,
}

impl Release {
    /// The release that the workspace is at.
    pub(crate) fn of(workspace: &Workspace, downloads: &str) -> Result<Self> {
        if !downloads.starts_with("https://") {
            bail!("--url: expected a URL that begins with https://, not {downloads:?}");
        }
        let time = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(text) => text.trim().parse().context("SOURCE_DATE_EPOCH: expected seconds since 1970")?,
            Err(_) => of_commit(workspace, "%ct")?.parse()?,
        };
        let date =
            command::output(Command::new("date").args(["--utc", "--date"]).arg(format!("@{time}")).arg("+%FT%TZ"))?;
        let downloads = downloads.trim_end_matches('/');
        let version = version(workspace)?;
        let downloads = format!("{downloads}/v{version}");
        Ok(Self { version, time, date: date.trim().to_owned(), downloads })
    }

    /// The URL of a file of the release.
    pub(crate) fn url(&self, file: &str) -> String {
        format!("{}/{file}", self.downloads)
    }
}

fn of_commit(workspace: &Workspace, what: &str) -> Result<String> {
    let mut git = Command::new("git");
    git.args(["log", "-1"]).arg(format!("--format={what}")).current_dir(&workspace.root);
    let text = command::output(&mut git)
        .context("the packages have the time of the commit; where there is none, set SOURCE_DATE_EPOCH")?;
    Ok(text.trim().to_owned())
}

/// The version of the server's crate.
fn version(workspace: &Workspace) -> Result<String> {
    let mut cargo = command::cargo(&workspace.root);
    let id = command::output(cargo.args(["pkgid", "--offline", "--package", HOST]))?;
    let (_, version) = id.trim().rsplit_once(['#', '@']).context("cargo told no version")?;
    Ok(version.to_owned())
}
