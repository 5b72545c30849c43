//! Loads a plugin in stages, each with its own type: the files that the scan found
//! ([`PluginFiles`](crate::plugin_folder::PluginFiles)), what was read of them
//! ([`ReadPlugin`](self::plugin_reader::ReadPlugin)), the compiled and described component
//! ([`LoadedComponent`](crate::loaded_component::LoadedComponent)), the component with a grant that
//! is valid for it ([`GrantedComponent`](self::granted_component::GrantedComponent)), and the
//! plugin that can be published ([`LoadOutcome`](crate::load_result::LoadOutcome)).

pub(crate) mod blocking_work;
pub(crate) mod check_queue;
pub(crate) mod code_recovery;
pub(crate) mod compile_queue;
pub(crate) mod component_builder;
pub(crate) mod component_code;
pub(crate) mod component_compiler;
pub(crate) mod component_lookup;
pub(crate) mod component_registry;
pub(crate) mod failed_step;
pub(crate) mod grant_application;
pub(crate) mod grant_file;
pub(crate) mod granted_component;
pub(crate) mod load_environment;
pub(crate) mod load_stages;
pub(crate) mod mount_check;
pub(crate) mod plain_file_reader;
pub(crate) mod plugin_loader;
pub(crate) mod plugin_reader;
pub(crate) mod refusal_cache;
pub(crate) mod rights_narrowing;
pub(crate) mod secret_fetcher;
pub(crate) mod secret_program;
pub(crate) mod source_reader;
pub(crate) mod stored_component;
pub(crate) mod version_fallback;
pub(crate) mod version_update;
