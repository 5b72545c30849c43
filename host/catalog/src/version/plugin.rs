//! A loaded plugin: its immutable part. The state of its calls is stored elsewhere.

use std::sync::Arc;

use any_ascii::any_ascii_char;
use toolbay_model::{Digest, Limit, MAX_MCP_TOOL_NAME_BYTES, Prompt, Tool, is_name};
use toolbay_sandbox::PluginContext;

use crate::component::loaded_component::LoadedComponent;
use crate::definition::prompt_entry::PromptEntry;
use crate::definition::resource_entry::ResourceEntry;
use crate::definition::tool_definition::ValidDefinition;
use crate::folder::source_digests::SourceDigests;
use crate::plain::file_resource::FileResource;
use crate::plain::text_prompt::TextPrompt;
use crate::resource_uri::match_budget::MatchBudget;
use crate::rules::terms::PluginTerms;
use crate::version::plain_files::PlainFiles;

/// Maximum number of warnings about the views of a plugin.
const MAX_REMARKS: usize = 50;

/// A loaded plugin. Immutable; freed when the catalog and the last call that uses it drop it.
#[derive(Debug)]
pub struct Plugin {
    /// The file name without `.wasm`.
    pub id: String,
    /// The compiled component, shared by plugins with identical files. A plugin with only plain
    /// files has a component without code.
    pub component: Arc<LoadedComponent>,
    /// The plain files next to it.
    pub files: Arc<PlainFiles>,
    /// The grant after clamping.
    pub terms: PluginTerms,
    /// The tools, under the names that clients call.
    pub tools: Vec<NamedTool>,
    /// The component's prompts under the names that clients request, followed by those in plain
    /// files.
    pub prompts: Vec<NamedPrompt>,
    /// The component's resources under the grant, followed by those in plain files.
    pub resources: Vec<GrantedResource>,
    /// The component's resource templates under the grant.
    pub templates: Vec<Arc<ResourceEntry>>,
    /// Warnings about its views.
    pub remarks: Vec<String>,
}

/// A tool under the name that clients call. It is built once, so that publishing a snapshot copies
/// nothing.
#[derive(Clone, Debug)]
pub struct NamedTool {
    /// The tool as listed to clients, with the prefix.
    pub tool: Arc<Tool>,
    /// The definition after the operator's changes. Its name is the one within the plugin.
    pub definition: Arc<ValidDefinition>,
}

/// A prompt under the name that clients request.
#[derive(Clone, Debug)]
pub struct NamedPrompt {
    /// The prompt as listed to clients, with the prefix.
    pub prompt: Arc<Prompt>,
    /// The definition. Its name is the one within the plugin.
    pub entry: Arc<PromptEntry>,
    /// The plain file that defines it, if any.
    pub text: Option<Arc<TextPrompt>>,
}

/// A resource under the grant.
#[derive(Clone, Debug)]
pub struct GrantedResource {
    /// The definition as listed to clients.
    pub entry: Arc<ResourceEntry>,
    /// The plain file that it serves, if any.
    pub file: Option<Arc<FileResource>>,
}

impl Plugin {
    /// Builds a plugin from its loaded parts.
    pub fn new(
        id: String,
        component: Arc<LoadedComponent>,
        files: Arc<PlainFiles>,
        terms: PluginTerms,
    ) -> Self {
        let tools = build_named_tools(&id, &component, &terms);
        let prompts = build_named_prompts(&component, &files, &terms);
        let mut remarks = Vec::new();
        for named in &tools {
            let tool = &named.tool.name;
            remarks.extend(
                named
                    .definition
                    .view
                    .warnings
                    .iter()
                    .map(|why| format!("tool {tool:?}: {why}")),
            );
        }
        let grant = &terms.context.permissions.ui;
        let mut apply_grant = |entry: &Arc<ResourceEntry>| {
            let (entry, warnings) = entry.with_grant(&id, grant);
            remarks.extend(warnings);
            entry
        };
        let component_resources =
            component
                .contents
                .resources
                .iter()
                .map(|entry| GrantedResource {
                    entry: apply_grant(entry),
                    file: None,
                });
        let mut resources: Vec<GrantedResource> = component_resources.collect();
        let from_file = |file: &Arc<FileResource>| GrantedResource {
            entry: apply_grant(&file.entry),
            file: Some(Arc::clone(file)),
        };
        resources.extend(files.resources.iter().map(from_file));
        let templates = component
            .contents
            .templates
            .iter()
            .map(apply_grant)
            .collect();
        if remarks.len() > MAX_REMARKS {
            let more = remarks.len() - MAX_REMARKS;
            remarks.truncate(MAX_REMARKS);
            remarks.push(format!("{more} more warnings about its views"));
        }
        Self {
            id,
            component,
            files,
            terms,
            tools,
            prompts,
            resources,
            templates,
            remarks,
        }
    }

