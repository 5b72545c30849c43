//! The formula for Homebrew on Linux. It installs the tar archive.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::archive;
use crate::checksums::digest;
use crate::kit::Kit;
use crate::machine::Machine;
use crate::release::{HOMEPAGE, LICENSE, Release, SUMMARY};

pub(crate) fn make(kit: &Kit) -> Result<Vec<PathBuf>> {
    let archive = archive::file(kit);
    let digest = digest(&kit.out.join(&archive))
        .context("the formula installs the format tar, which must be made as well")?;
    let path = kit.out.join("toolbay.rb");
    fs::write(
        &path,
        formula(&kit.release, kit.program.machine, &archive, &digest),
    )?;
    Ok(vec![path])
}

fn formula(release: &Release, machine: Machine, archive: &str, digest: &str) -> String {
    let url = release.url(archive);
    let version = &release.version;
    // Homebrew has its own names for machines and its own syntax for alternative licences.
    let cpu = if machine.npm == "x64" { "intel" } else { "arm" };
    let licenses = LICENSE
        .split(" OR ")
        .map(|name| format!("{name:?}"))
        .collect::<Vec<_>>()
        .join(", ");
    format!(
        r#"class Toolbay < Formula
  desc "{SUMMARY}"
  homepage "{HOMEPAGE}"
  version "{version}"
  license any_of: [{licenses}]

  depends_on :linux

  on_linux do
    on_{cpu} do
      url "{url}"
      sha256 "{digest}"
    end
  end

  def install
    bin.install "bin/toolbay"
    share.install Dir["share/*"]
  end

  test do
    system bin/"toolbay", "init", "tools", "--samples", "calculator"
    assert_match "5", shell_output("cd tools && #{{bin}}/toolbay call calculate_sum '{{\"a\": 2, \"b\": 3}}'")
  end
end
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MACHINES;

    #[test]
    fn the_formula() {
        let downloads = "https://example.com/v1.2.3".to_owned();
        let release = Release {
            version: "1.2.3".into(),
            time: 0,
            date: String::new(),
            downloads,
        };
        insta::assert_snapshot!(formula(&release, MACHINES[0], "toolbay.tar.gz", "abc"));
    }
}
