//! `toolbay check`: shows the contents and imports of a plugin file without serving it.

mod grant;
mod import_uses;
mod offers;
mod toolchain;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use bytesize::ByteSize;
use serde_json::{Value, json};
use toolbay_bundle::{PluginManifest, ProposedGrant, read_manifest};
use toolbay_catalog::{
    ApprovalSetting, Approver, ComponentContents, Grant, GuardedPath, RequiredApproval,
    ValidDefinition, check_grant_mounts, name_notes, read_grant, tool_name,
};
use toolbay_mcp::{prompt_json, resource_json, template_json};
use toolbay_model::Digest;
use toolbay_model::text::{clean, clean_line};
use toolbay_sandbox::{PluginSummary, Sandbox};

use self::import_uses::import_uses;
pub(super) use self::offers::write_offers;
use self::toolchain::Toolchain;
use super::common::{Common, Listen, Settings, block_on};
use super::manifest::{grant_differences, metadata_lines, proposal_text};
use super::output::{print, print_json};
use super::plugin_file::{
    LoadedPlugin, MAX_REASON_BYTES, load_plugin, printable_path, read_plugin_source,
    resolve_plugin_file,
};
use crate::config::Config;

/// Facts that `check` prints about a file.
struct CheckFindings {
    digest: Digest,
    size: u64,
    about: PluginSummary,
    form: String,
    /// Initial size of the largest linear memory, in bytes, if it is known.
    memory: Option<u64>,
    /// The default of `limits.memory`.
    memory_limit: ByteSize,
    /// Compile time, in milliseconds; `None` if the component was in the compile cache.
    compile_ms: Option<f64>,
    remarks: Vec<String>,
    contents: ComponentContents,
    /// Tools that require approval under the grant next to the file, by name.
    approvals: BTreeMap<String, RequiredApproval>,
    /// Metadata in the file, with the proposed grant.
    manifest: PluginManifest,
    /// The toolchain that imports more than plugins use, if it was recognized.
    toolchain: Option<Toolchain>,
    /// True if the grant next to the file is invalid, so that a server would reject the plugin.
    is_refused: bool,
}

impl CheckFindings {
    /// Returns the purposes of the plugin's own imports, and of those of its toolchain.
    fn split_imports(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        let is_default = |import: &&String| {
            self.toolchain
                .is_some_and(|toolchain| toolchain.imports_by_default(import))
        };
        let imports = &self.about.imports;
        let own = import_uses(imports.iter().filter(|import| !is_default(import)));
        let mut toolchain = import_uses(imports.iter().filter(is_default));
        toolchain.retain(|words| !own.contains(words));
        (own, toolchain)
    }

    /// Returns a template of a grant for the imports.
    fn grant_template(&self) -> Option<String> {
        grant::render(&self.about.imports, &self.contents.requested_view_access())
    }
}

/// Remark about a plugin that cannot access the folders of its grant.
const NO_FILES_REMARK: &str = "it looks for files through WASI 0.3, where it gets none, whatever its grant says (build it for WASI \
                          0.2)";