    /// Returns a copy of this plugin with other plain files.
    #[must_use]
    pub fn with_files(&self, files: Arc<PlainFiles>) -> Self {
        Self::new(
            self.id.clone(),
            Arc::clone(&self.component),
            files,
            self.terms.clone(),
        )
    }

    /// Returns the digest of the component; `None` if there are only plain files.
    pub fn digest(&self) -> Option<Digest> {
        self.component
            .code
            .is_some()
            .then_some(self.component.digest)
    }

    /// Returns the digests of its sources.
    pub fn source_digests(&self) -> SourceDigests {
        SourceDigests {
            component: self.digest(),
            grant: self.terms.grant_digest,
        }
    }

    /// Returns whether the component offers a resource with this URI, either listed or through a
    /// template. The plugin may report changes of such resources. Matching is charged to `budget`.
    pub fn offers_resource(&self, uri: &str, budget: &mut MatchBudget) -> bool {
        self.component.contents.can_read(uri, budget)
    }

    /// Returns the context of a call of the tool `name` (without the prefix).
    pub fn tool_context(&self, name: &str) -> &PluginContext {
        self.terms
            .tools
            .get(name)
            .map_or(&self.terms.context, |tool| &tool.context)
    }

    /// Returns whether the grant sets this limit specifically for the tool `name`.
    pub fn is_limit_of_tool(&self, name: &str, limit: Limit) -> bool {
        let key = limit.key().strip_prefix("limits.");
        self.terms
            .tools
            .get(name)
            .is_some_and(|tool| tool.limit_keys.iter().any(|set_key| Some(*set_key) == key))
    }

    /// Returns whether calls of both plugins behave the same.
    pub(crate) fn behaves_like(&self, other: &Self) -> bool {
        self.digest() == other.digest() && self.terms == other.terms && self.files == other.files
    }
}

/// Returns a component's tools under a plugin's terms.
fn build_named_tools(id: &str, component: &LoadedComponent, terms: &PluginTerms) -> Vec<NamedTool> {
    let mut tools = Vec::new();
    for definition in &component.contents.tools {
        // A command does not define its own name.
        let renamed = component
            .is_command()
            .then(|| Arc::new(definition.with_name(tool_name(id))));
        let definition = renamed.as_ref().unwrap_or(definition);
        let definition = match terms.tool_overrides.get(&definition.tool.name) {
            Some(overrides) if overrides.disabled => continue,
            Some(overrides) => Arc::new(definition.with_override(overrides)),
            None => Arc::clone(definition),
        };
        let tool = match &terms.prefix {
            Some(prefix) => {
                let name = terms.separator.join(prefix, &definition.tool.name);
                Arc::new(Tool {
                    name,
                    ..Tool::clone(&definition.tool)
                })
            }
            None => Arc::clone(&definition.tool),
        };
        tools.push(NamedTool { tool, definition });
    }
    tools
}

/// Returns the prompts of a component and of plain files under a plugin's terms.
fn build_named_prompts(
    component: &LoadedComponent,
    files: &PlainFiles,
    terms: &PluginTerms,
) -> Vec<NamedPrompt> {
    let from_component = component.contents.prompts.iter().map(|entry| (entry, None));
    let from_files = files.prompts.iter().map(|text| (&text.entry, Some(text)));
    let prompts = from_component.chain(from_files).map(|(entry, text)| {
        let prompt = match &terms.prefix {
            Some(prefix) => {
                let name = terms.separator.join(prefix, &entry.prompt.name);
                Arc::new(Prompt {
                    name,
                    ..Prompt::clone(&entry.prompt)
                })
            }
            None => Arc::clone(&entry.prompt),
        };
        NamedPrompt {
            prompt,
            entry: Arc::clone(entry),
            text: text.cloned(),
        }
    });
    prompts.collect()
}

/// Derives a tool name from a file name. Letters are transliterated to Latin, and each other
/// character that tool names cannot contain becomes `_`.
pub fn tool_name(id: &str) -> String {
    let is_allowed = |c: char| c.is_ascii() && is_name(c.encode_utf8(&mut [0; 4]));
    let latin = id.chars().map(|c| {
        if c.is_ascii() {
            c.to_string()
        } else {
            any_ascii_char(c).to_owned()
        }
    });
    let latin = latin.map(|letters| {
        if letters.is_empty() {
            "_".to_owned()
        } else {
            letters
        }
    });
    let latin: String = latin.collect();
    latin
        .chars()
        .map(|c| if is_allowed(c) { c } else { '_' })
        .take(MAX_MCP_TOOL_NAME_BYTES)
        .collect()
}
