//! An immutable snapshot of everything that the server offers.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use toolbay_model::{ListedResource, Prompt, Skill, Tool};

use crate::definition::fingerprint::{DefinitionFingerprint, list_digest};
use crate::publish::report::PluginReport;
use crate::publish::skill_tree::{is_skill_visible, page_of_folder};
use crate::resource_uri::match_budget::{MatchBudget, MatchBudgetExhausted};
use crate::resource_uri::uri_matcher::UriMatcher;
use crate::resource_uri::uri_spelling::UriSpellings;
use crate::version::offer::{PromptOffer, ResourceOffer, SkillOffer, ToolOffer};

/// Everything that the server offers at one moment. Immutable once published.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Number of the snapshot. It increases by one with each publication.
    pub generation: u64,
    /// Number of the lists. It increases only if the result of a list method changes.
    pub list_generation: u64,
    /// True if every plugin that existed at startup has been loaded or refused.
    pub complete: bool,
    /// True if the first plugins by id, as many as the instructions for clients describe, have been
    /// loaded or refused. Always true if `complete` is.
    pub first_loaded: bool,
    /// The tools, by the name that clients call.
    pub tools: BTreeMap<String, Arc<ToolOffer>>,
    /// The prompts, by the name that clients request.
    pub prompts: BTreeMap<String, Arc<PromptOffer>>,
    /// The resources, by URI.
    pub resources: BTreeMap<String, Arc<ResourceOffer>>,
    /// The resource templates, by template text.
    pub templates: BTreeMap<String, Arc<ResourceOffer>>,
    /// The skills, by the URI of their `SKILL.md`.
    pub skills: BTreeMap<String, Arc<SkillOffer>>,
    /// The files of skills, by URI. Each `SKILL.md` that makes a folder a skill is also among the
    /// resources. The other files are not listed, but can be read.
    pub skill_files: BTreeMap<String, Arc<ResourceOffer>>,
    /// The status of every plugin file, by plugin id.
    pub plugins: BTreeMap<String, PluginReport>,
    /// Files that are not plugins but were probably meant to be, by name, with the reason.
    pub notes: BTreeMap<String, String>,
    /// The resource templates in the order in which a URI is matched against them: by plugin id,
    /// then by template text.
    pub match_order: Vec<Arc<ResourceOffer>>,
    /// Finds the resource templates that a URI matches.
    pub matcher: UriMatcher,
    /// Index of URIs that are not in normal form.
    pub spellings: UriSpellings,
}

impl Snapshot {
    /// Returns up to `limit` `visible` tools whose names come after `after`, and whether there are
    /// more.
    pub fn page_of_tools(
        &self,
        after: Option<&str>,
        limit: usize,
        visible: impl Fn(&str) -> bool,
    ) -> (Vec<Arc<Tool>>, bool) {
        page(&self.tools, after, limit, visible, |offer| &offer.tool)
    }

    /// Like [`Self::page_of_tools`], for the prompts.
    pub fn page_of_prompts(
        &self,
        after: Option<&str>,
        limit: usize,
        visible: impl Fn(&str) -> bool,
    ) -> (Vec<Arc<Prompt>>, bool) {
        page(&self.prompts, after, limit, visible, |offer| &offer.prompt)
    }

    /// Like [`Self::page_of_tools`], for the resources, by URI.
    pub fn page_of_resources(
        &self,
        after: Option<&str>,
        limit: usize,
        visible: impl Fn(&str) -> bool,
    ) -> (Vec<Arc<ListedResource>>, bool) {
        page(&self.resources, after, limit, visible, |offer| {
            offer.resource()
        })
    }

    /// Like [`Self::page_of_tools`], for the resource templates, by template text.
    pub fn page_of_templates(
        &self,
        after: Option<&str>,
        limit: usize,
        visible: impl Fn(&str) -> bool,
    ) -> (Vec<Arc<ListedResource>>, bool) {
        page(&self.templates, after, limit, visible, |offer| {
            offer.resource()
        })
    }

    /// Like [`Self::page_of_tools`], for the skills, by the URI of their `SKILL.md`. A skill is
    /// visible if all of its files are.
    pub fn page_of_skills(
        &self,
        after: Option<&str>,
        limit: usize,
        visible: impl Fn(&str) -> bool,
    ) -> (Vec<Arc<Skill>>, bool) {
        page(
            &self.skills,
            after,
            limit,
            |uri| is_skill_visible(&self.skill_files, uri, &visible),
            |offer| &offer.skill,
        )
    }

    /// Returns the skill whose `SKILL.md` has this URI, if all of its files are `visible`.
    pub fn skill(&self, uri: &str, visible: impl Fn(&str) -> bool) -> Option<Arc<Skill>> {
        let offer = self
            .skills
            .get(uri)
            .filter(|_| is_skill_visible(&self.skill_files, uri, &visible))?;
        Some(Arc::clone(&offer.skill))
    }

