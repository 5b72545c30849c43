//! Loads a plugin in stages, each with its own type: the files that the scan found
//! ([`PluginFiles`](crate::folder::plugin_folder::PluginFiles)), their content
//! ([`PluginInput`](self::plugin_reader::PluginInput)), the compiled and described component
//! ([`LoadedComponent`](crate::component::loaded_component::LoadedComponent)), the component with a
//! grant that is valid for it ([`GrantedComponent`](self::granted_component::GrantedComponent)),
//! and the plugin that can be published ([`LoadOutcome`](self::load_result::LoadOutcome)).

pub(crate) mod component_builder;
pub(crate) mod grant_application;
pub(crate) mod grant_file;
pub(crate) mod granted_component;
pub(crate) mod load_result;
pub(crate) mod load_stages;
pub(crate) mod mount_check;
pub(crate) mod plain_file_reader;
pub(crate) mod plugin_loader;
pub(crate) mod plugin_reader;
pub(crate) mod rights_narrowing;
pub(crate) mod secret_fetcher;
pub(crate) mod secret_program;
pub(crate) mod version_check;
pub(crate) mod version_fallback;
pub(crate) mod version_update;
