//! Turns a folder of plugins and plain files into immutable snapshots of the tools, prompts,
//! resources and skills that they offer.
//!
//! Data flows in one direction. The [`FolderWatcher`] reports that something in the folder changed,
//! the [`FolderReloader`] determines what, the [`PluginLoader`] turns a file and the grant next to
//! it into a [`Plugin`], and the reloader publishes a new [`Snapshot`] through the [`Catalog`]. A
//! published snapshot never changes. This crate does not depend on the protocol, and has no record
//! of calls, callers or results. Grants are files that only the operator writes; this crate only
//! reads them.

mod approval;
mod assemble;
mod catalog;
mod component_contents;
mod definition_meta;
mod description_limits;
#[cfg(test)]
mod fail_closed;
mod file_reader;
mod file_resource;
mod file_stamp;
mod fingerprint;
mod front_matter;
mod grant;
mod grant_age;
mod grant_check;
mod grant_clamping;
mod grant_intersection;
mod input_schema;
mod known_files;
mod load;
mod load_error;
mod load_policy;
mod load_result;
mod loaded_component;
mod match_budget;
mod media_type;
mod mount_policy;
mod name_compatibility;
mod name_separator;
mod offer;
mod openat_beneath;
mod param_headers;
mod plain_file_error;
mod plain_files;
mod plain_tree;
mod plugin;
mod plugin_folder;
mod prompt_entry;
mod publish;
mod report;
mod requested_view;
mod resolved_path;
mod resource_entry;
mod skill_folder;
mod skill_front_matter;
mod skill_memory;
mod skill_tree;
mod snapshot;
mod terms;
mod text_prompt;
mod tool_definition;
mod tool_pattern;
mod uri;
mod uri_matcher;
mod uri_spelling;
mod uri_template;
mod view;
mod view_link;
mod watcher;
mod writable_paths;

pub use self::approval::{ApprovalPolicy, ApprovalSetting, ToolApprovals};
pub use self::assemble::{PluginCandidate, assemble};
pub use self::catalog::{Catalog, CatalogPublisher, PublishListener, channel};
pub use self::component_contents::ComponentContents;
pub use self::description_limits::DescriptionLimits;
pub use self::file_reader::read_source;
pub use self::file_resource::FileResource;
pub use self::grant::{AnnotationOverride, Grant, ToolOverride};
pub use self::load::component_code::ComponentCode;
pub use self::load::grant_file::read_grant;
pub use self::load::plugin_loader::PluginLoader;
pub use self::load::secret_program::names_program;
pub use self::load_error::{LoadError, describe_load_error};
pub use self::load_policy::{LiveRules, LoadPolicy};
pub use self::load_result::LoadOutcome;
pub use self::loaded_component::LoadedComponent;
pub use self::match_budget::{MatchBudget, MatchBudgetExhausted};
pub use self::mount_policy::{GuardedPath, MountPlan};
pub use self::name_compatibility::name_notes;
pub use self::offer::{PromptOffer, ResourceOffer, SkillOffer, ToolOffer};
pub use self::plain_files::PlainFiles;
pub use self::plugin::{GrantedResource, NamedPrompt, NamedTool, Plugin, tool_name};
pub use self::plugin_folder::check_plugin_folder;
pub use self::prompt_entry::PromptEntry;
pub use self::publish::reloader::FolderReloader;
pub use self::report::{
    GrantReport, LimitOverrides, PluginFileStatus, PluginReport, SourceDigests,
};
pub use self::resource_entry::ResourceEntry;
pub use self::skill_folder::SkillFolder;
pub use self::snapshot::Snapshot;
pub use self::terms::{PluginTerms, ToolTerms};
pub use self::text_prompt::TextPrompt;
pub use self::tool_definition::ValidDefinition;
pub use self::tool_pattern::ToolPattern;
pub use self::uri_matcher::UriMatcher;
pub use self::uri_template::UriTemplate;
pub use self::view_link::META_MEMBERS as VIEW_LINKS;
pub use self::watcher::{FolderChanges, FolderWatcher};
pub use self::writable_paths::WritablePaths;
