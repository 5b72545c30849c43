//! Intersection of two versions of a grant.

use std::collections::{BTreeMap, BTreeSet};

use toolbay_model::{ArgumentCheck, Limits, LimitsPatch, RateLimit, ToolRateLimit};

use crate::rules::approval::{ApprovalSetting, Approver};
use crate::rules::grant::{Grant, ToolGrant, ToolLimits};
use crate::rules::load_policy::LoadPolicy;

impl LoadPolicy {
    /// Returns the intersection of the grant `new` and the grant `in_force`, for a plugin with
    /// these `tools`, under these rules. It has the restrictions of both grants, and only the
    /// rights that both give. A setting that is neither a restriction nor a right, or that cannot
    /// be compared, keeps its value from `in_force`. Slow for thousands of tools.
    pub(crate) fn intersection(&self, new: &Grant, in_force: &Grant, tools: &[String]) -> Grant {
        let limits = self.intersect_limits(new, in_force);
        let tools = self.intersect_tools(new, in_force, tools);
        let mut secrets = in_force.secrets.clone();
        for (name, secret) in &mut secrets {
            if new.secrets.get(name) != Some(secret) {
                secret.redact_only();
            }
        }
        let mut combined = Grant {
            prefix: in_force.prefix.clone(),
            separator: in_force.separator,
            require_approval: self.intersect_approval(new, in_force),
            approve_by: self.intersect_approver(new, in_force),
            arguments: match (new.arguments, in_force.arguments) {
                (ours, theirs) if ours == theirs => theirs,
                _ => Some(ArgumentCheck::Strict),
            },
            enabled_tools: in_force.enabled_tools.clone(),
            component: in_force.component,
            until: new.until.into_iter().chain(in_force.until).min(),
            limits,
            rate_limit: self.intersect_rate_limits(new, in_force),
            budget: new.budget.intersection(&in_force.budget),
            permissions: new.permissions.intersection(&in_force.permissions),
            secrets,
            config: in_force.config.clone(),
            tools,
            digest: new.digest,
            text: new.text.clone(),
            is_partial: false,
        };
        if combined != *new {
            (combined.digest, combined.is_partial) = (in_force.digest, in_force.is_partial);
            combined.text.clone_from(&in_force.text);
            combined.is_partial = in_force.is_partial || !combined.is_equivalent_to(in_force);
        }
        combined
    }

    fn limits_under(&self, grant: &Grant) -> Limits {
        self.limits.with(&grant.limits, &self.ceiling).0
    }

    fn intersect_limits(&self, new: &Grant, in_force: &Grant) -> LimitsPatch {
        let new_limits = self.limits_under(new);
        let current_limits = self.limits_under(in_force);
        let lower = current_limits.least(&new_limits);
        if lower == new_limits {
            new.limits.clone()
        } else if lower == current_limits {
            in_force.limits.clone()
        } else {
            lower.into()
        }
    }

    fn intersect_rate_limits(&self, new: &Grant, in_force: &Grant) -> Option<ToolRateLimit> {
        let new_rate = new.rate_limit.or(self.rate_limit);
        let current_rate = in_force.rate_limit.or(self.rate_limit);
        let combined = match (new_rate, current_rate) {
            (Some(one), Some(two)) => Some(ToolRateLimit {
                limit: RateLimit {
                    calls: one.limit.calls.min(two.limit.calls),
                    per: one.limit.per.max(two.limit.per),
                },
                shared: one.shared || two.shared,
            }),
            (one, two) => one.or(two),
        };
        if combined == new_rate {
            new.rate_limit
        } else if combined == current_rate {
            in_force.rate_limit
        } else {
            combined
        }
    }

    fn intersect_approval(&self, new: &Grant, in_force: &Grant) -> Option<ApprovalSetting> {
        let new_setting = new.require_approval.unwrap_or(self.require_approval);
        let current_setting = in_force.require_approval.unwrap_or(self.require_approval);
        let combined = new_setting.stricter(current_setting);
        if combined == new_setting {
            new.require_approval
        } else if combined == current_setting {
            in_force.require_approval
        } else {
            Some(combined)
        }
    }

    /// Returns the stricter approver: an operator if one of both grants requires it.
    fn intersect_approver(&self, new: &Grant, in_force: &Grant) -> Option<Approver> {
        let approver_of = |grant: &Grant| grant.approve_by.unwrap_or(self.approve_by);
        if approver_of(new) >= approver_of(in_force) {
            new.approve_by
        } else {
            in_force.approve_by
        }
    }

