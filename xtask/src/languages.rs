//! `cargo xtask languages`: creates and builds a plugin project in each language as an author
//! would, and calls it with a client.

pub(crate) mod project;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use toolbay_testkit::build::{Builder, Profile};
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::Workspace;

use self::project::{Machine, Project};
use self::table::{Row, Took};
use crate::clients;
use crate::tally::Tally;

/// Which languages.
#[derive(Args)]
pub(crate) struct Options {
    /// The languages; without any, each whose tools are on the machine
    languages: Vec<Language>,
    /// Every language; what is missing for one is an error
    #[arg(long, conflicts_with = "languages")]
    all: bool,
    /// Use what an earlier run installed and compiled; the times are then not those of a first build
    #[arg(long)]
    warm: bool,
}

/// The languages to test and the mode of the run.
#[derive(Clone, Copy)]
struct Plan<'a> {
    languages: &'a [Language],
    /// If set, a missing tool for one of the languages is an error.
    asked: bool,
    beginning: Beginning,
}

/// A language that plugins are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// With the toolbay-plugin crate
    Rust,
    /// With componentize-qjs
    Javascript,
    /// With componentize-qjs
    Typescript,
    /// With componentize-py
    Python,
    /// With the Go compiler
    Go,
    /// With zig cc
    C,
    /// With zig c++
    Cpp,
    /// With the Zig compiler
    Zig,
}

/// The folders that the setup of a project installs into. They are large and the same for all
/// projects of a language.
const INSTALLED: [&str; 2] = [".venv", "node_modules"];

/// The results of an earlier run that are reused. Downloads are always reused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beginning {
    /// Only downloads are reused. The measured times are those of an author's first build.
    Cold,
    /// Installed packages and compiled files are reused. The tests are the same and faster.
    Warm,
}

/// The folders under `target/languages`.
struct Folders {
    /// The projects, which are created again in each run.
    projects: PathBuf,
    /// The plugin folder of the server.
    plugins: PathBuf,
    /// The compile cache of the server.
    cache: PathBuf,
    /// A plugin folder that contains one plugin at a time, to measure its compilation.
    alone: PathBuf,
}

/// The environment that builds the plugins of all languages.
struct Shop<'a> {
    workspace: &'a Workspace,
    server: &'a Path,
    folders: Folders,
    machine: Machine,
}

/// The outcome of the build for one language.
enum Made {
    Plugins(Vec<Row>),
    /// The tool that is missing on the machine.
    Missing(String),
}

/// Runs `cargo xtask languages`.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<ExitCode> {
    let server = Builder::new(workspace).server(Profile::Dev)?;
    let asked = options.all || !options.languages.is_empty();
    let languages: &[Language] =
        if options.languages.is_empty() { Language::value_variants() } else { &options.languages };
    let mut tally = Tally::default();
    let beginning = if options.warm { Beginning::Warm } else { Beginning::Cold };
    let result = check(workspace, &server, Plan { languages, asked, beginning }, &mut tally);
    println!("\n{tally}");
    result.map(|()| ExitCode::SUCCESS)
}

/// Runs the test step, with every language.
pub(crate) fn test(workspace: &Workspace, server: &Path, tally: &mut Tally) -> Result<()> {
    let plan = Plan { languages: Language::value_variants(), asked: true, beginning: Beginning::Warm };
    check(workspace, server, plan, tally)
}