pub(super) fn run(settings: &Settings, path: &Path, as_json: bool) -> anyhow::Result<ExitCode> {
    let file = &resolve_plugin_file(path)?;
    // A single file needs no plugin folder. Use the folder of the file instead.
    let plugin_folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let common = Common::for_folder(Some(plugin_folder.to_owned()), settings.clone());
    let config = common.load_config(true, &Listen::default())?;
    let findings = block_on(inspect(config, file))?;
    let name = file
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    if as_json {
        print_json(&findings_json(&findings))?;
    } else {
        print(&findings_text(name, &findings));
    }
    Ok(if findings.is_refused {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

async fn inspect(config: Config, file: &Path) -> anyhow::Result<CheckFindings> {
    let name = printable_path(file);
    let source = read_plugin_source(file, config.server.component_size.as_u64())?;
    let size = source.file.len() as u64;
    let digest = source.digest();
    let (manifest, manifest_remarks) = read_manifest(&source.file);
    let engine = Toolchain::find_engine(&source.file);
    let sandbox = Sandbox::new(config.sandbox_settings()?)?;
    let rules = config.load_policy();
    let memory_limit = rules.limits.memory;
    let approval_defaults = (rules.require_approval, rules.approve_by);
    let guarded_paths = rules.guarded_paths.clone();
    let LoadedPlugin {
        prepared,
        description,
        contents,
        about,
        compile_ms,
    } = load_plugin(&sandbox, source, rules, &name).await?;
    let undescribed = undescribed_remark(&prepared.undocumented_tools(&description), file);
    let mut remarks = description.remarks;
    remarks.extend(manifest_remarks);
    remarks.extend(undescribed);
    remarks.extend(contents.view_remarks());
    remarks.extend(contents.compatibility_notes());
    if !prepared.has_files() {
        remarks.push(NO_FILES_REMARK.to_owned());
    }
    let form = prepared.form();
    let memory = prepared.memory();
    let is_command = prepared.is_command();
    let grant_summary = summarize_grant(
        file,
        approval_defaults,
        &guarded_paths,
        digest,
        &contents,
        is_command,
        manifest.proposed_grant.as_ref(),
    );
    let toolchain = engine.or_else(|| Toolchain::find_producer(&about.made_with, &about.kind));
    let is_refused = grant_summary.is_err();
    let GrantSummary {
        approvals,
        names,
        remarks: warnings,
    } = grant_summary.unwrap_or_else(|why| {
        remarks.push(why);
        GrantSummary::default()
    });
    remarks.extend(warnings);
    remarks.extend(name_notes(&names));
    Ok(CheckFindings {
        digest,
        size,
        about,
        form,
        memory,
        memory_limit,
        compile_ms,
        remarks,
        contents,
        approvals,
        manifest,
        toolchain,
        is_refused,
    })
}

/// Returns a remark on how to describe tools that are plain functions, if they have no
/// descriptions.
fn undescribed_remark(tools: &[String], file: &Path) -> Option<String> {
    let first = clean_line(tools.first()?, MAX_REASON_BYTES);
    let more = if tools.len() > 1 {
        format!(" and {} more", tools.len() - 1)
    } else {
        String::new()
    };
    let wit = file.with_extension("wit");
    let wit = wit.file_name().unwrap_or_default().to_string_lossy();
    Some(format!(
        "{first}{more} has no description; put the WIT of its functions, with comments, next to it as {}",
        clean_line(&wit, MAX_REASON_BYTES)
    ))
}

/// Effects of the grant next to a file on its tools.
#[derive(Default)]
struct GrantSummary {
    /// Tools that require approval, by their own names.
    approvals: BTreeMap<String, RequiredApproval>,
    /// The tool names that clients use.
    names: Vec<String>,
    /// Warnings about the grant.
    remarks: Vec<String>,
}

/// Reads the grant next to `file`. `approval_defaults` and `guarded_paths` come from the server's
/// configuration. Blocks.
///
/// # Errors
///
/// The grant is invalid, or does not match this file.
fn summarize_grant(
    file: &Path,
    approval_defaults: (ApprovalSetting, Approver),
    guarded_paths: &[GuardedPath],
    digest: Digest,
    contents: &ComponentContents,
    is_command: bool,
    proposal: Option<&ProposedGrant>,
) -> Result<GrantSummary, String> {
    let (Some(folder), Some(id)) = (
        file.parent(),
        file.file_stem().and_then(|stem| stem.to_str()),
    ) else {
        return Ok(GrantSummary::default());
    };
    let grant = match read_grant(folder, id).map_err(|error| error.reason().to_owned())? {
        Some(text) => Grant::parse(&format!("{id}.toml"), &text, folder)?,
        None => Grant::default(),
    };
    grant
        .check_component(id, digest, contents, is_command)
        .map_err(|why| format!("{id}.toml: {why}"))?;
    let mut remarks = check_grant_mounts(folder, id, &grant, guarded_paths)?;
    if let Some(proposal) = proposal.filter(|_| grant.digest.is_some()) {
        remarks.extend(grant_differences(&format!("{id}.toml"), &grant, proposal));
    }
    let approvals = grant.approvals(approval_defaults.0, approval_defaults.1);
    let file_tool_name = tool_name(id);
    let approval_of = |definition: &ValidDefinition| {
        // A command has no tool name. The file name takes its place.
        let name = if is_command {
            file_tool_name.clone()
        } else {
            definition.tool.name.clone()
        };
        let overridden = grant
            .tools
            .get(&name)
            .map(|tool| definition.with_override(&tool.to_override()));
        let annotations = overridden.as_ref().unwrap_or(definition).tool.annotations;
        Some((
            definition.tool.name.clone(),
            RequiredApproval {
                policy: approvals.setting_for(&name).policy_for(annotations)?,
                approver: approvals.approver_for(&name),
            },
        ))
    };
    let full_name_of = |definition: &ValidDefinition| {
        grant.full_name(if is_command {
            &file_tool_name
        } else {
            &definition.tool.name
        })
    };
    Ok(GrantSummary {
        approvals: contents
            .tools
            .iter()
            .filter_map(|definition| approval_of(definition))
            .collect(),
        names: contents
            .tools
            .iter()
            .map(|definition| full_name_of(definition))
            .collect(),
        remarks,
    })
}

fn findings_text(name: &str, findings: &CheckFindings) -> String {
    let about = &findings.about;
    let mut out = String::new();
    let size = ByteSize::b(findings.size).display().iec();
    let _ = writeln!(
        out,
        "{}  {size}  sha256 {}",
        clean_line(name, MAX_REASON_BYTES),
        findings.digest
    );
    let _ = writeln!(out, "    {}; {}", about.kind, findings.form);
    if !about.made_with.is_empty() {
        let _ = writeln!(
            out,
            "    made with {}",
            clean_line(&about.made_with.join(", "), MAX_REASON_BYTES)
        );
    }
    if !about.uses.is_empty() {
        let _ = writeln!(out, "    uses {}", about.uses.join(" and "));
    }
    let code = ByteSize::b(about.code).display().iec();
    let _ = match findings.compile_ms {
        Some(ms) => writeln!(out, "    compiled in {ms:.0} ms to {code}"),
        None => writeln!(out, "    compiled to {code} earlier (in the compile cache)"),
    };
    if let Some(memory) = findings.memory {
        let [memory, limit] = [ByteSize::b(memory), findings.memory_limit]
            .map(|size| size.display().iec().to_string());
        let _ = writeln!(
            out,
            "    {memory} of memory when a call begins (limits.memory: {limit})"
        );
    }
    for remark in &findings.remarks {
        let _ = writeln!(out, "    ! {}", clean_line(remark, MAX_REASON_BYTES));
    }
    let metadata = metadata_lines(&findings.manifest);
    if !metadata.is_empty() {
        let _ = write!(out, "\nMetadata, as its author states it:\n{metadata}");
    }
    let grant_file = clean_line(&grant::file_name(name), MAX_REASON_BYTES);
    if let Some(proposal) = &findings.manifest.proposed_grant {
        out.push_str(&proposal_text(proposal, &grant_file));
    }
    write_imports(&mut out, findings);
    match findings.grant_template() {
        _ if findings.manifest.proposed_grant.is_some() => {}
        Some(template) => {
            let _ = writeln!(out, "\nGrant, to copy into {grant_file}:");
            for words in template.lines() {
                let _ = writeln!(out, "    {words}");
            }
        }
        None => out.push_str("\nGrant: it needs none.\n"),
    }
    write_offers(&mut out, &findings.contents, &findings.approvals);
    if let Some(wit) = &about.wit {
        let _ = writeln!(out, "\nTypes:");
        for words in clean(wit).lines() {
            let _ = writeln!(out, "{}", format!("    {words}").trim_end());
        }
    }
    out
}

/// Appends the imports of the plugin, those of its toolchain separately.
fn write_imports(out: &mut String, findings: &CheckFindings) {
    let (own, toolchain) = findings.split_imports();
    let _ = writeln!(out, "\nImports:");
    for words in &own {
        let _ = writeln!(out, "    {words}");
    }
    if own.is_empty() {
        let _ = match findings.toolchain {
            Some(_) => writeln!(out, "    only those of its toolchain"),
            None => writeln!(
                out,
                "    none: it needs nothing, and can use only its own memory"
            ),
        };
    }
    if let (Some(known), false) = (findings.toolchain, toolchain.is_empty()) {
        let _ = writeln!(
            out,
            "\nImported by {}, used only if the plugin does so:",
            known.name()
        );
        for words in &toolchain {
            let _ = writeln!(out, "    {words}");
        }
    }
}

fn findings_json(findings: &CheckFindings) -> Value {
    let about = &findings.about;
    let tool = |tool: &ValidDefinition| {
        json!({
            "name": tool.tool.name,
            "title": tool.tool.title,
            "description": tool.tool.description,
            "inputSchema": tool.input.value(),
            "outputSchema": tool.output.as_ref().map(|schema| schema.value().clone()),
            "require_approval": findings.approvals.get(&tool.tool.name),
        })
    };
    let ComponentContents {
        tools,
        prompts,
        resources,
        templates,
        completes,
        ..
    } = &findings.contents;
    json!({
        "sha256": findings.digest.to_string(),
        "size": findings.size,
        "kind": about.kind,
        "form": findings.form,
        "madeWith": about.made_with,
        "uses": about.uses,
        "memory": findings.memory,
        "compileMs": findings.compile_ms,
        "code": about.code,
        "imports": about.imports,
        "exports": about.exports,
        "metadata": findings.manifest.texts().collect::<BTreeMap<_, _>>(),
        "proposedGrant": findings.manifest.proposed_grant.as_ref().map(ProposedGrant::to_toml),
        "canUse": import_uses(about.imports.iter()),
        "toolchainImports": findings.split_imports().1,
        "grant": findings.grant_template(),
        "remarks": findings.remarks,
        "tools": tools.iter().map(|checked| tool(checked)).collect::<Vec<_>>(),
        "prompts": prompts.iter().map(|entry| prompt_json(&entry.prompt)).collect::<Vec<_>>(),
        "resources": resources.iter().map(|entry| resource_json(&entry.resource)).collect::<Vec<_>>(),
        "resourceTemplates": templates.iter().map(|entry| template_json(&entry.resource)).collect::<Vec<_>>(),
        "completes": completes,
        "wit": about.wit,
    })
}
