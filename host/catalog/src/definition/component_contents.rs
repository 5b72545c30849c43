//! Contents of a component: the tools, prompts and resources that it offers, after validation.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use toolbay_model::ComponentDescription;
use toolbay_model::text::{clean_line, format_thousands};
use toolbay_policy::UiAccess;

use crate::definition::prompt_entry::PromptEntry;
use crate::definition::resource_entry::ResourceEntry;
use crate::definition::tool_definition::{self, ValidDefinition};
use crate::resource_uri::match_budget::MatchBudget;
use crate::resource_uri::uri_matcher::UriMatcher;

/// Maximum length of a URI in a warning, in bytes.
const MAX_SHOWN_URI_BYTES: usize = 200;

/// Maximum length of a description that no client truncates, in characters.
const MAX_DESCRIPTION_CHARS: usize = 2_048;

/// Maximum number of omitted tools of an MCP server that have individual remarks.
const MAX_LEFT_OUT_REMARKS: usize = 20;

/// Maximum length of the name of an omitted tool, and of the reason, in bytes.
const MAX_LEFT_OUT_BYTES: usize = 500;

/// Maximum number of notes about one component.
const MAX_NOTES: usize = 40;

/// Tools, prompts and resources of a component, validated and sorted.
#[derive(Clone, Debug, Default)]
pub struct ComponentContents {
    /// Its tools, sorted by name.
    pub tools: Vec<Arc<ValidDefinition>>,
    /// Its prompts, sorted by name.
    pub prompts: Vec<Arc<PromptEntry>>,
    /// Its resources, sorted by URI.
    pub resources: Vec<Arc<ResourceEntry>>,
    /// Its resource templates, sorted as text.
    pub templates: Vec<Arc<ResourceEntry>>,
    /// True if the component completes arguments of its prompts and templates.
    pub completes: bool,
    /// Tools of an MCP server that are not offered because their definitions are invalid, each with
    /// the reason.
    pub(crate) left_out: BTreeMap<String, String>,
    /// Finds the template that a URI matches.
    matcher: UriMatcher,
}

impl ComponentContents {
    /// Validates the description of a component.
    ///
    /// # Errors
    ///
    /// Returns a description of the first mistake. One invalid definition refuses the whole plugin,
    /// because a partial plugin would be surprising.
    pub fn validate(description: ComponentDescription) -> Result<Self, String> {
        Self::build(description, false)
    }

    /// Like [`ComponentContents::validate`], but leaves out the invalid tools of an MCP server,
    /// with a remark on each, as long as it offers something else. Such a server was not written
    /// for this host, and other MCP clients are equally lenient.
    ///
    /// # Errors
    ///
    /// As [`ComponentContents::validate`].
    pub fn validate_or_leave_out(description: &mut ComponentDescription) -> Result<Self, String> {
        let refused = match Self::validate(description.clone()) {
            Ok(contents) => return Ok(contents),
            Err(why) if description.manner.is_none() => return Err(why),
            Err(why) => why,
        };
        let invalid = tool_definition::take_invalid(&mut description.tools);
        let ComponentDescription {
            tools,
            prompts,
            resources,
            templates,
            remarks,
            left_out,
            ..
        } = description;
        if invalid.is_empty()
            || (tools.is_empty()
                && prompts.is_empty()
                && resources.is_empty()
                && templates.is_empty())
        {
            return Err(refused);
        }
        let more = invalid.len().saturating_sub(MAX_LEFT_OUT_REMARKS);
        for (number, (name, why)) in invalid.into_iter().enumerate() {
            let why = clean_line(&why, MAX_LEFT_OUT_BYTES);
            if number < MAX_LEFT_OUT_REMARKS {
                remarks.push(format!("left out: {why}"));
            }
            left_out.insert(clean_line(&name, MAX_LEFT_OUT_BYTES), why);
        }
        if more > 0 {
            remarks.push(format!(
                "left out: {} more invalid tools",
                format_thousands(more as u64)
            ));
        }
        Self::validate(description.clone())
    }

    /// Like [`ComponentContents::validate`], for a description that was validated before it was
    /// stored. Schemas are compiled on first use.
    ///
    /// # Errors
    ///
    /// As [`ComponentContents::validate`].
    pub(crate) fn from_stored(description: ComponentDescription) -> Result<Self, String> {
        Self::build(description, true)
    }

    fn build(description: ComponentDescription, is_validated: bool) -> Result<Self, String> {
        let ComponentDescription {
            tools,
            prompts,
            resources,
            templates,
            completes,
            manner: _,
            remarks: _,
            left_out,
        } = description;
        let prompts = prompts.into_iter().map(PromptEntry::new);
        let prompts = sort_by_key(prompts, |entry| &entry.prompt.name, "prompts are named")?;
        let resources = resources.into_iter().map(ResourceEntry::from_resource);
        let resources = sort_by_key(
            resources,
            |entry| &entry.resource.uri,
            "resources have the URI",
        )?;
        let templates = templates.into_iter().map(ResourceEntry::from_template);
        let templates = sort_by_key(
            templates,
            |entry| &entry.resource.uri,
            "resource templates are",
        )?;
        let mut names = HashSet::new();
        if let Some(duplicate) = templates
            .iter()
            .find(|template| !names.insert(&template.resource.name))
        {
            return Err(format!(
                "two of its resource templates are named {:?}",
                duplicate.resource.name
            ));
        }
        let tools = tool_definition::validate_tools(tools, is_validated)?;
        let matcher = UriMatcher::new(
            templates
                .iter()
                .filter_map(|entry| entry.template.as_deref()),
        );
        Ok(Self {
            tools,
            prompts,
            resources,
            templates,
            completes,
            left_out,
            matcher,
        })
    }

