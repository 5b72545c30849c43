//! Turns a folder of plugins and plain files into immutable snapshots of the tools, prompts,
//! resources and skills that they offer.
//!
//! Data flows in one direction. The [`FolderWatcher`] reports that something in the folder changed,
//! the [`FolderReloader`] determines what, the [`PluginLoader`] turns a file and the grant next to
//! it into a [`Plugin`], and the reloader publishes a new [`Snapshot`] through the [`Catalog`]. A
//! published snapshot never changes. This crate does not depend on the protocol, and has no record
//! of calls, callers or results. Grants are files that only the operator writes; this crate only
//! reads them.

mod approve;
mod assemble;
mod beneath;
mod bounds;
mod catalog;
mod common_name;
mod component;
mod contents;
mod definition;
#[cfg(test)]
mod fail_closed;
mod file_resource;
mod fingerprint;
mod folder;
mod front_matter;
mod grant;
mod grant_age;
mod grant_check;
mod guard;
mod header;
mod input_schema;
mod intersection;
mod known_files;
mod load_error;
mod load_result;
mod loader;
mod media_type;
mod members;
mod offer;
mod offered;
mod place;
mod plain_files;
mod plugin;
mod prompt_entry;
mod read;
mod reloader;
mod report;
mod resource_entry;
mod rules;
mod separator;
mod shelf;
mod skill_folder;
mod skill_matter;
mod skill_tree;
mod snapshot;
mod spelling;
mod stamp;
mod steps;
mod terms;
mod text_prompt;
mod tree;
mod uri;
mod uri_matcher;
mod uri_template;
mod view;
mod view_link;
mod watcher;
mod writable;
mod wrong;

pub use self::approve::{ApprovalPolicy, ApprovalSetting, ToolApprovals};
pub use self::assemble::{PluginCandidate, assemble};
pub use self::bounds::DescriptionLimits;
pub use self::catalog::{Catalog, CatalogPublisher, PublishListener, channel};
pub use self::common_name::name_notes;
pub use self::component::LoadedComponent;
pub use self::contents::ComponentContents;
pub use self::definition::ValidDefinition;
pub use self::file_resource::FileResource;
pub use self::folder::check_plugin_folder;
pub use self::grant::{AnnotationOverride, Grant, ToolOverride};
pub use self::guard::{GuardedPath, MountPlan};
pub use self::load_error::{LoadError, describe_failed};
pub use self::load_result::LoadOutcome;
pub use self::loader::{PluginLoader, names_program, read_grant};
pub use self::offer::{PromptOffer, ResourceOffer, SkillOffer, ToolOffer};
pub use self::offered::ToolPattern;
pub use self::plain_files::PlainFiles;
pub use self::plugin::{GrantedResource, NamedPrompt, NamedTool, Plugin, tool_name};
pub use self::prompt_entry::PromptEntry;
pub use self::read::read_source;
pub use self::reloader::FolderReloader;
pub use self::report::{GrantReport, LimitOverrides, MadeFrom, PluginFileStatus, PluginReport};
pub use self::resource_entry::ResourceEntry;
pub use self::rules::{LiveRules, LoadPolicy};
pub use self::skill_folder::SkillFolder;
pub use self::snapshot::Snapshot;
pub use self::steps::{MatchBudget, MatchBudgetExhausted};
pub use self::terms::{PluginTerms, ToolTerms};
pub use self::text_prompt::TextPrompt;
pub use self::uri_matcher::UriMatcher;
pub use self::uri_template::UriTemplate;
pub use self::view_link::MEMBERS as VIEW_LINKS;
pub use self::watcher::{FolderChanges, FolderWatcher};
pub use self::writable::WritablePaths;