    /// Returns a page of the visible content directly in the folder `uri` of a skill: files, and
    /// folders that contain visible files. `None` if there is no such folder.
    pub fn page_of_folder(
        &self,
        uri: &str,
        after: Option<&str>,
        limit: usize,
        visible: impl Fn(&str) -> bool,
    ) -> Option<(Vec<Arc<ListedResource>>, bool)> {
        page_of_folder(&self.skill_files, uri, after, limit, visible)
    }

    /// Returns the resource to read at `uri`: the resource or the file of a skill with this URI, or
    /// else the first template that it matches, ordered by plugin id, then by template text.
    /// Matching draws on `budget`.
    ///
    /// # Errors
    ///
    /// Returns an error if the budget is exhausted.
    pub fn find_resource(
        &self,
        uri: &str,
        budget: &mut MatchBudget,
    ) -> Result<Option<&Arc<ResourceOffer>>, MatchBudgetExhausted> {
        if let Some(known) = self
            .resources
            .get(uri)
            .or_else(|| self.skill_files.get(uri))
        {
            return Ok(Some(known));
        }
        let template = |number: usize| self.match_order.get(number)?.entry.template.as_deref();
        let found = self.matcher.find_first(uri, template, budget)?;
        Ok(found.and_then(|number| self.match_order.get(number)))
    }

    /// Returns an equivalent spelling under which `uri` may be offered, if it is a different one
    /// (RFC 3986, section 6.2.2).
    pub fn find_spelling(&self, uri: &str) -> Option<String> {
        self.spellings.find(uri, |uri| {
            self.resources.contains_key(uri) || self.skill_files.contains_key(uri)
        })
    }

    /// Returns a digest of the `visible` tools. If two digests are equal, so are the results of
    /// `tools/list`.
    pub fn digest_of_tools(&self, visible: impl Fn(&str) -> bool) -> u64 {
        list_digest(self.tool_fingerprints().filter(|(name, _)| visible(name)))
    }

    /// Like [`Self::digest_of_tools`], for the prompts.
    pub fn digest_of_prompts(&self, visible: impl Fn(&str) -> bool) -> u64 {
        list_digest(self.prompt_fingerprints().filter(|(name, _)| visible(name)))
    }

    /// Like [`Self::digest_of_tools`], for the resources, the resource templates and the skills
    /// with all of their files.
    pub fn digest_of_resources(&self, visible: impl Fn(&str) -> bool) -> u64 {
        // A resource and a template cannot be confused: only a template contains braces. The
        // fingerprints of skills are separate.
        let resources = resource_fingerprints(&self.resources)
            .chain(resource_fingerprints(&self.templates))
            .filter(|(uri, _)| visible(uri));
        let skills = self
            .skill_fingerprints()
            .filter(|(uri, _)| is_skill_visible(&self.skill_files, uri, &visible));
        list_digest(resources.chain(skills))
    }

    /// Returns whether all lists are the same in both snapshots.
    pub(crate) fn has_same_lists(&self, other: &Self) -> bool {
        self.tool_fingerprints().eq(other.tool_fingerprints())
            && self.prompt_fingerprints().eq(other.prompt_fingerprints())
            && resource_fingerprints(&self.resources).eq(resource_fingerprints(&other.resources))
            && resource_fingerprints(&self.templates).eq(resource_fingerprints(&other.templates))
            && self.skill_fingerprints().eq(other.skill_fingerprints())
    }

    /// Returns the URIs of the files that changed between `previous` and this snapshot, or that
    /// exist in only one of them.
    pub(crate) fn updated_files_since(&self, previous: &Self) -> Vec<String> {
        fn files(snapshot: &Snapshot) -> impl Iterator<Item = (&String, &Arc<ResourceOffer>)> {
            let listed = snapshot
                .resources
                .iter()
                .filter(|(uri, _)| !snapshot.skill_files.contains_key(*uri));
            listed
                .chain(&snapshot.skill_files)
                .filter(|(_, offer)| offer.file.is_some())
        }
        let file = |snapshot: &Self, uri: &str| {
            let offer = snapshot
                .resources
                .get(uri)
                .or_else(|| snapshot.skill_files.get(uri));
            offer.and_then(|offer| offer.file.clone())
        };
        let changed = |(uri, offer): &(&String, &Arc<ResourceOffer>)| {
            let before = file(previous, uri);
            !matches!((&before, &offer.file), (Some(one), Some(two)) if Arc::ptr_eq(one, two))
                && before != offer.file
        };
        let gone = |(uri, _): &(&String, &Arc<ResourceOffer>)| file(self, uri).is_none();
        let uris = files(self)
            .filter(changed)
            .chain(files(previous).filter(gone));
        uris.map(|(uri, _)| uri.clone()).collect()
    }

