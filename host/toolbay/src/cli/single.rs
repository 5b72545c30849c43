//! Loads one plugin file without a plugin directory, for `toolbay check`, `toolbay optimize` and
//! `toolbay replay`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, bail};
use bytesize::ByteSize;
use toolbay_catalog::{LoadError, Rules, describe_failed, read_source};
use toolbay_model::Description;
use toolbay_model::text::line;
use toolbay_sandbox::{About, Compiled, PrepareError, Prepared, Sandbox, Source};
use toolbay_settings::project::{self, Project};

use super::progress;
use super::requirements::ready;

/// Maximum size of a printed reason, in bytes. Parts of it come from the file.
pub(super) const WHY: usize = 2_000;

/// Extensions of directories that contain plain files instead of code.
const PLAIN: [&str; 3] = ["prompts", "resources", "skill"];

/// A loaded plugin.
pub(super) struct Loaded {
    pub(super) prepared: Prepared,
    pub(super) description: Description,
    pub(super) about: About,
    /// Compile time in milliseconds. `None` if the component was in the compile cache.
    pub(super) compile_ms: Option<f64>,
}

/// Returns the plugin file for a path. For a project directory, that is the output of its build.
pub(super) fn file_of(path: &Path) -> anyhow::Result<PathBuf> {
    if !path.join(project::FILE).is_file() {
        return Ok(path.to_owned());
    }
    let project = Project::read(path).map_err(anyhow::Error::msg)?;
    ready(&project)?;
    let output = path.join(&project.output);
    if !output.is_file() {
        let commands: Vec<&str> = project.setup.iter().chain(&project.build).map(String::as_str).collect();
        bail!("{} has not been built; run these in its folder:\n    {}", project.name, commands.join("\n    "));
    }
    Ok(output)
}

/// Reads a plugin file of at most `limit` bytes, and the `.wit` file next to it.
pub(super) fn source(file: &Path, limit: u64) -> anyhow::Result<Source> {
    let name = shown(file);
    // The directory of files without code, or one of its files.
    let plain = |path: &Path| path.extension().is_some_and(|extension| PLAIN.iter().any(|known| extension == *known));
    if file.ancestors().take(2).any(plain) {
        bail!(
            "{name} is not a component: `toolbay list` shows what files without code offer, and what is wrong with them"
        );
    }
    if file.is_dir() {
        bail!("{name} is a folder without a {}; give a plugin file or a project folder", project::FILE);
    }
    read_source(file, limit).map_err(|error| match error {
        LoadError::Gone => anyhow::anyhow!("{name} does not exist"),
        error => anyhow::anyhow!("{name}: {}", error.why()),
    })
}

/// Returns the path of a file, for display.
pub(super) fn shown(file: &Path) -> String {
    line(&file.display().to_string(), WHY)
}

/// Loads a plugin from the compile cache, or compiles and describes it. Error messages begin with
/// `name`.
pub(super) async fn load(sandbox: &Sandbox, source: Source, rules: Rules, name: &str) -> anyhow::Result<Loaded> {
    let unusable = |why: &str| anyhow::anyhow!("{name} is not a valid plugin: {}", line(why, WHY));
    let (size, digest) = (source.file.len() as u64, source.digest());
    if let Some((prepared, description, about)) = sandbox.find_open(digest) {
        return Ok(Loaded { prepared, description, about, compile_ms: None });
    }
    let Rules { bounds, describe: limits, .. } = rules;
    let began = Instant::now();
    let compiled = compile(sandbox, source, &format!("{name} ({})", ByteSize::b(size).display().iec())).await;
    let compiled = compiled.map_err(|error| unusable(&error.to_string()))?;
    let compile_ms = began.elapsed().as_secs_f64() * 1000.0;
    let asked = sandbox.clone();
    let described = sandbox.spawn(async move {
        let finished = asked.describe(&compiled, &limits).await;
        (compiled, finished.result)
    });
    let (mut compiled, listed) = described.await.context("listing what it offers failed unexpectedly")?;
    let listed = listed.map_err(|error| unusable(describe_failed(&error).why()))?;
    if let Some(why) = listed.refused() {
        return Err(unusable(why));
    }
    let description = compiled.description(listed);
    bounds.check(&description).map_err(|why| unusable(&why))?;
    let (prepared, scratch, about) = compiled.into_parts();
    sandbox.keep(digest, scratch, &prepared, description.clone(), about.clone());
    Ok(Loaded { prepared, description, about, compile_ms: Some(compile_ms) })
}

/// Compiles `source`, and reports progress if that takes long.
async fn compile(sandbox: &Sandbox, source: Source, what: &str) -> Result<Compiled, PrepareError> {
    let line = format!("compiling {what}; this can take minutes");
    progress::shown(&format!("compiling {what}"), &line, sandbox.compile(source)).await
}