/// Builds and calls the plugins of the planned languages. If one language fails, continues with the
/// others.
fn check(workspace: &Workspace, server: &Path, plan: Plan<'_>, tally: &mut Tally) -> Result<()> {
    let shop = Shop::open(workspace, server, plan.beginning)?;
    let (mut rows, mut offered, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for language in plan.languages {
        let name = language.name();
        println!("{}", terminal::bold(format!("\n{name}")));
        match shop.make(*language) {
            Ok(Made::Plugins(made)) => {
                rows.extend(made);
                offered.push(name);
            }
            Ok(Made::Missing(what)) if !plan.asked => println!("left out: {what}"),
            Ok(Made::Missing(what)) => {
                eprintln!("{} {what}", terminal::red("error:"));
                failed.push(name);
            }
            Err(error) => {
                eprintln!("{} {error:#}", terminal::red("error:"));
                failed.push(name);
            }
        }
    }
    if !offered.is_empty() {
        println!("{}", terminal::bold("\nThe official Python client"));
        let called = shop.call(&offered, &mut rows, tally);
        println!("\n{}", table::of(&rows));
        called?;
    }
    tally.failed += failed.len() as u64;
    if failed.is_empty() { Ok(()) } else { bail!("not built: {}", failed.join(", ")) }
}

impl Language {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl<'a> Shop<'a> {
    fn open(workspace: &'a Workspace, server: &'a Path, beginning: Beginning) -> Result<Self> {
        let root = workspace.target.join("languages");
        let folders = Folders {
            projects: root.join("projects"),
            plugins: root.join("plugins"),
            cache: root.join("cache"),
            alone: root.join("alone"),
        };
        let machine = Machine::new(workspace);
        empty(&folders.plugins)?;
        for folder in [&folders.projects, &folders.cache, &machine.compiled] {
            match beginning {
                Beginning::Cold => empty(folder)?,
                Beginning::Warm => create(folder)?,
            }
        }
        Ok(Self { workspace, server, folders, machine })
    }

    /// Builds a language's template, its template without an SDK, the acceptance plugin, and the
    /// examples.
    fn make(&self, language: Language) -> Result<Made> {
        let name = language.name();
        let sample = self.new_project(language, &format!("sample-{name}"), false)?;
        if let Some(missing) = self.machine.provide(&sample.manifest.requires)? {
            return Ok(Made::Missing(missing));
        }
        let mut rows = vec![self.build(&sample, "")?];
        if self.workspace.root.join("plugin-sdk").join(&name).join("plain").is_dir() {
            let plain = self.new_project(language, &format!("plain-{name}"), true)?;
            // The functions have the same names in every language, so each plugin has a prefix.
            rows.push(self.build(&plain, &format!("prefix = \"{}\"\n", plain.manifest.name))?);
        }
        let mut acceptance = Project::read(&self.workspace.root.join("tests/languages").join(&name))?;
        let lent = Lent::from(&sample.folder, &acceptance.folder)?;
        lent.shorten(&mut acceptance.manifest.setup);
        self.build(&acceptance, "[config]\nunits = \"metric\"\n")?;
        drop(lent);
        for mut example in examples(&self.workspace.root)? {
            if example.manifest.language != name {
                continue;
            }
            let lent = Lent::from(&sample.folder, &example.folder)?;
            lent.shorten(&mut example.manifest.setup);
            self.build(&example, "")?;
        }
        Ok(Made::Plugins(rows))
    }

    /// Creates a project as an author would. Moves the installed packages of an earlier run into
    /// the new project.
    fn new_project(&self, language: Language, name: &str, plain: bool) -> Result<Project> {
        let folder = self.folders.projects.join(name);
        let before = self.folders.projects.join(format!("{name}.before"));
        if folder.exists() {
            empty(&before)?;
            rename(&folder, &before)?;
        }
        let mut new = Command::new(self.server);
        new.arg("new").arg(&folder).args(["--language", &language.name()]);
        if plain {
            new.arg("--plain");
        }
        project::quietly(&mut new).with_context(|| format!("`toolbay new {name}`"))?;
        for installed in INSTALLED {
            if before.join(installed).exists() {
                rename(&before.join(installed), &folder.join(installed))?;
            }
        }
        if before.exists() {
            fs::remove_dir_all(&before).with_context(|| format!("failed to remove {}", before.display()))?;
        }
        Project::read(&folder)
    }

    /// Runs a project's commands, copies the output into the plugin folder, and compiles the
    /// plugin.
    fn build(&self, project: &Project, grant: &str) -> Result<Row> {
        let run = |lines: &[String]| lines.iter().try_for_each(|line| self.machine.run(project, line));
        let setup = Took::of(|| run(&project.manifest.setup))?;
        let build = Took::of(|| run(&project.manifest.build))?;
        run(&project.manifest.test)?;
        empty(&self.folders.alone)?;
        for folder in [&self.folders.alone, &self.folders.plugins] {
            project.copy_into(folder)?;
        }
        let grant_file = self.folders.plugins.join(&project.manifest.name).with_extension("toml");
        if !grant.is_empty() {
            fs::write(&grant_file, grant).with_context(|| format!("failed to write {}", grant_file.display()))?;
        }
        let compile = Took::of(|| self.compile())?;
        let output = project.folder.join(&project.manifest.output);
        let size = fs::metadata(&output).with_context(|| format!("failed to read {}", output.display()))?.len();
        let row = Row { plugin: project.manifest.name.clone(), size, setup, build, compile, call: None };
        println!("{}", row.line());
        Ok(row)
    }

    /// Compiles the plugin in the single-plugin folder, into the compile cache of the server.
    fn compile(&self) -> Result<()> {
        let mut compile = Command::new(self.server);
        compile.args(["compile", "--plugins"]).arg(&self.folders.alone);
        compile.env("XDG_CACHE_HOME", &self.folders.cache).current_dir(&self.folders.alone);
        project::quietly(&mut compile).context("`toolbay compile`")
    }

    /// Serves all plugins with a real server, and calls every tool with the official Python client.
    fn call(&self, languages: &[String], rows: &mut [Row], tally: &mut Tally) -> Result<()> {
        let mut client = clients::python_script(self.workspace, "languages.py")?;
        client.arg(self.server).arg(&self.folders.plugins).args(languages);
        tally.count(&mut client, |line| {
            if let Some((plugin, call)) = table::call_time(line) {
                rows.iter_mut().filter(|row| row.plugin == plugin).for_each(|row| row.call = Some(call));
                return None;
            }
            let count = Tally::of_line(line);
            if count.is_none() {
                println!("{line}");
            }
            count
        })
    }
}

/// Returns the projects in `examples` that have a project file, which excludes the crates of the
/// workspace.
fn examples(root: &Path) -> Result<Vec<Project>> {
    let folder = root.join("examples");
    let entries = fs::read_dir(&folder).with_context(|| format!("failed to read {}", folder.display()))?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.join(toolbay_settings::project::FILE).is_file());
    folders.sort();
    folders.iter().map(|folder| Project::read(folder)).collect()
}

/// Symbolic links from one project to the installed packages of another, which has the same
/// requirements.
struct Lent(Vec<PathBuf>);

impl Lent {
    fn from(owner: &Path, borrower: &Path) -> Result<Self> {
        let mut lent = Self(Vec::new());
        for name in INSTALLED {
            let (installed, link) = (owner.join(name), borrower.join(name));
            if link.is_symlink() {
                // The link is left over from a run that was interrupted.
                fs::remove_file(&link).with_context(|| format!("failed to remove {}", link.display()))?;
            }
            // Packages that the user has installed in the project are used instead.
            if installed.is_dir() && !link.exists() {
                std::os::unix::fs::symlink(&installed, &link)
                    .with_context(|| format!("failed to link {}", link.display()))?;
                lent.0.push(link);
            }
        }
        Ok(lent)
    }

    /// Removes the setup commands that would install the linked packages.
    fn shorten(&self, setup: &mut Vec<String>) {
        let lends = |name: &str| self.0.iter().any(|link| link.ends_with(name));
        setup.retain(|line| {
            let needless =
                (line.contains(".venv") && lends(".venv")) || (line.starts_with("npm ") && lends("node_modules"));
            !needless
        });
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        for link in &self.0 {
            // The next run replaces a link that cannot be removed.
            let _ = fs::remove_file(link);
        }
    }
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).with_context(|| format!("failed to move {} to {}", from.display(), to.display()))
}

