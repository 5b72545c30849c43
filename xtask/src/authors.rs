//! `cargo xtask five-tools` and `cargo xtask loop`: what authors get, in five languages. The scripts
//! are in `tests/authors`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anstream::println;
use anyhow::{Context, Result, bail};
use clap::Args;
use toolbay_testkit::build::{BuildProfile, WorkspaceBuilder};
use toolbay_testkit::command;
use toolbay_testkit::guests::run_once;
use toolbay_testkit::workspace::CargoWorkspace;

use crate::clients;
use crate::languages::project::{BuildEnvironment, PluginProject, run_quietly};
use crate::tally::TestCounts;

/// The folders of the plugins in `examples/five-tools`.
const PLUGIN_FOLDERS: [&str; 5] = ["javascript", "typescript", "python", "go", "rust"];

/// The files of the server on the TypeScript SDK, in its folder.
const TYPESCRIPT_FILES: [&str; 4] = [
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "src/server.ts",
];

/// The options of `cargo xtask five-tools`.
#[derive(Args)]
pub(crate) struct FiveToolsOptions {
    /// Also count lines, sizes and times, with a release build of the server
    #[arg(long)]
    measure: bool,
    /// Write the table into the book; implies --measure
    // The page names the commit of the checkout.
    #[arg(long, conflicts_with = "server")]
    book: bool,
    /// Rounds of the measurement
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Use this server, and build none
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
}

/// The options of `cargo xtask loop`.
#[derive(Args)]
pub(crate) struct LoopOptions {
    /// The languages; without any, those with an example of five tools
    languages: Vec<String>,
    /// Write the table into the book
    // The page names the commit of the checkout.
    #[arg(long, conflicts_with = "server")]
    book: bool,
    /// Changes that are measured in each language, alone and with a client
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Use this server, and build none
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
}