    /// Returns the names of all tools, with the fingerprints of their definitions.
    fn tool_fingerprints(&self) -> impl Iterator<Item = (&str, DefinitionFingerprint)> {
        self.tools
            .iter()
            .map(|(name, offer)| (name.as_str(), offer.definition.fingerprint))
    }

    /// Returns the names of all prompts, with the fingerprints of their definitions.
    fn prompt_fingerprints(&self) -> impl Iterator<Item = (&str, DefinitionFingerprint)> {
        self.prompts
            .iter()
            .map(|(name, offer)| (name.as_str(), offer.entry.fingerprint))
    }

    /// Returns the URIs of all skills, with fingerprints that change if any of their files does.
    fn skill_fingerprints(&self) -> impl Iterator<Item = (&str, DefinitionFingerprint)> {
        self.skills
            .iter()
            .map(|(uri, offer)| (uri.as_str(), offer.fingerprint))
    }
}

/// Returns the URIs of resources or templates, with the fingerprints of their definitions.
fn resource_fingerprints(
    offers: &BTreeMap<String, Arc<ResourceOffer>>,
) -> impl Iterator<Item = (&str, DefinitionFingerprint)> {
    offers
        .iter()
        .map(|(uri, offer)| (uri.as_str(), offer.entry.fingerprint))
}

/// Returns up to `limit` `visible` items whose names come after `after`, and whether there are
/// more.
fn page<O, T>(
    offers: &BTreeMap<String, Arc<O>>,
    after: Option<&str>,
    limit: usize,
    visible: impl Fn(&str) -> bool,
    item: impl Fn(&O) -> &Arc<T>,
) -> (Vec<Arc<T>>, bool) {
    let start = after.map_or(Bound::Unbounded, Bound::Excluded);
    let offers = offers.range::<str, _>((start, Bound::Unbounded));
    let mut items = offers
        .filter(|(name, _)| visible(name))
        .map(|(_, offer)| Arc::clone(item(offer)));
    let page = items.by_ref().take(limit).collect();
    (page, items.next().is_some())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::rules::grant::ToolOverride;
    use crate::version::offer::tests::offer;

    /// Returns a snapshot with tools of these names.
    pub(crate) fn snapshot(names: &[&str]) -> Snapshot {
        let tools = names
            .iter()
            .map(|name| ((*name).to_owned(), Arc::new(offer(name))))
            .collect();
        Snapshot {
            tools,
            ..Snapshot::default()
        }
    }

    #[test]
    fn the_digest_is_of_what_is_visible() {
        let before = snapshot(&["a", "b"]);
        let after = snapshot(&["a", "b", "c"]);
        assert_ne!(
            before.digest_of_tools(|_| true),
            after.digest_of_tools(|_| true)
        );
        assert_eq!(
            before.digest_of_tools(|name| name < "c"),
            after.digest_of_tools(|name| name < "c")
        );
        assert_eq!(
            before.digest_of_tools(|_| true),
            snapshot(&["a", "b"]).digest_of_tools(|_| true),
            "loaded again"
        );
        // Same names, different description.
        let mut changed = snapshot(&["a"]);
        let shown = ToolOverride {
            description: Some("Does it.".into()),
            ..ToolOverride::default()
        };
        let offer = Arc::clone(&changed.tools["a"]);
        let definition = Arc::new(offer.definition.with_override(&shown));
        let offer = ToolOffer {
            tool: Arc::clone(&definition.tool),
            definition,
            plugin: Arc::clone(&offer.plugin),
        };
        changed.tools.insert("a".into(), Arc::new(offer));
        assert_ne!(
            changed.digest_of_tools(|_| true),
            snapshot(&["a"]).digest_of_tools(|_| true)
        );
    }

    #[test]
    fn pages_go_by_name_so_that_a_reload_between_them_skips_nothing() {
        let names = |tools: Vec<Arc<Tool>>| {
            tools
                .iter()
                .map(|tool| tool.name.clone())
                .collect::<Vec<_>>()
        };
        let before = snapshot(&["b", "d", "f"]);
        let (page, more) = before.page_of_tools(None, 2, |_| true);
        assert_eq!((names(page), more), (vec!["b".into(), "d".into()], true));
        // The tool that the cursor names was removed, and two were added.
        let after = snapshot(&["a", "e", "f"]);
        let (page, more) = after.page_of_tools(Some("d"), 2, |_| true);
        assert_eq!((names(page), more), (vec!["e".into(), "f".into()], false));
        // Tools that are not visible do not count towards the page size.
        let (page, more) = after.page_of_tools(None, 2, |name| name != "e");
        assert_eq!((names(page), more), (vec!["a".into(), "f".into()], false));
    }
}