    /// Returns the stricter approver for one tool, if it differs from that of the plugin.
    fn intersect_tool_approver(
        &self,
        (new, new_tool): (&Grant, &ToolGrant),
        (in_force, current_tool): (&Grant, &ToolGrant),
    ) -> Option<Approver> {
        let approver_of = |grant: &Grant, tool: &ToolGrant| {
            tool.approve_by
                .or(grant.approve_by)
                .unwrap_or(self.approve_by)
        };
        let stricter = approver_of(new, new_tool).max(approver_of(in_force, current_tool));
        let default = self
            .intersect_approver(new, in_force)
            .unwrap_or(self.approve_by);
        match new_tool.approve_by {
            None if stricter == default => None,
            _ => Some(stricter),
        }
    }

    /// Returns the intersection of the settings of each tool.
    fn intersect_tools(
        &self,
        new: &Grant,
        in_force: &Grant,
        tools: &[String],
    ) -> BTreeMap<String, ToolGrant> {
        let plugin_limits = self.limits_under(in_force).least(&self.limits_under(new));
        let default = self
            .intersect_approval(new, in_force)
            .unwrap_or(self.require_approval);
        // A tool that the plugin does not have needs no restriction.
        let existing: BTreeSet<&String> = tools.iter().collect();
        let changed = new.tools.keys().filter(|name| existing.contains(name));
        let disabled_names = tools
            .iter()
            .filter(|name| !new.offers(name) && in_force.offers(name));
        let names: BTreeSet<&String> = changed
            .chain(in_force.tools.keys())
            .chain(disabled_names)
            .collect();
        let unset = ToolGrant::default();
        let intersect_tool = |name: &String| {
            let new_tool = new.tools.get(name).unwrap_or(&unset);
            let current_tool = in_force.tools.get(name).unwrap_or(&unset);
            let limits = self.intersect_tool_limits(
                (new, new_tool),
                (in_force, current_tool),
                &plugin_limits,
            );
            let approval_of = |grant: &Grant, tool: &ToolGrant| {
                tool.require_approval
                    .or(grant.require_approval)
                    .unwrap_or(self.require_approval)
            };
            let require_approval = match approval_of(new, new_tool) {
                // The setting depends on the annotations, and those in force are kept.
                ApprovalSetting::Destructive
                    if new_tool.annotations != current_tool.annotations =>
                {
                    ApprovalSetting::Always
                }
                other => other.stricter(approval_of(in_force, current_tool)),
            };
            let require_approval = match new_tool.require_approval {
                None if require_approval == default => None,
                _ => Some(require_approval),
            };
            let approve_by =
                self.intersect_tool_approver((new, new_tool), (in_force, current_tool));
            // No schema expresses the intersection of two schemas.
            let schemas_conflict =
                new_tool.input_schema.is_some() && current_tool.input_schema.is_some();
            let schemas_conflict =
                schemas_conflict && new_tool.input_schema != current_tool.input_schema;
            let disabled =
                new_tool.disabled || current_tool.disabled || !new.offers(name) || schemas_conflict;
            let input_schema = current_tool
                .input_schema
                .clone()
                .or_else(|| new_tool.input_schema.clone());
            (
                name.clone(),
                ToolGrant {
                    limits,
                    require_approval,
                    approve_by,
                    disabled,
                    input_schema,
                    ..current_tool.clone()
                },
            )
        };
        let is_needed =
            |(name, tool): &(String, ToolGrant)| *tool != unset || new.tools.contains_key(name);
        names
            .into_iter()
            .map(intersect_tool)
            .filter(is_needed)
            .collect()
    }

    /// Returns the limits of one tool. `plugin_limits` are the limits of all tools.
    fn intersect_tool_limits(
        &self,
        (new, new_tool): (&Grant, &ToolGrant),
        (in_force, current_tool): (&Grant, &ToolGrant),
        plugin_limits: &Limits,
    ) -> ToolLimits {
        let apply_limits =
            |limits: &Limits, tool: &ToolLimits| limits.with(&tool.to_patch(), &self.ceiling).0;
        let lower = apply_limits(&self.limits_under(in_force), &current_tool.limits)
            .least(&apply_limits(&self.limits_under(new), &new_tool.limits));
        if apply_limits(plugin_limits, &new_tool.limits) == lower {
            new_tool.limits.clone()
        } else if apply_limits(plugin_limits, &current_tool.limits) == lower {
            current_tool.limits.clone()
        } else {
            let Limits {
                fuel,
                timeout,
                output,
                oversize,
                ..
            } = lower;
            ToolLimits {
                fuel: Some(fuel),
                timeout: Some(timeout),
                output: Some(output),
                oversize: Some(oversize),
            }
        }
    }
}