    /// Returns the access that all its views request together.
    pub fn requested_view_access(&self) -> UiAccess {
        let entries = self.resources.iter().chain(&self.templates);
        let mut total = UiAccess::default();
        for access in entries.filter_map(|entry| entry.requested_access()) {
            total.merge(access);
        }
        total
    }

    /// Returns warnings about its views that do not depend on a grant.
    pub fn view_remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        for ValidDefinition { tool, view, .. } in self.tools.iter().map(|tool| &**tool) {
            let name = &tool.name;
            remarks.extend(
                view.warnings
                    .iter()
                    .map(|why| format!("tool {name:?}: {why}")),
            );
            if let Some(uri) = view.uri.as_deref().filter(|uri| !self.lists_resource(uri)) {
                let uri = clean_line(uri, MAX_SHOWN_URI_BYTES);
                remarks.push(format!(
                    "tool {name:?}: the plugin lists no resource {uri:?} for its view (a file next to the plugin may provide it)"
                ));
            }
        }
        for entry in self.resources.iter().chain(&self.templates) {
            let uri = clean_line(&entry.resource.uri, MAX_SHOWN_URI_BYTES);
            remarks.extend(
                entry
                    .warnings()
                    .iter()
                    .map(|why| format!("view {uri:?}: {why}")),
            );
        }
        remarks
    }

    /// Returns notes for its author about definitions that some clients refuse or truncate.
    pub fn compatibility_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let length_note = |subject: String, description: Option<&String>| {
            let length = description.map_or(0, |text| text.chars().count());
            let [shown_length, max_length] =
                [length, MAX_DESCRIPTION_CHARS].map(|n| format_thousands(n as u64));
            (length > MAX_DESCRIPTION_CHARS).then(|| {
                format!("{subject}: the description has {shown_length} characters, and clients cut it after {max_length}")
            })
        };
        for ValidDefinition {
            tool,
            input,
            output,
            ..
        } in self.tools.iter().map(|tool| &**tool)
        {
            let name = &tool.name;
            notes.extend(length_note(
                format!("tool {name:?}"),
                tool.description.as_ref(),
            ));
            let of_output = output
                .iter()
                .flat_map(|schema| toolbay_schema::compatibility_notes(schema.value(), true));
            let of_schemas = toolbay_schema::compatibility_notes(input.value(), false)
                .into_iter()
                .chain(of_output);
            notes.extend(of_schemas.map(|note| format!("tool {name:?}: {note}")));
        }
        for PromptEntry { prompt, .. } in self.prompts.iter().map(|entry| &**entry) {
            notes.extend(length_note(
                format!("prompt {:?}", prompt.name),
                prompt.description.as_ref(),
            ));
        }
        for entry in self.resources.iter().chain(&self.templates) {
            let subject = format!(
                "resource {:?}",
                clean_line(&entry.resource.uri, MAX_SHOWN_URI_BYTES)
            );
            notes.extend(length_note(subject, entry.resource.description.as_ref()));
        }
        if notes.len() > MAX_NOTES {
            let more = notes.split_off(MAX_NOTES).len();
            notes.push(format!("{more} more notes of this kind"));
        }
        notes
    }

    /// Returns whether its list has a resource with this URI.
    fn lists_resource(&self, uri: &str) -> bool {
        self.resources
            .binary_search_by(|entry| entry.resource.uri.as_str().cmp(uri))
            .is_ok()
    }

    /// Returns whether it offers a resource with this URI, listed or through a template. Returns
    /// `false` if the budget is exhausted before a template matches.
    pub fn can_read(&self, uri: &str, budget: &mut MatchBudget) -> bool {
        let template = |number: usize| self.templates.get(number)?.template.as_deref();
        self.lists_resource(uri)
            || self
                .matcher
                .find_first(uri, template, budget)
                .is_ok_and(|found| found.is_some())
    }
}

/// Sorts the items by key. Returns the error of an invalid item, or a message that contains
/// `subject` if two items have the same key.
fn sort_by_key<T>(
    items: impl Iterator<Item = Result<T, String>>,
    key: fn(&T) -> &String,
    subject: &str,
) -> Result<Vec<Arc<T>>, String> {
    let mut sorted = BTreeMap::new();
    for item in items {
        let item = item?;
        if let Some(duplicate) = sorted.insert(key(&item).clone(), Arc::new(item)) {
            return Err(format!("two of its {subject} {:?}", key(&duplicate)));
        }
    }
    Ok(sorted.into_values().collect())
}

#[cfg(test)]
mod tests;
