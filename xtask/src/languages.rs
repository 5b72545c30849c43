//! `cargo xtask languages`: creates and builds a plugin project in each language as an author
//! would, and calls it with a client.

pub(crate) mod project;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use toolbay_testkit::build::{BuildProfile, WorkspaceBuilder};
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::CargoWorkspace;

use self::project::{
    BuildEnvironment, INSTALLATION_FOLDERS, PluginProject, create_folder, recreate_folder,
};
use self::table::{OperationTime, PluginMeasurement};
use crate::clients;
use crate::tally::TestCounts;

/// Which languages.
#[derive(Args)]
pub(crate) struct LanguageOptions {
    /// The languages; without any, each whose tools are on the machine
    languages: Vec<Language>,
    /// Every language; what is missing for one is an error
    #[arg(long, conflicts_with = "languages")]
    all: bool,
    /// Use what an earlier run installed and compiled; the times are then not those of a first
    /// build
    #[arg(long)]
    warm: bool,
}

/// The languages to test and the mode of the run.
#[derive(Clone, Copy)]
struct LanguagePlan<'a> {
    languages: &'a [Language],
    /// If set, a missing tool for one of the languages is an error.
    is_required: bool,
    /// A language that is left out if its tools are missing, also if the others are required.
    optional: Option<Language>,
    cache_mode: CacheMode,
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
    /// With the Kotlin compiler
    Kotlin,
}

/// The results of an earlier run that are reused. Downloads are always reused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CacheMode {
    /// Only downloads are reused. The measured times are those of an author's first build.
    Cold,
    /// Installed packages and compiled files are reused. The tests are the same and faster.
    Warm,
}

/// The folders under `target/languages`.
struct LanguageFolders {
    /// The projects, which are created again in each run.
    projects: PathBuf,
    /// The plugin folder of the server.
    plugins: PathBuf,
    /// The compile cache of the server.
    cache: PathBuf,
    /// A plugin folder that contains one plugin at a time, to measure its compilation.
    single_plugin: PathBuf,
}

/// The environment that builds the plugins of all languages.
struct LanguageBuilder<'a> {
    workspace: &'a CargoWorkspace,
    server: &'a Path,
    folders: LanguageFolders,
    machine: BuildEnvironment,
}

/// The outcome of the build for one language.
enum LanguageBuild {
    Plugins(Vec<PluginMeasurement>),
    /// The tool that is missing on the machine.
    Missing(String),
}

/// Runs `cargo xtask languages`.
pub(crate) fn run(workspace: &CargoWorkspace, options: &LanguageOptions) -> Result<ExitCode> {
    let server = WorkspaceBuilder::new(workspace).build_server(BuildProfile::Dev)?;
    let asked = options.all || !options.languages.is_empty();
    let languages: &[Language] = if options.languages.is_empty() {
        Language::value_variants()
    } else {
        &options.languages
    };
    let mut tally = TestCounts::default();
    let beginning = if options.warm {
        CacheMode::Warm
    } else {
        CacheMode::Cold
    };
    let result = build_and_call(
        workspace,
        &server,
        LanguagePlan {
            languages,
            is_required: asked,
            optional: None,
            cache_mode: beginning,
        },
        &mut tally,
    );
    println!("\n{tally}");
    result.map(|()| ExitCode::SUCCESS)
}

/// Runs the test step, with every language. Leaves out Kotlin on a machine without a JDK and Maven.
pub(crate) fn test(
    workspace: &CargoWorkspace,
    server: &Path,
    tally: &mut TestCounts,
) -> Result<()> {
    let plan = LanguagePlan {
        languages: Language::value_variants(),
        is_required: true,
        // A JDK is not on every machine.
        optional: Some(Language::Kotlin),
        cache_mode: CacheMode::Warm,
    };
    build_and_call(workspace, server, plan, tally)
}

