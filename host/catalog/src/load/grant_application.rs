//! Applies grants to components.

use std::sync::Arc;

use crate::component::load_environment::LoadEnvironment;
use crate::folder::load_error::LoadError;
use crate::load::granted_component::GrantedComponent;
use crate::load::load_result::LoadOutcome;
use crate::load::mount_check::{OpenedMounts, open_mounts};
use crate::rules::grant::{Grant, GrantSecrets};
use crate::version::plain_files::PlainFiles;
use crate::version::plugin::Plugin;

/// Plugin without plain files, after its grant was applied.
pub(crate) struct AppliedGrant {
    pub(crate) plugin: Plugin,
    /// Warnings for the operator.
    remarks: Vec<String>,
}

impl AppliedGrant {
    /// Applies a grant to the component of the plugin `id`. Blocks, because opening mounted folders
    /// can block.
    pub(crate) fn new(
        environment: &LoadEnvironment,
        id: String,
        granted: GrantedComponent,
        mut secrets: GrantSecrets,
    ) -> Result<Self, LoadError> {
        let GrantedComponent { component, grant } = granted;
        secrets
            .remarks
            .extend(secrets.secrets.missing_value_warnings());
        let rules = environment.rules.current();
        let (mut terms, remarks) = rules.clamp_grant(&component, grant, secrets);
        let permissions = &terms.context.permissions;
        let sandbox = &environment.sandbox;
        let requests = sandbox
            .plugin_http(permissions, &terms.context.limits)
            .map_err(|why| LoadError::Refused(format!("{id}.toml: permissions.http: {why}")))?;
        let connections = sandbox.plugin_connections(permissions);
        let key_value = sandbox.key_value(&id, permissions);
        terms.set_shared_state(&requests, &connections, &key_value);
        let OpenedMounts {
            plan,
            remarks: mounts,
        } = open_mounts(environment, &id, &terms.context)?;
        terms.mount_plan = plan;
        let remarks = remarks.iter().map(|remark| format!("{id}.toml: {remark}"));
        let remarks = component
            .remarks
            .iter()
            .cloned()
            .chain(remarks)
            .chain(mounts)
            .collect();
        Ok(Self {
            plugin: Plugin::new(id, component, Arc::default(), terms),
            remarks,
        })
    }

    /// Returns the version for a comparison: without its secrets, mounts and connections, so that
    /// nothing in the grant is used. It must not be published.
    pub(crate) fn for_comparison(
        environment: &LoadEnvironment,
        id: String,
        granted: GrantedComponent,
    ) -> Plugin {
        let GrantedComponent { component, grant } = granted;
        let rules = environment.rules.current();
        let (terms, _) = rules.clamp_grant(&component, grant, GrantSecrets::default());
        Plugin::new(id, component, Arc::default(), terms)
    }

    /// Applies a grant that has no more secrets than the version in service, and reuses their
    /// values. Blocks.
    pub(crate) fn with_previous_secrets(
        environment: &LoadEnvironment,
        id: String,
        granted: GrantedComponent,
        previous: &Plugin,
    ) -> Result<Self, LoadError> {
        let secrets = reuse_secrets(&granted.grant, previous)
            .map_err(|why| LoadError::Refused(format!("{id}.toml: {why}")))?;
        Self::new(environment, id, granted, secrets)
    }

    /// Adds the plain files, after which the plugin can be published.
    pub(crate) fn with_files(&self, files: Arc<PlainFiles>) -> LoadOutcome {
        LoadOutcome {
            plugin: Arc::new(self.plugin.with_files(files)),
            remarks: self.remarks.clone(),
        }
    }
}

/// Returns the secrets of a grant with the values of the version in service.
fn reuse_secrets(grant: &Grant, previous: &Plugin) -> Result<GrantSecrets, String> {
    let vault = &previous.terms.context.secrets;
    Ok(GrantSecrets {
        secrets: vault.with_rules(grant.secret_specs()?)?,
        remarks: Vec::new(),
    })
}
