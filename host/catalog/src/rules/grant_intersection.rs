//! Intersection of two versions of a grant.

use std::collections::{BTreeMap, BTreeSet};

use toolbay_model::{ArgumentCheck, Limits, LimitsPatch, RateLimit, ToolRateLimit};

use crate::rules::approval::ApprovalSetting;
use crate::rules::grant::{Grant, ToolGrant, ToolLimits};
use crate::rules::load_policy::LoadPolicy;

impl LoadPolicy {
    /// Returns the intersection of the grant `new` and the grant `in_force`, for a plugin with
    /// these `tools`, under these rules. It has the restrictions of both grants, and only the
    /// rights that both give. A setting that is neither a restriction nor a right, or that cannot
    /// be compared, has its value in `in_force`. Slow for thousands of tools.
    pub(crate) fn intersection(&self, new: &Grant, in_force: &Grant, tools: &[String]) -> Grant {
        let limits = self.common_limits(new, in_force);
        let tools = self.common_tools(new, in_force, tools);
        let mut secrets = in_force.secrets.clone();
        for (name, secret) in &mut secrets {
            if new.secrets.get(name) != Some(secret) {
                secret.redact_only();
            }
        }
        let mut both = Grant {
            prefix: in_force.prefix.clone(),
            separator: in_force.separator,
            require_approval: self.common_approval(new, in_force),
            arguments: match (new.arguments, in_force.arguments) {
                (ours, theirs) if ours == theirs => theirs,
                _ => Some(ArgumentCheck::Strict),
            },
            enabled_tools: in_force.enabled_tools.clone(),
            component: in_force.component,
            limits,
            rate_limit: self.common_rate_limit(new, in_force),
            permissions: new.permissions.intersection(&in_force.permissions),
            secrets,
            config: in_force.config.clone(),
            tools,
            digest: new.digest,
            is_partial: false,
        };
        if both != *new {
            (both.digest, both.is_partial) = (in_force.digest, in_force.is_partial);
            both.is_partial = in_force.is_partial || !both.is_equivalent_to(in_force);
        }
        both
    }

    fn limits_under(&self, grant: &Grant) -> Limits {
        self.limits.with(&grant.limits, &self.ceiling).0
    }

    fn common_limits(&self, new: &Grant, in_force: &Grant) -> LimitsPatch {
        let ours = self.limits_under(new);
        let theirs = self.limits_under(in_force);
        let least = theirs.least(&ours);
        if least == ours {
            new.limits.clone()
        } else if least == theirs {
            in_force.limits.clone()
        } else {
            least.into()
        }
    }

    fn common_rate_limit(&self, new: &Grant, in_force: &Grant) -> Option<ToolRateLimit> {
        let ours = new.rate_limit.or(self.rate_limit);
        let theirs = in_force.rate_limit.or(self.rate_limit);
        let both = match (ours, theirs) {
            (Some(one), Some(two)) => Some(ToolRateLimit {
                limit: RateLimit {
                    calls: one.limit.calls.min(two.limit.calls),
                    per: one.limit.per.max(two.limit.per),
                },
                shared: one.shared || two.shared,
            }),
            (one, two) => one.or(two),
        };
        if both == ours {
            new.rate_limit
        } else if both == theirs {
            in_force.rate_limit
        } else {
            both
        }
    }

    fn common_approval(&self, new: &Grant, in_force: &Grant) -> Option<ApprovalSetting> {
        let ours = new.require_approval.unwrap_or(self.require_approval);
        let theirs = in_force.require_approval.unwrap_or(self.require_approval);
        let both = ours.stricter(theirs);
        if both == ours {
            new.require_approval
        } else if both == theirs {
            in_force.require_approval
        } else {
            Some(both)
        }
    }

    /// Returns the intersection of the settings of each tool.
    fn common_tools(
        &self,
        new: &Grant,
        in_force: &Grant,
        tools: &[String],
    ) -> BTreeMap<String, ToolGrant> {
        let all = self.limits_under(in_force).least(&self.limits_under(new));
        let default = self
            .common_approval(new, in_force)
            .unwrap_or(self.require_approval);
        // A tool that the plugin does not have needs no restriction.
        let known: BTreeSet<&String> = tools.iter().collect();
        let changed = new.tools.keys().filter(|name| known.contains(name));
        let left_out = tools
            .iter()
            .filter(|name| !new.offers(name) && in_force.offers(name));
        let names: BTreeSet<&String> = changed
            .chain(in_force.tools.keys())
            .chain(left_out)
            .collect();
        let unset = ToolGrant::default();
        let common = |name: &String| {
            let ours = new.tools.get(name).unwrap_or(&unset);
            let theirs = in_force.tools.get(name).unwrap_or(&unset);
            let own = self.common_tool_limits((new, ours), (in_force, theirs), &all);
            let asks = |grant: &Grant, tool: &ToolGrant| {
                tool.require_approval
                    .or(grant.require_approval)
                    .unwrap_or(self.require_approval)
            };
            let require_approval = match asks(new, ours) {
                // The setting depends on the annotations, and those in force are kept.
                ApprovalSetting::Destructive if ours.annotations != theirs.annotations => {
                    ApprovalSetting::Always
                }
                other => other.stricter(asks(in_force, theirs)),
            };
            let require_approval = match ours.require_approval {
                None if require_approval == default => None,
                _ => Some(require_approval),
            };
            // No schema expresses the intersection of two schemas.
            let differ = ours.input_schema.is_some() && theirs.input_schema.is_some();
            let differ = differ && ours.input_schema != theirs.input_schema;
            let disabled = ours.disabled || theirs.disabled || !new.offers(name) || differ;
            let input_schema = theirs
                .input_schema
                .clone()
                .or_else(|| ours.input_schema.clone());
            (
                name.clone(),
                ToolGrant {
                    limits: own,
                    require_approval,
                    disabled,
                    input_schema,
                    ..theirs.clone()
                },
            )
        };
        let kept =
            |(name, tool): &(String, ToolGrant)| *tool != unset || new.tools.contains_key(name);
        names.into_iter().map(common).filter(kept).collect()
    }

    /// Returns the limits of one tool. `plugin_limits` are the limits of all tools.
    fn common_tool_limits(
        &self,
        (new, ours): (&Grant, &ToolGrant),
        (in_force, theirs): (&Grant, &ToolGrant),
        all: &Limits,
    ) -> ToolLimits {
        let under =
            |limits: &Limits, tool: &ToolLimits| limits.with(&tool.to_patch(), &self.ceiling).0;
        let least = under(&self.limits_under(in_force), &theirs.limits)
            .least(&under(&self.limits_under(new), &ours.limits));
        if under(all, &ours.limits) == least {
            ours.limits.clone()
        } else if under(all, &theirs.limits) == least {
            theirs.limits.clone()
        } else {
            let Limits {
                fuel,
                timeout,
                output,
                oversize,
                ..
            } = least;
            ToolLimits {
                fuel: Some(fuel),
                timeout: Some(timeout),
                output: Some(output),
                oversize: Some(oversize),
            }
        }
    }
}
