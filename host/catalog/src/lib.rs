//! Turns a folder of plugins and plain files into immutable snapshots of the tools, prompts,
//! resources and skills that they offer.
//!
//! Data flows in one direction. The [`FolderWatcher`] reports that something in the folder changed,
//! the [`FolderReloader`] determines what, the [`PluginLoader`] turns a file and the grant next to
//! it into a [`Plugin`], and the reloader publishes a new [`Snapshot`] through the [`Catalog`]. A
//! published snapshot never changes. This crate does not depend on the protocol, and has no record
//! of calls, callers or results. Grants are files that only the operator writes; this crate only
//! reads them.

mod component;
mod definition;
#[cfg(test)]
mod fail_closed;
mod folder;
mod load;
mod plain;
mod publish;
mod resource_uri;
mod rules;
mod skill;
mod version;

pub use self::component::component_code::ComponentCode;
pub use self::component::loaded_component::LoadedComponent;
pub use self::definition::component_contents::ComponentContents;
pub use self::definition::prompt_entry::PromptEntry;
pub use self::definition::resource_entry::ResourceEntry;
pub use self::definition::tool_definition::ValidDefinition;
pub use self::definition::view_link::META_MEMBERS as VIEW_LINKS;
pub use self::folder::approval_file::{ApprovalFile, Approvals, ApprovedVersion};
pub use self::folder::description_limits::DescribeLimits;
pub use self::folder::file_reader::read_source;
pub use self::folder::folder_lock::{LockMode, read_lock_file};
pub use self::folder::load_error::{HeldVersion, LoadError, describe_load_error};
pub use self::folder::plugin_folder::{check_plugin_folder, component_path};
pub use self::folder::source_digests::SourceDigests;
pub use self::folder::version_approver::VersionApprover;
pub use self::folder::watcher::{FolderChanges, FolderWatcher};
pub use self::load::grant_file::read_grant;
pub use self::load::load_result::LoadOutcome;
pub use self::load::mount_check::check_grant_mounts;
pub use self::load::plugin_loader::PluginLoader;
pub use self::load::secret_program::names_program;
pub use self::plain::file_resource::FileResource;
pub use self::plain::text_prompt::TextPrompt;
pub use self::publish::assemble::{PluginState, assemble};
pub use self::publish::catalog::{Catalog, CatalogPublisher, PublishListener, channel};
pub use self::publish::name_compatibility::name_notes;
pub use self::publish::reloader::FolderReloader;
pub use self::publish::report::{GrantReport, LimitOverrides, PluginFileStatus, PluginReport};
pub use self::publish::snapshot::Snapshot;
pub use self::publish::version_history::{ReplacedGrant, VersionHistory};
pub use self::resource_uri::match_budget::{MatchBudget, MatchBudgetExhausted};
pub use self::resource_uri::uri_matcher::UriMatcher;
pub use self::resource_uri::uri_template::UriTemplate;
pub use self::rules::approval::{
    ApprovalPolicy, ApprovalSetting, Approver, RequiredApproval, ToolApprovals,
};
pub use self::rules::budget::{BudgetScope, GrantBudget};
pub use self::rules::grant::{AnnotationOverride, Grant, ToolOverride};
pub use self::rules::load_policy::{LiveRules, LoadPolicy};
pub use self::rules::mount_policy::{GuardedPath, MountPlan};
pub use self::rules::terms::{PluginTerms, ToolTerms};
pub use self::rules::tool_pattern::ToolPattern;
pub use self::rules::writable_paths::WritablePaths;
pub use self::skill::skill_folder::SkillFolder;
pub use self::version::offer::{PromptOffer, ResourceOffer, SkillOffer, ToolOffer};
pub use self::version::plain_files::PlainFiles;
pub use self::version::plugin::{GrantedResource, NamedPrompt, NamedTool, Plugin, tool_name};
pub use self::version::version_pin::pin_plugin;
