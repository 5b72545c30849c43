//! `toolbay new`: creates a plugin project that is ready to build. All files are embedded in the
//! program.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use include_dir::{Dir, DirEntry, include_dir};
use toolbay_model::text::clean_line;
use toolbay_settings::project::{self, ProjectFile};
use wit_parser::UnresolvedPackageGroup;

use super::confirm;
use super::output::print;

/// A language for which there is an SDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Language {
    /// Uses the toolbay-plugin crate
    Rust,
    /// Uses componentize-qjs from npm
    Javascript,
    /// Uses componentize-qjs from npm
    Typescript,
    #[value(help = "Uses componentize-py from PyPI")]
    Python,
    /// Uses the Go compiler
    Go,
    /// Uses zig cc or clang
    C,
    /// Uses zig c++ or clang
    Cpp,
    /// Uses the Zig compiler
    Zig,
    /// Uses the Kotlin compiler, from Maven Central
    Kotlin,
}

/// Maximum size of a printed answer, in bytes.
const MAX_NAME_BYTES: usize = 100;

/// The WIT contract, which is copied into every project.
const CONTRACT_WIT: &str = include_str!("../../../../wit/0.2.0/plugin.wit");

/// The embedded files for one language.
struct LanguageKit {
    /// The SDK, which a project vendors as `toolbay/`.
    sdk: Dir<'static>,
    /// The template of a project that uses the SDK.
    template: Dir<'static>,
    /// The template of a project of plain WIT functions, if the language supports them.
    plain: Option<Dir<'static>>,
    /// The template of an MCP server with the official SDK of the language, if there is one that
    /// can be a plugin.
    server: Option<Dir<'static>>,
}

/// The kind of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProjectKind {
    /// With the SDK.
    Sdk,
    /// Plain WIT functions.
    Plain,
    /// An MCP server.
    Server,
}

/// Creates a kit from folders. The type is `tt` because `include_dir` accepts only a literal token.
macro_rules! kit {
    ($sdk:tt, $template:tt) => {
        LanguageKit {
            sdk: include_dir!($sdk),
            template: include_dir!($template),
            plain: None,
            server: None,
        }
    };
    ($sdk:tt, $template:tt, $plain:tt) => {
        LanguageKit {
            plain: Some(include_dir!($plain)),
            ..kit!($sdk, $template)
        }
    };
}

static RUST_KIT: LanguageKit = kit!(
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/rust/sdk",
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/rust/template",
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/rust/plain"
);
static JAVASCRIPT_KIT: LanguageKit = kit!(
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/javascript/sdk",
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/javascript/template",
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/javascript/plain"
);
static TYPESCRIPT_KIT: LanguageKit = LanguageKit {
    server: Some(include_dir!(
        "$CARGO_MANIFEST_DIR/../../plugin-sdk/typescript/server"
    )),
    ..kit!(
        "$CARGO_MANIFEST_DIR/../../plugin-sdk/typescript/sdk",
        "$CARGO_MANIFEST_DIR/../../plugin-sdk/typescript/template",
        "$CARGO_MANIFEST_DIR/../../plugin-sdk/typescript/plain"
    )
};
static PYTHON_KIT: LanguageKit = kit!(
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/python/sdk",
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/python/template",
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/python/plain"
);
static GO_KIT: LanguageKit = kit!(
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/go/sdk",
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/go/template"
);
static C_KIT: LanguageKit = kit!(
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/c/sdk",
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/c/template"
);
static CPP_KIT: LanguageKit = kit!(
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/cpp/sdk",
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/cpp/template"
);
static ZIG_KIT: LanguageKit = kit!(
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/zig/sdk",
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/zig/template"
);

static KOTLIN_KIT: LanguageKit = kit!(
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/kotlin/sdk",
    "$CARGO_MANIFEST_DIR/../../plugin-sdk/kotlin/template"
);

/// Folders that compilers and package managers create. They are not copied.
const GENERATED_FOLDERS: [&str; 6] = [
    "node_modules",
    "__pycache__",
    ".venv",
    "target",
    "zig-out",
    ".zig-cache",
];

