//! The lists that clients see, and their load progress.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use toolbay_model::{ListedResource, Prompt, Skill, Tool};

use crate::lists::access_rights::CallerRights;
use crate::lists::list_state::CallerView;

/// The lists of the host, as callers with certain rights see them.
pub trait ListSource: Send + Sync + 'static {
    /// Returns a page of a list. `None` if it is that of a folder that does not exist or contains
    /// nothing that the rights allow.
    fn page(&self, query: &PageQuery<'_>) -> Option<ListPage>;

    /// Returns the tool with this name, including its prefix; `None` if there is none.
    fn tool(&self, name: &str) -> Option<Arc<Tool>>;

    /// Returns the skill whose `SKILL.md` has this URI; `None` if there is no such skill, or if
    /// `rights` do not allow every one of its files.
    fn skill(&self, uri: &str, rights: &CallerRights) -> Option<Arc<Skill>>;

    /// Returns the spelling of `uri` under which a resource may be listed, if it differs from
    /// `uri`. Both spellings are equivalent by their syntax.
    fn listed_uri(&self, _uri: &str) -> Option<String> {
        None
    }

    /// Returns the text for the model of a client with these rights: `instructions`. An empty text
    /// is not sent.
    fn instructions(&self, rights: &CallerRights) -> String;

    /// Returns what the host enforces for the tools that these rights allow, as a JSON object;
    /// `None` if the host does not disclose that.
    fn policy(&self, _rights: &CallerRights) -> Option<Value> {
        None
    }

    /// Returns the current view of the lists for a caller with these rights.
    fn view(&self, rights: &CallerRights) -> CallerView;

    /// Waits until the version of the lists ([`CallerView::version`]) is greater than `version`,
    /// and returns it; `None` if the lists cannot change any more.
    fn wait_for_change(&self, version: u64) -> BoxFuture<'_, Option<u64>>;
}

/// Load progress of the plugins that existed at startup.
pub trait LoadProgress: Send + Sync + 'static {
    /// Returns whether each of them has been loaded or refused.
    fn is_complete(&self) -> bool;

    /// Waits until this part is loaded.
    fn wait_for<'a>(&'a self, part: LoadedPart<'a>) -> BoxFuture<'a, ()>;
}

/// A part of the lists for which a request can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadedPart<'a> {
    /// All plugins ([`LoadProgress::is_complete`]). The host's configuration limits the wait.
    Everything,
    /// The subject of [`ListSource::instructions`].
    Instructions,
    /// A tool with this name, or all plugins. The wait is as long as that of a call.
    Tool(&'a str),
}

/// A request for a page of a list.
#[derive(Clone, Copy, Debug)]
pub struct PageQuery<'a> {
    /// The list.
    pub list: ListSelection<'a>,
    /// The name or URI of the item that precedes the page; `None` for the first page.
    pub after: Option<&'a str>,
    /// Maximum number of items.
    pub limit: usize,
    /// The rights of the caller. The page has only items that they allow.
    pub rights: &'a CallerRights,
}

/// A list that a client can page through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListSelection<'a> {
    /// The tools.
    Tools,
    /// The prompts.
    Prompts,
    /// The resources.
    Resources,
    /// The resource templates.
    Templates,
    /// The skills of which the rights allow every file.
    Skills,
    /// The files and folders directly in the folder of a skill with this URI.
    Folder(&'a str),
}

/// A page of a list.
#[derive(Clone, Debug)]
pub struct ListPage {
    /// The items, in the order of their names or URIs.
    pub items: ListItems,
    /// If set, more items follow these.
    pub has_more: bool,
    /// The view of the lists that the page is part of.
    pub view: CallerView,
}

/// The items of a page.
#[derive(Clone, Debug)]
pub enum ListItems {
    /// Tools.
    Tools(Vec<Arc<Tool>>),
    /// Prompts.
    Prompts(Vec<Arc<Prompt>>),
    /// Resources, resource templates, or files and folders.
    Resources(Vec<Arc<ListedResource>>),
    /// Skills.
    Skills(Vec<Arc<Skill>>),
}
