//! Tests `add`, `update`, `sync` and `publish` with a real registry and with `oras`.

use std::process::Command;

use anstream::println;
use anyhow::{Context as _, Result};
use toolbay_testkit::guests::run_once;
use toolbay_testkit::workspace::{CargoWorkspace, HOST_PACKAGE};
use toolbay_testkit::{command, terminal};

use super::context::StepContext;
use crate::nextest;

/// The Go modules of the programs, with their versions. The tests expect the programs in
/// `tools/registry` in the target folder.
const MODULES: [(&str, &str); 2] = [
    (
        "registry",
        "github.com/distribution/distribution/v3/cmd/registry@v3.1.0",
    ),
    ("oras", "oras.land/oras/cmd/oras@v1.3.0"),
];

/// Installs the programs and runs the tests. On a machine without Go, prints that they do not run.
pub(super) fn run(context: &mut StepContext<'_>) -> Result<()> {
    if Command::new("go").arg("version").output().is_err() {
        let notice = "registry: NOT tested, because there is no Go on this machine (install Go 1.25 or newer)";
        println!("{}", terminal::red(notice));
        return Ok(());
    }
    install(context.workspace)?;
    nextest::run_tests(
        context.workspace,
        context.tally,
        &[
            "--package",
            HOST_PACKAGE,
            "--test",
            "it",
            "--run-ignored",
            "only",
            "-E",
            "test(/^real_registry::/)",
        ],
    )
}

fn install(workspace: &CargoWorkspace) -> Result<()> {
    let folder = workspace.target.join("tools/registry");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("failed to create {}", folder.display()))?;
    for (name, module) in MODULES {
        run_once(&folder.join(format!("{name}.installed")), module, || {
            println!("Installing {module}");
            let mut go = Command::new("go");
            go.args(["install", module])
                .env("GOBIN", &folder)
                .env("GOFLAGS", "-mod=mod");
            command::run(&mut go)
                .with_context(|| format!("failed to install {name}; it needs Go 1.25 or newer"))
        })?;
    }
    Ok(())
}