fn create(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))
}

/// Creates an empty folder. Removes the existing content.
fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("failed to empty {}", folder.display()))?;
    }
    create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(path: &str) -> toml::Table {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        fs::read_to_string(root.join(path)).unwrap().parse().unwrap()
    }

    fn dependencies(manifest: &toml::Table) -> Vec<(String, toml::Value)> {
        let all = manifest["dependencies"].as_table().unwrap().clone().into_iter();
        // Ignore `optional`, which each crate sets on its own.
        let plain = |(name, mut value): (String, toml::Value)| {
            if let Some(table) = value.as_table_mut()
                && table.remove("optional").is_some()
                && table.len() == 1
            {
                value = table["version"].clone();
            }
            (name, value)
        };
        all.filter(|(_, value)| value.get("path").is_none()).map(plain).collect()
    }

    #[test]
    fn what_projects_vendor_is_the_sdk_of_the_workspace() {
        let workspace = manifest("Cargo.toml")["workspace"].as_table().unwrap().clone();
        for (member, vendored) in [("plugin-sdk", ""), ("plugin-sdk/macros", "macros/")] {
            let member = manifest(&format!("{member}/Cargo.toml"));
            let vendored = manifest(&format!("plugin-sdk/rust/sdk/{vendored}Cargo.toml"));
            let names = |manifest: &toml::Table| -> Vec<String> {
                manifest["dependencies"].as_table().unwrap().keys().cloned().collect()
            };
            assert_eq!(names(&vendored), names(&member));
            assert_eq!(vendored["package"]["name"], member["package"]["name"]);
            for key in ["version", "edition", "rust-version", "license"] {
                assert_eq!(vendored["package"][key], workspace["package"][key], "{key}");
            }
        }
        for project in ["sdk", "sdk/macros", "template", "plain"] {
            for (name, value) in dependencies(&manifest(&format!("plugin-sdk/rust/{project}/Cargo.toml"))) {
                assert_eq!(value, workspace["dependencies"][&name], "{project}: {name}");
            }
        }
    }

    #[test]
    fn what_is_not_lent_is_installed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let example = Project::read(&folder.parent().unwrap().join("examples/sqlite")).unwrap();
        for (lent, kept) in
            [(vec![], 3), (vec![".venv"], 1), (vec!["node_modules"], 2), (vec![".venv", "node_modules"], 0)]
        {
            let mut setup = example.manifest.setup.clone();
            // Nothing is at these paths, so nothing is removed afterwards.
            let paths = lent.iter().map(|name| folder.join("no-such-folder").join(name)).collect();
            Lent(paths).shorten(&mut setup);
            assert_eq!(setup.len(), kept, "{lent:?}: {setup:?}");
        }
    }

    #[test]
    fn every_example_is_built_and_has_a_grant() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let examples = examples(root).unwrap();
        assert!(examples.len() >= 3);
        for Project { folder, manifest } in examples {
            assert!(Language::from_str(&manifest.language, false).is_ok(), "{}", manifest.language);
            assert_eq!(folder.file_name().unwrap().to_str(), Some(manifest.name.as_str()));
            assert!(folder.join(&manifest.name).with_extension("toml").is_file(), "{}", manifest.name);
        }
    }

    #[test]
    fn the_languages_have_an_acceptance_plugin_each() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for language in Language::value_variants() {
            let name = language.name();
            let project = Project::read(&root.join("tests/languages").join(&name)).unwrap();
            assert_eq!(project.manifest.name, format!("{name}-acceptance"));
        }
    }
}
