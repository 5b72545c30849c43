//! Reduces the rights of a version in service before its new files are loaded.

use std::sync::Arc;

use crate::component::blocking_work::run_blocking;
use crate::component::load_environment::LoadEnvironment;
use crate::component::loaded_component::LoadedComponent;
use crate::folder::load_error::LoadError;
use crate::load::grant_application::AppliedGrant;
use crate::load::granted_component::GrantedComponent;
use crate::load::load_result::LoadOutcome;
use crate::rules::grant::Grant;
use crate::version::plugin::{Plugin, tool_name};

/// Applies the intersection of `grant` and the grant in force to the component. Returns `None` if
/// that is already in service. If it cannot be applied, the load must be retried.
pub(crate) async fn narrow_rights(
    environment: &LoadEnvironment,
    id: &str,
    component: Arc<LoadedComponent>,
    grant: Grant,
    previous: &Arc<Plugin>,
    are_rules_new: bool,
) -> Result<Option<LoadOutcome>, LoadError> {
    let environment = environment.clone();
    let id = id.to_owned();
    let previous = Arc::clone(previous);
    run_blocking("applying its grant", move || {
        let in_force = &previous.terms.source_grant;
        let own = component
            .contents
            .tools
            .iter()
            .map(|known| known.tool.name.clone());
        let tools = if component.is_command() {
            vec![tool_name(&id)]
        } else {
            own.collect()
        };
        let rules = environment.rules.current();
        let both = rules.intersection(&grant, in_force, &tools);
        let is_same =
            both.is_equivalent_to(in_force) && Arc::ptr_eq(&component, &previous.component);
        if is_same && !are_rules_new {
            return Ok(None);
        }
        let narrowed = GrantedComponent::with_rights_in_force(component, both);
        reapply_grant(&environment, id, narrowed, &previous).map(Some)
    })
    .await
}

/// Applies a grant that has no more secrets than the version in service, and reuses their values
/// and its plain files. Blocks.
pub(crate) fn reapply_grant(
    environment: &LoadEnvironment,
    id: String,
    granted: GrantedComponent,
    previous: &Plugin,
) -> Result<LoadOutcome, LoadError> {
    let applied = AppliedGrant::with_previous_secrets(environment, id, granted, previous)?;
    Ok(applied.with_files(Arc::clone(&previous.files)))
}
