//! The package for Fedora, RHEL and openSUSE, written by `rpmbuild`. It has no dependencies.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::content::{self, File};
use crate::kit::{Kit, write};
use crate::release::{AUTHORS, DESCRIPTION, HOMEPAGE, LICENSE, NAME, SUMMARY};

/// The release number that distributions increment for each build of a version.
const BUILD: &str = "1";

pub(crate) fn make(kit: &Kit) -> Result<Vec<PathBuf>> {
    let work = kit.work("rpm")?;
    content::copy(kit.content.all(), &work.join("content/usr"))?;
    let version = &kit.release.version;
    let machine = kit.program.machine.rust;
    let spec = work.join("toolbay.spec");
    fs::write(
        &spec,
        self::spec(version, &work.join("content"), kit.content.all()),
    )?;
    let name = format!("{NAME}-{version}-{BUILD}.{machine}.rpm");
    let mut rpmbuild = Command::new("rpmbuild");
    rpmbuild.args(["-bb", "--quiet", "--target", &format!("{machine}-linux")]);
    rpmbuild
        .arg("--define")
        .arg(format!("_topdir {}", work.join("top").display()));
    rpmbuild
        .arg("--define")
        .arg(format!("_rpmdir {}", kit.out.display()));
    rpmbuild.arg("--define").arg(format!("_rpmfilename {name}"));
    rpmbuild
        .arg(&spec)
        .env("SOURCE_DATE_EPOCH", kit.release.time.to_string());
    let made = write(&mut rpmbuild, kit.out.join(name));
    Ok(vec![made.context(
        "rpmbuild makes this package; Debian and Ubuntu have it as rpm, Fedora as rpm-build",
    )?])
}

/// Returns the spec file. It disables stripping, debug packages and automatic dependencies.
fn spec<'a>(version: &str, content: &Path, files: impl Iterator<Item = &'a File>) -> String {
    let mut spec = format!(
        "%global debug_package %{{nil}}\n%global __strip /bin/true\n%global _build_id_links none\n\
         %global __os_install_post %{{nil}}\n%global _binary_payload w19.zstdio\n\
         %global use_source_date_epoch_as_buildtime 1\n%global clamp_mtime_to_source_date_epoch 1\n%global _buildhost localhost\n\n\
         Name: {NAME}\nVersion: {version}\nRelease: {BUILD}\nSummary: {SUMMARY}\nLicense: {LICENSE}\nURL: {HOMEPAGE}\n\
         Packager: {AUTHORS}\nAutoReqProv: no\n\n%description\n{DESCRIPTION}\n\n\
         %install\ncp -a '{}/.' '%{{buildroot}}/'\n\n%files\n%defattr(-,root,root)\n",
        content.display()
    );
    for file in files {
        let mark = if file.to.starts_with("share/doc/") {
            "%doc "
        } else {
            ""
        };
        let _ = writeln!(spec, "{mark}/usr/{}", file.to);
    }
    let _ = writeln!(
        spec,
        "%dir /usr/share/{NAME}\n%dir /usr/{}",
        content::SAMPLES
    );
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spec_lists_every_file() {
        let file = |to: &str| File {
            to: to.to_owned(),
            from: PathBuf::new(),
        };
        let files = [file("bin/toolbay"), file("share/doc/toolbay/README.md")];
        let spec = spec("1.2.3", Path::new("/work"), files.iter());
        assert!(spec.contains("cp -a '/work/.' '%{buildroot}/'"));
        let (_, listed) = spec.split_once("%files\n").unwrap();
        insta::assert_snapshot!(listed, @r"
        %defattr(-,root,root)
        /usr/bin/toolbay
        %doc /usr/share/doc/toolbay/README.md
        %dir /usr/share/toolbay
        %dir /usr/share/toolbay/plugins
        ");
    }
}