/// Builds and calls the plugins of the planned languages. If one language fails, continues with the
/// others.
fn build_and_call(
    workspace: &CargoWorkspace,
    server: &Path,
    plan: LanguagePlan<'_>,
    tally: &mut TestCounts,
) -> Result<()> {
    let shop = LanguageBuilder::prepare(workspace, server, plan.cache_mode)?;
    let mut rows = Vec::new();
    let mut offered = Vec::new();
    let mut failed = Vec::new();
    for language in plan.languages {
        let name = language.name();
        println!("{}", terminal::bold(format!("\n{name}")));
        match shop.build_language(*language) {
            Ok(LanguageBuild::Plugins(made)) => {
                rows.extend(made);
                offered.push(name);
            }
            Ok(LanguageBuild::Missing(what))
                if !plan.is_required || plan.optional == Some(*language) =>
            {
                println!("left out: {what}");
            }
            Ok(LanguageBuild::Missing(what)) => {
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
        let called = shop.call_plugins(&offered, &mut rows, tally);
        println!("\n{}", table::of(&rows));
        called?;
    }
    tally.failed += failed.len() as u64;
    if failed.is_empty() {
        Ok(())
    } else {
        bail!("not built: {}", failed.join(", "))
    }
}

impl Language {
    fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }
}

impl<'a> LanguageBuilder<'a> {
    fn prepare(
        workspace: &'a CargoWorkspace,
        server: &'a Path,
        beginning: CacheMode,
    ) -> Result<Self> {
        let root = workspace.target.join("languages");
        let folders = LanguageFolders {
            projects: root.join("projects"),
            plugins: root.join("plugins"),
            cache: root.join("cache"),
            single_plugin: root.join("alone"),
        };
        let machine = BuildEnvironment::new(workspace);
        recreate_folder(&folders.plugins)?;
        for folder in [&folders.projects, &folders.cache, &machine.compiled] {
            match beginning {
                CacheMode::Cold => recreate_folder(folder)?,
                CacheMode::Warm => create_folder(folder)?,
            }
        }
        Ok(Self {
            workspace,
            server,
            folders,
            machine,
        })
    }

    /// Builds a language's template, its templates without an SDK, the acceptance plugin, and the
    /// examples.
    fn build_language(&self, language: Language) -> Result<LanguageBuild> {
        let name = language.name();
        let sample = self.new_project(language, &format!("sample-{name}"), None)?;
        if let Some(missing) = self.machine.install_missing(&sample.manifest.requires)? {
            return Ok(LanguageBuild::Missing(missing));
        }
        let mut rows = vec![self.build_project(&sample, "")?];
        let has_template = |folder: &str| {
            let sdk = self.workspace.root.join("plugin-sdk").join(&name);
            sdk.join(folder).is_dir()
        };
        if has_template("plain") {
            let plain = self.new_project(language, &format!("plain-{name}"), Some("--plain"))?;
            // The functions have the same names in every language, so each plugin has a prefix.
            rows.push(
                self.build_project(&plain, &format!("prefix = \"{}\"\n", plain.manifest.name))?,
            );
        }
        if has_template("server") {
            let server = self.new_project(language, &format!("server-{name}"), Some("--server"))?;
            rows.push(self.build_project(&server, "")?);
        }
        let mut acceptance =
            PluginProject::read(&self.workspace.root.join("tests/languages").join(&name))?;
        let lent = LinkedPackages::link(&sample.folder, &acceptance.folder)?;
        lent.remove_install_commands(&mut acceptance.manifest.setup);
        self.build_project(&acceptance, "[config]\nunits = \"metric\"\n")?;
        drop(lent);
        for mut example in example_projects(&self.workspace.root)? {
            if example.manifest.language != name {
                continue;
            }
            let lent = LinkedPackages::link(&sample.folder, &example.folder)?;
            lent.remove_install_commands(&mut example.manifest.setup);
            self.build_project(&example, "")?;
        }
        Ok(LanguageBuild::Plugins(rows))
    }

    /// Creates a project as an author would. Moves the installed packages of an earlier run into
    /// the new project.
    fn new_project(
        &self,
        language: Language,
        name: &str,
        option: Option<&str>,
    ) -> Result<PluginProject> {
        let folder = self.folders.projects.join(name);
        PluginProject::create(self.server, &folder, &language.name(), option)
    }

    /// Runs a project's commands, copies the output into the plugin folder, and compiles the
    /// plugin.
    fn build_project(&self, project: &PluginProject, grant: &str) -> Result<PluginMeasurement> {
        let run = |lines: &[String]| {
            lines
                .iter()
                .try_for_each(|line| self.machine.run_in_project(project, line))
        };
        let setup = OperationTime::measure(|| run(&project.manifest.setup))?;
        let build = OperationTime::measure(|| run(&project.manifest.build))?;
        run(&project.manifest.check)?;
        run(&project.manifest.test)?;
        recreate_folder(&self.folders.single_plugin)?;
        for folder in [&self.folders.single_plugin, &self.folders.plugins] {
            project.copy_into(folder)?;
        }
        let grant_file = self
            .folders
            .plugins
            .join(&project.manifest.name)
            .with_extension("toml");
        if !grant.is_empty() {
            fs::write(&grant_file, grant)
                .with_context(|| format!("failed to write {}", grant_file.display()))?;
        }
        let compile = OperationTime::measure(|| self.compile_plugin())?;
        let output = project.folder.join(&project.manifest.output);
        let size = fs::metadata(&output)
            .with_context(|| format!("failed to read {}", output.display()))?
            .len();
        let row = PluginMeasurement {
            plugin: project.manifest.name.clone(),
            size,
            setup,
            build,
            compile,
            call: None,
        };
        println!("{}", row.format_line());
        Ok(row)
    }

    /// Compiles the plugin in the single-plugin folder, into the compile cache of the server.
    fn compile_plugin(&self) -> Result<()> {
        let mut compile = Command::new(self.server);
        compile
            .args(["compile", "--plugins"])
            .arg(&self.folders.single_plugin);
        compile
            .env("XDG_CACHE_HOME", &self.folders.cache)
            .current_dir(&self.folders.single_plugin);
        project::run_quietly(&mut compile).context("`toolbay compile`")
    }

    /// Serves all plugins with a real server, and calls every tool with the official Python client.
    fn call_plugins(
        &self,
        languages: &[String],
        rows: &mut [PluginMeasurement],
        tally: &mut TestCounts,
    ) -> Result<()> {
        let mut client = clients::python_script(self.workspace, "languages.py")?;
        client
            .arg(self.server)
            .arg(&self.folders.plugins)
            .args(languages);
        tally.run_and_count(&mut client, |line| {
            if let Some((plugin, call)) = table::parse_call_time(line) {
                rows.iter_mut()
                    .filter(|row| row.plugin == plugin)
                    .for_each(|row| row.call = Some(call));
                return None;
            }
            let count = TestCounts::parse_line(line);
            if count.is_none() {
                println!("{line}");
            }
            count
        })
    }
}

/// Returns the projects in `example_projects` that have a project file, which excludes the crates
/// of the workspace.
fn example_projects(root: &Path) -> Result<Vec<PluginProject>> {
    let folder = root.join("examples");
    let entries =
        fs::read_dir(&folder).with_context(|| format!("failed to read {}", folder.display()))?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.join(toolbay_settings::project::FILE_NAME).is_file());
    folders.sort();
    folders
        .iter()
        .map(|folder| PluginProject::read(folder))
        .collect()
}

/// Symbolic links from one project to the installed packages of another, which has the same
/// requirements.
struct LinkedPackages(Vec<PathBuf>);

impl LinkedPackages {
    fn link(owner: &Path, borrower: &Path) -> Result<Self> {
        let mut lent = Self(Vec::new());
        for name in INSTALLATION_FOLDERS {
            let installed = owner.join(name);
            let link = borrower.join(name);
            if link.is_symlink() {
                // The link is left over from a run that was interrupted.
                fs::remove_file(&link)
                    .with_context(|| format!("failed to remove {}", link.display()))?;
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
    fn remove_install_commands(&self, setup: &mut Vec<String>) {
        let lends = |name: &str| self.0.iter().any(|link| link.ends_with(name));
        setup.retain(|line| {
            let needless = (line.contains(".venv") && lends(".venv"))
                || (line.starts_with("npm ") && lends("node_modules"))
                || (line.starts_with("mvn ") && lends("packages"));
            !needless
        });
    }
}

impl Drop for LinkedPackages {
    fn drop(&mut self) {
        for link in &self.0 {
            // The next run replaces a link that cannot be removed.
            let _ = fs::remove_file(link);
        }
    }
}

#[cfg(test)]
mod tests;