/// Runs `cargo xtask five-tools`.
pub(crate) fn run_five_tools(
    workspace: &CargoWorkspace,
    options: &FiveToolsOptions,
) -> Result<ExitCode> {
    let measures = options.measure || options.book;
    let profile = if measures {
        BuildProfile::Release
    } else {
        BuildProfile::Dev
    };
    let server = find_server(workspace, options.server.as_deref(), profile)?;
    let scripts = AuthorScripts::prepare(workspace, &server)?;
    let installed = scripts.install_five_tools()?;
    let mut tally = TestCounts::default();
    let result = tally.run_and_print(
        scripts
            .script("check_five_tools.py")
            .arg(&server)
            .args(&installed),
    );
    println!("\n{tally}");
    result?;
    if measures {
        let mut script = scripts.script("measure_five_tools.py");
        script.arg(&server).args(&installed);
        script.args(["--rounds", &options.rounds.to_string()]);
        if options.book {
            script.arg("--book");
        }
        command::run(&mut script)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the test step.
pub(crate) fn test(
    workspace: &CargoWorkspace,
    server: &Path,
    tally: &mut TestCounts,
) -> Result<()> {
    let scripts = AuthorScripts::prepare(workspace, server)?;
    let installed = scripts.install_five_tools()?;
    tally.run_and_print(
        scripts
            .script("check_five_tools.py")
            .arg(server)
            .args(installed),
    )
}

/// Runs `cargo xtask loop`.
pub(crate) fn run_loop(workspace: &CargoWorkspace, options: &LoopOptions) -> Result<ExitCode> {
    let server = find_server(workspace, options.server.as_deref(), BuildProfile::Release)?;
    let scripts = AuthorScripts::prepare(workspace, &server)?;
    for folder in PLUGIN_FOLDERS {
        // The projects of `toolbay new` have the same requirements.
        scripts.install_requirements(&scripts.example(folder)?)?;
    }
    let mut script = scripts.script("measure_loop.py");
    script
        .arg(&server)
        .arg(scripts.target.join("loop"))
        .args(&options.languages);
    script.args(["--rounds", &options.rounds.to_string()]);
    if options.book {
        script.arg("--book");
    }
    command::run(&mut script)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the given server, or builds one.
fn find_server(
    workspace: &CargoWorkspace,
    given: Option<&Path>,
    profile: BuildProfile,
) -> Result<PathBuf> {
    match given {
        Some(server) => {
            std::path::absolute(server).with_context(|| format!("no path of {}", server.display()))
        }
        None => WorkspaceBuilder::new(workspace).build_server(profile),
    }
}

/// The scripts of `tests/authors`, and what they need.
struct AuthorScripts<'a> {
    workspace: &'a CargoWorkspace,
    server: &'a Path,
    machine: BuildEnvironment,
    /// The folder of the scripts.
    source: PathBuf,
    /// The folder of everything that is built and installed.
    target: PathBuf,
    /// The Python interpreter of the scripts.
    python: PathBuf,
}

impl<'a> AuthorScripts<'a> {
    fn prepare(workspace: &'a CargoWorkspace, server: &'a Path) -> Result<Self> {
        let source = workspace.root.join("tests/authors");
        let target = workspace.target.join("authors");
        fs::create_dir_all(&target)
            .with_context(|| format!("failed to create {}", target.display()))?;
        let python = clients::python_environment(
            source.clone(),
            target.clone(),
            "scripts",
            "the packages of the scripts",
        )?;
        Ok(Self {
            workspace,
            server,
            machine: BuildEnvironment::new(workspace),
            source,
            target,
            python,
        })
    }

    /// Returns a command for a script, with the programs and caches that plugins are built with.
    fn script(&self, name: &str) -> Command {
        // Unbuffered (`-u`), so that each line is printed immediately. No byte code next to the
        // sources (`-B`).
        let mut shell = self.machine.shell_command(r#"exec "$0" -u -B "$@""#);
        shell.arg(&self.python).arg(self.source.join(name));
        shell
    }

    /// Reads an example.
    fn example(&self, folder: &str) -> Result<PluginProject> {
        PluginProject::read(&self.workspace.root.join("examples/five-tools").join(folder))
    }

    fn install_requirements(&self, project: &PluginProject) -> Result<()> {
        match self.machine.install_missing(&project.manifest.requires)? {
            Some(missing) => bail!("{}: {missing}", project.manifest.name),
            None => Ok(()),
        }
    }

    /// Builds the plugins and installs the two servers. Returns the arguments of the scripts after
    /// that of the server.
    fn install_five_tools(&self) -> Result<[PathBuf; 3]> {
        let plugins = self.target.join("plugins");
        for folder in PLUGIN_FOLDERS {
            self.build_plugin(folder, &plugins.join(folder))?;
            println!("built five-{folder}");
        }
        clients::python_environment(
            self.source.join("fastmcp"),
            self.target.clone(),
            "fastmcp",
            "fastmcp",
        )?;
        Ok([
            plugins,
            self.target.join("fastmcp"),
            self.install_typescript_server()?,
        ])
    }

    /// Builds an example with `toolbay dev`, which also runs its setup if necessary, and makes its
    /// example call.
    fn build_plugin(&self, folder: &str, plugins: &Path) -> Result<()> {
        let project = self.example(folder)?;
        self.install_requirements(&project)?;
        fs::create_dir_all(plugins)
            .with_context(|| format!("failed to create {}", plugins.display()))?;
        let mut dev = self
            .machine
            .shell_command(r#"exec "$0" dev --once --no-config --plugins "$1" ."#);
        dev.arg(self.server)
            .arg(plugins)
            .env("XDG_CACHE_HOME", self.target.join("cache"))
            .current_dir(&project.folder);
        run_quietly(&mut dev).with_context(|| format!("`toolbay dev` of {folder}"))
    }

    /// Installs and builds the server on the TypeScript SDK. Returns its folder.
    fn install_typescript_server(&self) -> Result<PathBuf> {
        let source = self.source.join("typescript-sdk");
        let installed = self.target.join("typescript-sdk");
        let mut inputs = String::new();
        for name in TYPESCRIPT_FILES {
            let file = source.join(name);
            inputs += &fs::read_to_string(&file)
                .with_context(|| format!("failed to read {}", file.display()))?;
        }
        run_once(&installed.join("stamp"), &inputs, || {
            println!("Installing the TypeScript SDK");
            fs::create_dir_all(installed.join("src"))
                .with_context(|| format!("failed to create {}", installed.display()))?;
            for name in TYPESCRIPT_FILES {
                let to = installed.join(name);
                fs::copy(source.join(name), &to)
                    .with_context(|| format!("failed to write {}", to.display()))?;
            }
            let line =
                "npm ci --silent --no-audit --no-fund --ignore-scripts && npm run --silent build";
            run_quietly(self.machine.shell_command(line).current_dir(&installed))
                .context("failed to build the server on the TypeScript SDK")
        })?;
        Ok(installed)
    }
}
