//! Metadata about the program that all packages share.

use std::process::Command;

use anyhow::{Context as _, Result, bail};
use toolbay_testkit::command;
use toolbay_testkit::workspace::{CargoWorkspace, HOST_PACKAGE};

/// Name of the program.
pub(crate) const NAME: &str = "toolbay";

/// One-line summary.
pub(crate) const SUMMARY: &str = "An MCP server whose tools are WebAssembly components";

/// A longer description for new users.
pub(crate) const DESCRIPTION: &str = "Copy a .wasm file into a folder, and a moment later MCP clients have a new tool, \
    without a restart of the server. Each call runs in a fresh sandbox that limits its fuel, time, memory and permissions.";

/// The licence, as an SPDX expression.
pub(crate) const LICENSE: &str = "MIT OR Apache-2.0";

/// The authors of the packages.
pub(crate) const AUTHORS: &str = "The Toolbay developers";

/// The contact address, in the format of Linux package managers.
pub(crate) const MAINTAINER: &str = "The Toolbay developers <packages@toolbay.dev>";

/// The project's home page.
pub(crate) const HOMEPAGE: &str = "https://toolbay.dev";

/// The URL from which the files of a release are downloaded, unless `--url` overrides it.
pub(crate) const DOWNLOADS: &str = "https://toolbay.dev/releases";

/// The name in the MCP registry. README.md also contains it, because the registry looks for it on
/// `PyPI`'s page.
pub(crate) const REGISTRY_NAME: &str = "dev.toolbay/toolbay";

/// The image's name, without a tag.
pub(crate) const IMAGE: &str = "docker.io/toolbay/toolbay";

/// The metadata of one release.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    /// The version, such as 0.2.0.
    pub(crate) version: String,
    /// Seconds since 1970. Every file in every package has this time, so that builds are
    /// reproducible.
    pub(crate) time: u64,
    /// The time in human-readable form.
    pub(crate) date: String,
    /// The URL from which the files are downloaded, without a trailing slash.
    pub(crate) downloads: String,
}

impl Release {
    /// Returns the release that the workspace contains.
    pub(crate) fn of(workspace: &CargoWorkspace, downloads: &str) -> Result<Self> {
        if !downloads.starts_with("https://") {
            bail!("--url: expected a URL that begins with https://, not {downloads:?}");
        }
        let time = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(text) => text
                .trim()
                .parse()
                .context("SOURCE_DATE_EPOCH: expected seconds since 1970")?,
            Err(_) => of_commit(workspace, "%ct")?.parse()?,
        };
        let date = command::output(
            Command::new("date")
                .args(["--utc", "--date"])
                .arg(format!("@{time}"))
                .arg("+%FT%TZ"),
        )?;
        let downloads = downloads.trim_end_matches('/');
        let version = version(workspace)?;
        let downloads = format!("{downloads}/v{version}");
        Ok(Self {
            version,
            time,
            date: date.trim().to_owned(),
            downloads,
        })
    }

    /// Returns the URL of a file of the release.
    pub(crate) fn url(&self, file: &str) -> String {
        format!("{}/{file}", self.downloads)
    }
}

fn of_commit(workspace: &CargoWorkspace, what: &str) -> Result<String> {
    let mut git = Command::new("git");
    git.args(["log", "-1"])
        .arg(format!("--format={what}"))
        .current_dir(&workspace.root);
    let text = command::output(&mut git).context(
        "the packages have the time of the commit; where there is none, set SOURCE_DATE_EPOCH",
    )?;
    Ok(text.trim().to_owned())
}

/// Returns the version of the server's crate.
fn version(workspace: &CargoWorkspace) -> Result<String> {
    let mut cargo = command::cargo(&workspace.root);
    let id = command::output(cargo.args(["pkgid", "--offline", "--package", HOST_PACKAGE]))?;
    let (_, version) = id
        .trim()
        .rsplit_once(['#', '@'])
        .context("cargo told no version")?;
    Ok(version.to_owned())
}
