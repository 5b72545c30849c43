//! Loads one plugin file without a plugin directory, for `toolbay check`, `toolbay optimize` and
//! `toolbay replay`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, bail};
use bytesize::ByteSize;
use toolbay_catalog::{ComponentContents, LoadError, LoadPolicy, describe_load_error, read_source};
use toolbay_model::ComponentDescription;
use toolbay_model::text::clean_line;
use toolbay_sandbox::{
    CompileSource, CompiledFile, PluginSummary, PrepareError, PreparedComponent, Sandbox,
};
use toolbay_settings::project::{self, ProjectFile};

use super::progress;
use super::requirements::check_installed;

/// Maximum size of a printed reason, in bytes. Parts of it come from the file.
pub(super) const MAX_REASON_BYTES: usize = 2_000;

/// Extensions of directories that contain plain files instead of code.
const CODELESS_EXTENSIONS: [&str; 3] = ["prompts", "resources", "skill"];

/// A loaded plugin.
pub(super) struct LoadedPlugin {
    pub(super) prepared: PreparedComponent,
    pub(super) description: ComponentDescription,
    /// The description after validation: its tools, prompts and resources.
    pub(super) contents: ComponentContents,
    pub(super) about: PluginSummary,
    /// Compile time in milliseconds. `None` if the component was in the compile cache.
    pub(super) compile_ms: Option<f64>,
}

/// Returns the plugin file for a path. For a project directory, that is the output of its build.
pub(super) fn resolve_plugin_file(path: &Path) -> anyhow::Result<PathBuf> {
    if !path.join(project::FILE_NAME).is_file() {
        return Ok(path.to_owned());
    }
    let project = ProjectFile::read(path)?;
    check_installed(&project)?;
    let output = path.join(&project.output);
    if !output.is_file() {
        let commands: Vec<&str> = project
            .setup
            .iter()
            .chain(&project.build)
            .map(String::as_str)
            .collect();
        bail!(
            "{} has not been built; run these in its folder:\n    {}",
            project.name,
            commands.join("\n    ")
        );
    }
    Ok(output)
}

/// Reads a plugin file of at most `limit` bytes, and the `.wit` file next to it.
pub(super) fn read_plugin_source(file: &Path, limit: u64) -> anyhow::Result<CompileSource> {
    let name = printable_path(file);
    // The directory of files without code, or one of its files.
    let has_no_code = |path: &Path| {
        path.extension()
            .is_some_and(|extension| CODELESS_EXTENSIONS.iter().any(|known| extension == *known))
    };
    if file.ancestors().take(2).any(has_no_code) {
        bail!(
            "{name} is not a component: `toolbay list` shows what files without code offer, and their mistakes"
        );
    }
    if file.is_dir() {
        bail!(
            "{name} is a folder without a {}; give a plugin file or a project folder",
            project::FILE_NAME
        );
    }
    read_source(file, limit).map_err(|error| match error {
        LoadError::Gone => anyhow::anyhow!("{name} does not exist"),
        error => anyhow::anyhow!("{name}: {}", error.reason()),
    })
}

/// Returns the path of a file, for display.
pub(super) fn printable_path(file: &Path) -> String {
    clean_line(&file.display().to_string(), MAX_REASON_BYTES)
}

/// Loads a plugin from the compile cache, or compiles and describes it. Error messages begin with
/// `name`.
pub(super) async fn load_plugin(
    sandbox: &Sandbox,
    source: CompileSource,
    rules: LoadPolicy,
    name: &str,
) -> anyhow::Result<LoadedPlugin> {
    let unusable = |why: &str| {
        anyhow::anyhow!(
            "{name} is not a valid plugin: {}",
            clean_line(why, MAX_REASON_BYTES)
        )
    };
    let size = source.file.len() as u64;
    let digest = source.digest();
    if let Some((prepared, mut description, about)) = sandbox.open_cached(digest) {
        let contents = ComponentContents::validate_or_leave_out(&mut description)
            .map_err(|why| unusable(&why))?;
        return Ok(LoadedPlugin {
            prepared,
            description,
            contents,
            about,
            compile_ms: None,
        });
    }
    let LoadPolicy {
        description_limits,
        describe_limits: limits,
        ..
    } = rules;
    let started = Instant::now();
    let compiled = compile(
        sandbox,
        source,
        &format!("{name} ({})", ByteSize::b(size).display().iec()),
    )
    .await;
    let compiled = compiled.map_err(|error| unusable(&error.to_string()))?;
    let compile_ms = started.elapsed().as_secs_f64() * 1000.0;
    let describing_sandbox = sandbox.clone();
    let describe_task = sandbox.spawn(async move {
        let finished = describing_sandbox.describe(&compiled, &limits).await;
        (compiled, finished.result)
    });
    let (mut compiled, listing) = describe_task
        .await
        .context("listing what it offers failed unexpectedly")?;
    let raw_description =
        listing.map_err(|error| unusable(describe_load_error(&error).reason()))?;
    if let Some(why) = raw_description.refusal_reason() {
        return Err(unusable(why));
    }
    let mut description = compiled.description(raw_description);
    description_limits
        .check(&description)
        .map_err(|why| unusable(&why))?;
    // A server trusts the descriptions in the cache.
    let contents =
        ComponentContents::validate_or_leave_out(&mut description).map_err(|why| unusable(&why))?;
    let (prepared, scratch, about) = compiled.into_parts();
    sandbox.add_to_cache(
        digest,
        scratch,
        &prepared,
        description.clone(),
        about.clone(),
    );
    Ok(LoadedPlugin {
        prepared,
        description,
        contents,
        about,
        compile_ms: Some(compile_ms),
    })
}

/// Compiles `source`, and reports progress if that takes long.
async fn compile(
    sandbox: &Sandbox,
    source: CompileSource,
    name: &str,
) -> Result<CompiledFile, PrepareError> {
    let line = format!("compiling {name}; this can take minutes");
    progress::with_progress(&format!("compiling {name}"), &line, sandbox.compile(source)).await
}
