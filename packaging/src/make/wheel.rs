//! The wheel for `PyPI`: the program as a script, without Python code, for `pip install` and `uvx`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::content::{File, copy};
use crate::kit::{Kit, write};
use crate::machine::Program;
use crate::release::{AUTHORS, HOMEPAGE, LICENSE, NAME, SUMMARY};

const PROJECT: &str = include_str!("../../pypi/pyproject.toml");
const HOOK: &str = include_str!("../../pypi/hatch_build.py");

pub(crate) fn make(kit: &Kit) -> Result<Vec<PathBuf>> {
    let work = kit.work("wheel")?;
    copy(kit.content.lean(), &work.join("content"))?;
    for text in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(kit.root.join(text), work.join(text))?;
    }
    let data = kit
        .content
        .lean()
        .filter(|file| file.to.starts_with("share/"));
    let data: Vec<String> = data
        .map(|File { to, .. }| format!("\"content/{to}\" = \"{to}\""))
        .collect();
    let version = &kit.release.version;
    let tag = tag(&kit.program);
    let values = [
        ("@VERSION@", version.as_str()),
        ("@SUMMARY@", SUMMARY),
        ("@LICENSE@", LICENSE),
        ("@AUTHORS@", AUTHORS),
        ("@HOMEPAGE@", HOMEPAGE),
        ("@DATA@", &data.join("\n")),
        ("@TAG@", &tag),
    ];
    let project = values
        .iter()
        .fold(PROJECT.to_owned(), |text, (name, value)| {
            text.replace(name, value)
        });
    fs::write(work.join("pyproject.toml"), project)?;
    fs::write(work.join("hatch_build.py"), HOOK)?;
    let mut hatchling = Command::new(kit.tools.hatchling()?);
    hatchling
        .args([
            "-m",
            "hatchling",
            "build",
            "--target",
            "wheel",
            "--directory",
        ])
        .arg(&kit.out);
    hatchling
        .env("SOURCE_DATE_EPOCH", kit.release.time.to_string())
        .current_dir(&work);
    Ok(vec![write(
        &mut hatchling,
        kit.out.join(format!("{NAME}-{version}-{tag}.whl")),
    )?])
}

/// Returns the tag that installers compare with their machine. A static program runs with the
/// oldest glibc and with musl. `PyPI` accepts no tags other than these, so a wheel for tests cannot
/// be published by mistake.
fn tag(program: &Program) -> String {
    let machine = program.machine.rust;
    if program.is_static {
        format!("py3-none-manylinux_2_17_{machine}.manylinux2014_{machine}.musllinux_1_1_{machine}")
    } else {
        format!("py3-none-linux_{machine}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MACHINES;

    #[test]
    fn only_a_static_program_claims_to_run_everywhere() {
        let program = |is_static| Program {
            machine: MACHINES[1],
            is_static,
            is_auditable: false,
            size: 0,
        };
        let all = "py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64";
        assert_eq!(
            (tag(&program(true)).as_str(), tag(&program(false)).as_str()),
            (all, "py3-none-linux_aarch64")
        );
    }

    #[test]
    fn every_value_of_the_project_is_filled_in() {
        let marks: Vec<&str> = PROJECT.split('@').skip(1).step_by(2).collect();
        assert_eq!(
            marks,
            [
                "…", "VERSION", "SUMMARY", "LICENSE", "AUTHORS", "HOMEPAGE", "DATA", "TAG"
            ]
        );
    }
}