/// Folders that builds create directly in a project. An SDK can have a folder of the same name.
const PROJECT_OUTPUT_FOLDERS: [&str; 2] = ["build", "packages"];

impl Language {
    fn kit(self) -> &'static LanguageKit {
        match self {
            Self::Rust => &RUST_KIT,
            Self::Javascript => &JAVASCRIPT_KIT,
            Self::Typescript => &TYPESCRIPT_KIT,
            Self::Python => &PYTHON_KIT,
            Self::Go => &GO_KIT,
            Self::C => &C_KIT,
            Self::Cpp => &CPP_KIT,
            Self::Zig => &ZIG_KIT,
            Self::Kotlin => &KOTLIN_KIT,
        }
    }

    fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }
}

impl ProjectKind {
    /// Returns the option of the command line, and the languages that have it.
    fn option(self) -> (&'static str, &'static str) {
        match self {
            Self::Sdk => ("", ""),
            Self::Plain => ("--plain", "rust, javascript, typescript and python"),
            Self::Server => ("--server", "typescript"),
        }
    }
}

pub(super) fn run(
    path: &Path,
    language: Option<Language>,
    kind: ProjectKind,
) -> anyhow::Result<ExitCode> {
    let language = match language {
        Some(language) => language,
        // There is only one.
        None if kind == ProjectKind::Server => Language::Typescript,
        None => choose_language()?,
    };
    // `.` has no file name.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let name = absolute
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    check_name(name)?;
    if kind == ProjectKind::Plain {
        check_wit_name(name)?;
    }
    let files = project_files(name, language, kind)?;
    let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    if path.exists() && !is_empty() {
        bail!(
            "{} already exists and is not an empty folder",
            path.display()
        );
    }
    for (file, content) in files {
        let file = path.join(file);
        let parent = file.parent().unwrap_or(path);
        fs::create_dir_all(parent)
            .with_context(|| format!("failed to create {}", parent.display()))?;
        fs::write(&file, content).with_context(|| format!("failed to write {}", file.display()))?;
    }
    let project = ProjectFile::read(path)?;
    print(&next_steps(path, &project));
    Ok(ExitCode::SUCCESS)
}

/// Asks for a language on a terminal.
///
/// # Errors
///
/// There is no terminal, or the answer is not a language. The message lists the languages.
fn choose_language() -> anyhow::Result<Language> {
    let list = language_list();
    if !confirm::is_possible() {
        bail!("add --language with one of these:\n{list}");
    }
    let answer = confirm::ask_for_line(&format!("{list}\nType the language of the plugin:"));
    match Language::from_str(answer.trim(), true) {
        Ok(language) => Ok(language),
        Err(_) => bail!(
            "{:?} is not one of the languages; add --language with one of these:\n{list}",
            clean_line(answer.trim(), MAX_NAME_BYTES)
        ),
    }
}

