//! Checks that a grant is valid for a component.

use std::sync::Arc;

use toolbay_policy::Permissions;

use crate::component::blocking_work::run_blocking;
use crate::component::loaded_component::LoadedComponent;
use crate::definition::component_contents::ComponentContents;
use crate::folder::load_error::LoadError;
use crate::rules::grant::Grant;

/// A component, and a grant that is valid for it.
pub(crate) struct GrantedComponent {
    pub(crate) component: Arc<LoadedComponent>,
    pub(crate) grant: Grant,
}

impl GrantedComponent {
    /// Checks that the grant of the plugin `id` is valid for its component.
    pub(crate) async fn check(
        id: &str,
        component: Arc<LoadedComponent>,
        grant: Grant,
    ) -> Result<Self, LoadError> {
        let granted = Self { component, grant };
        if granted.component.code.is_none() || !granted.grant.names_component() {
            return Ok(granted);
        }
        // A plugin can have thousands of tools, and a grant can change each of them.
        let id = id.to_owned();
        run_blocking(
            "comparing its grant with its component",
            move || match granted.compare(&id) {
                Ok(()) => Ok(granted),
                Err(why) => Err(LoadError::Refused(format!("{id}.toml: {why}"))),
            },
        )
        .await
    }

    /// Returns the granted component if the grant names only what the component has.
    pub(crate) async fn check_fit(
        id: &str,
        component: &Arc<LoadedComponent>,
        grant: &Grant,
    ) -> Option<Self> {
        let granted = Self {
            component: Arc::clone(component),
            grant: grant.clone(),
        };
        let id = id.to_owned();
        let check = move || granted.compare(&id).is_ok().then_some(granted);
        tokio::task::spawn_blocking(check).await.unwrap_or_default()
    }

    /// Returns a component under a grant whose rights are in force already. The grant is not
    /// compared with the component, because it may name tools of another one.
    pub(crate) fn with_rights_in_force(component: Arc<LoadedComponent>, grant: Grant) -> Self {
        Self { component, grant }
    }

    /// Returns a component without code, and the part of the grant that applies to plain files.
    ///
    /// # Errors
    ///
    /// The grant restricts code: it was written for a component that does not exist.
    pub(crate) fn without_code(id: &str, grant: &Grant) -> Result<Self, LoadError> {
        let keys = [
            ("enabled_tools", grant.enabled_tools.is_some()),
            ("component", grant.component.is_some()),
            ("tools", !grant.tools.is_empty()),
        ];
        if let Some((key, _)) = keys.into_iter().find(|(_, is_set)| *is_set) {
            return Err(LoadError::Refused(format!(
                "{id}.toml: {key}: there is no {id}.wasm, so the plugin has no tools; remove `{key}`, or add {id}.wasm"
            )));
        }
        let kept = select_plain_settings(grant);
        let mut component = LoadedComponent::without_code(ComponentContents::default());
        if kept != *grant {
            let idle = format!(
                "{id}.toml: there is no {id}.wasm, so only prefix, separator, limits, rate_limit and permissions.ui of the grant have an effect"
            );
            component.remarks.push(idle);
        }
        Ok(Self {
            component: Arc::new(component),
            grant: kept,
        })
    }

    fn compare(&self, id: &str) -> Result<(), String> {
        let component = &self.component;
        let is_command = component.is_command();
        self.grant
            .check_component(id, component.digest, &component.contents, is_command)
    }
}

/// Returns the part of a grant that applies to plain files.
fn select_plain_settings(grant: &Grant) -> Grant {
    let Grant {
        prefix,
        separator,
        limits,
        rate_limit,
        permissions,
        digest,
        text,
        ..
    } = grant.clone();
    let permissions = Permissions {
        ui: permissions.ui,
        ..Permissions::default()
    };
    Grant {
        prefix,
        separator,
        limits,
        rate_limit,
        permissions,
        digest,
        text,
        ..Grant::default()
    }
}
