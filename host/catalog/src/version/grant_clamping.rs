//! Clamps grants to the server's ceilings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use toolbay_sandbox::{KeyValue, MountRoots, PluginConnections, PluginContext, PluginHttp};

use crate::component::loaded_component::LoadedComponent;
use crate::rules::grant::{Grant, GrantSecrets, ToolOverride};
use crate::rules::load_policy::LoadPolicy;
use crate::rules::mount_policy::MountPlan;
use crate::rules::terms::{PluginTerms, ToolTerms};

/// Warning for a grant that gives folders to a plugin that cannot use them.
const FOLDERS_UNSUPPORTED: &str = "permissions.mounts and permissions.scratch: the plugin looks for files through WASI 0.3, where it \
                          gets none (build it for WASI 0.2)";

impl LoadPolicy {
    /// Clamps the grant to the server's ceilings. Returns the terms and warnings for the operator.
    pub fn clamp_grant(
        &self,
        component: &LoadedComponent,
        grant: Grant,
        grant_secrets: GrantSecrets,
    ) -> (PluginTerms, Vec<String>) {
        let source_grant = Arc::new(grant.clone());
        let (limits, clamps) = self.limits.with(&grant.limits, &self.ceiling);
        let GrantSecrets {
            secrets,
            mut remarks,
        } = grant_secrets;
        remarks.extend(clamps.iter().map(ToString::to_string));
        if let Some(end) = grant.until.filter(|end| end.is_over(SystemTime::now())) {
            remarks.push(format!(
                "the grant ended at {end} (until): all calls of the plugin are rejected"
            ));
        }
        let config = Arc::new(grant.config_values());
        let approvals = grant.approvals(self.require_approval, self.approve_by);
        let has_folders =
            !grant.permissions.mounts.is_empty() || grant.permissions.scratch.is_some();
        if has_folders
            && component
                .code
                .as_ref()
                .is_some_and(|code| !code.has_files())
        {
            remarks.push(FOLDERS_UNSUPPORTED.to_owned());
        }
        let tool_names = component
            .contents
            .tools
            .iter()
            .filter(|_| !component.is_command())
            .map(|definition| &definition.tool.name);
        let disabled_names = tool_names.filter(|name| !grant.offers(name));
        let disabled_override = || ToolOverride {
            disabled: true,
            ..ToolOverride::default()
        };
        let mut tool_overrides: BTreeMap<String, ToolOverride> = disabled_names
            .map(|name| (name.clone(), disabled_override()))
            .collect();
        let roots = MountRoots::new(&grant.permissions.mounts);
        let requests = PluginHttp::default();
        let connections = PluginConnections::default();
        let key_value = KeyValue::default();
        let permissions = grant.permissions;
        let context = PluginContext {
            limits,
            permissions,
            roots,
            requests,
            connections,
            key_value,
            config,
            secrets,
        };
        let mut tools = BTreeMap::new();
        for (name, tool) in grant.tools {
            let (limits, clamps) = context.limits.with(&tool.limits.to_patch(), &self.ceiling);
            remarks.extend(clamps.iter().map(|clamp| format!("tools.{name}.{clamp}")));
            let disabled = tool.disabled || tool_overrides.contains_key(&name);
            let tool_override = ToolOverride {
                disabled,
                ..tool.to_override()
            };
            if tool_override != ToolOverride::default() {
                tool_overrides.insert(name.clone(), tool_override);
            }
            let limit_keys = tool.limits.set_keys();
            tools.insert(
                name,
                ToolTerms {
                    context: PluginContext {
                        limits,
                        ..context.clone()
                    },
                    limit_keys,
                },
            );
        }
        let rate_limit = grant.rate_limit.or(self.rate_limit);
        let prefix = grant.prefix;
        let separator = grant.separator;
        let argument_check = grant.arguments;
        let mount_plan = MountPlan::default();
        let grant_digest = grant.digest;
        let terms = PluginTerms {
            context,
            tools,
            tool_overrides,
            prefix,
            separator,
            argument_check,
            rate_limit,
            until: grant.until,
            budget: grant.budget,
            approvals,
            mount_plan,
            grant_digest,
            source_grant,
        };
        (terms, remarks)
    }
}