/// Returns the languages, one on each line.
fn language_list() -> String {
    let rows = Language::value_variants().iter().filter_map(|language| {
        let value = language.to_possible_value()?;
        let help = value.get_help()?.to_string();
        Some(format!("    {:<12}{help}", value.get_name()))
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// Checks that `name` can be converted to an identifier in every language.
fn check_name(name: &str) -> anyhow::Result<()> {
    let has_valid_characters = name
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let has_valid_words = name
        .split('-')
        .all(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
    if has_valid_characters && has_valid_words && name.len() <= 40 {
        return Ok(());
    }
    bail!(
        "{name:?} is not a valid plugin name: use lower-case words of letters and digits, joined by hyphens, such as my-weather"
    )
}

/// Checks that `name` can also be the name of a WIT package.
fn check_wit_name(name: &str) -> anyhow::Result<()> {
    let text = format!("package local:{name}; world {name} {{}}");
    match UnresolvedPackageGroup::parse("plugin.wit", &text) {
        Ok(_) => Ok(()),
        Err(_) => bail!(
            "{name:?} is a WIT keyword and cannot name a package of plain functions; try my-{name}"
        ),
    }
}

/// Returns the files of a new project, as pairs of relative path and content.
fn project_files(
    name: &str,
    language: Language,
    kind: ProjectKind,
) -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
    let kit = language.kit();
    let template = match kind {
        ProjectKind::Sdk => Some(&kit.template),
        ProjectKind::Plain => kit.plain.as_ref(),
        ProjectKind::Server => kit.server.as_ref(),
    };
    let Some(template) = template else {
        let (option, languages) = kind.option();
        bail!(
            "{option} is not available for {}; it is for {languages}",
            language.name()
        );
    };
    let mut files = Vec::new();
    collect_files(template, template.path(), &mut files);
    files.retain(|(path, _)| {
        !PROJECT_OUTPUT_FOLDERS
            .iter()
            .any(|folder| path.starts_with(folder))
    });
    for (path, content) in &mut files {
        *path = PathBuf::from(fill_placeholders(&path.to_string_lossy(), name));
        if let Ok(text) = std::str::from_utf8(content) {
            *content = fill_placeholders(text, name).into_bytes();
        }
    }
    if kind == ProjectKind::Sdk {
        let mut shared = Vec::new();
        collect_files(&kit.sdk, kit.sdk.path(), &mut shared);
        files.extend(
            shared
                .into_iter()
                .map(|(path, content)| (Path::new("toolbay").join(path), content)),
        );
        files.retain(|(path, _)| path != Path::new("toolbay/wit/plugin.wit"));
        files.push((PathBuf::from("toolbay/wit/plugin.wit"), CONTRACT_WIT.into()));
    } else if matches!(language, Language::Python) {
        // Plain functions do not use the SDK, except for its build.
        let mut shared = Vec::new();
        collect_files(&kit.sdk, kit.sdk.path(), &mut shared);
        files.extend(
            shared
                .into_iter()
                .filter(|(path, _)| path.starts_with("build"))
                .map(|(path, content)| (Path::new("toolbay").join(path), content)),
        );
    }
    Ok(files)
}

fn collect_files(dir: &Dir<'_>, root: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in dir.entries() {
        let name = entry
            .path()
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if GENERATED_FOLDERS.contains(&name) {
            continue;
        }
        match entry {
            DirEntry::Dir(dir) => collect_files(dir, root, files),
            DirEntry::File(file) => {
                let path = file.path().strip_prefix(root).unwrap_or(file.path());
                files.push((path.to_owned(), file.contents().to_vec()));
            }
        }
    }
}

fn fill_placeholders(text: &str, name: &str) -> String {
    text.replace("{{name}}", name)
        .replace("{{ident}}", &name.replace('-', "_"))
}

fn next_steps(path: &Path, project: &ProjectFile) -> String {
    let mut out = format!(
        "Created a {} plugin in {}. To build it:\n\n",
        project.language,
        path.display()
    );
    let _ = writeln!(out, "    cd {}", path.display());
    for command in project.setup.iter().chain(&project.build) {
        let _ = writeln!(out, "    {command}");
    }
    if !project.test.is_empty() {
        let _ = writeln!(out, "\nTo test it:\n");
        for command in &project.test {
            let _ = writeln!(out, "    {command}");
        }
    }
    let _ = writeln!(out, "\nTo use it, copy it into the plugin folder:\n");
    let copied_paths = std::iter::once(&project.output).chain(&project.extra_files);
    let copied: Vec<String> = copied_paths
        .map(|path| path.display().to_string())
        .collect();
    let _ = writeln!(out, "    cp {} PLUGINS/", copied.join(" "));
    let missing = project.missing_requirements();
    if !missing.is_empty() {
        let _ = writeln!(out, "\nThis machine still needs:\n");
        for requirement in missing {
            let _ = writeln!(out, "    {requirement}");
        }
    }
    let _ = writeln!(
        out,
        "\n`toolbay dev --plugins PLUGINS {}` builds and copies it after each change to the files that `watch` in {file}\n\
         lists, and then makes the example call in {file}.",
        path.display(),
        file = project::FILE_NAME
    );
    out
}

#[cfg(test)]
mod tests;
