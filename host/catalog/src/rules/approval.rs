//! The operator's `require_approval` setting: which calls of a tool a person must allow first.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toolbay_model::EffectHints;
use toolbay_settings::toml_file::nearest;

/// The calls of a tool that a person must allow first, as configured by the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalSetting {
    /// No calls.
    #[default]
    Never,
    /// Every call.
    Always,
    /// The first call of a caller.
    First,
    /// Every call of a tool that may destroy something, according to its annotations.
    Destructive,
}

impl ApprovalSetting {
    const ALL: [Self; 4] = [Self::Always, Self::First, Self::Destructive, Self::Never];

    /// Returns the word in a grant.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Always => "always",
            Self::First => "first",
            Self::Destructive => "destructive",
        }
    }

    /// Returns a setting that requires approval whenever one of both does.
    pub(crate) fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (one, two) if one == two => one,
            (Self::Never, other) | (other, Self::Never) => other,
            // Neither of `First` and `Destructive` covers the other.
            _ => Self::Always,
        }
    }

    /// Returns which calls of a tool with these annotations a person must allow first; `None` for
    /// no calls.
    pub fn policy_for(self, annotations: Option<EffectHints>) -> Option<ApprovalPolicy> {
        match self {
            Self::Never => None,
            Self::Always => Some(ApprovalPolicy::Each),
            Self::First => Some(ApprovalPolicy::First),
            Self::Destructive => {
                is_destructive(annotations.unwrap_or_default()).then_some(ApprovalPolicy::Each)
            }
        }
    }
}

/// Returns whether a tool may destroy something (MCP `ToolAnnotations`). A tool without annotations
/// may.
fn is_destructive(annotations: EffectHints) -> bool {
    !annotations.read_only.unwrap_or(false) && annotations.destructive.unwrap_or(true)
}

/// The calls of a tool that a person must allow first, given its annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalPolicy {
    /// Every call.
    Each,
    /// The first call of a caller.
    First,
}

/// Describes the policy in words.
impl fmt::Display for ApprovalPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Each => "before each call",
            Self::First => "before the first call",
        })
    }
}

/// The calls of a tool that a person must allow first, and the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequiredApproval {
    /// The calls.
    pub policy: ApprovalPolicy,
    /// The person.
    pub approver: Approver,
}

/// Describes the requirement in words.
impl fmt::Display for RequiredApproval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.policy.fmt(f)?;
        match self.approver {
            Approver::Client => Ok(()),
            Approver::Console => f.write_str(", in the console"),
        }
    }
}

impl Serialize for RequiredApproval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match (self.policy, self.approver) {
            (ApprovalPolicy::Each, Approver::Client) => "each",
            (ApprovalPolicy::First, Approver::Client) => "first",
            (ApprovalPolicy::Each, Approver::Console) => "each-in-console",
            (ApprovalPolicy::First, Approver::Console) => "first-in-console",
        })
    }
}

/// The person who answers the question whether a call is allowed, as configured by the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Approver {
    /// The user of the client, or an operator who answers first.
    #[default]
    Client,
    /// Only an operator, in the console or with `toolbay approvals`. The client is not asked.
    Console,
}

impl Approver {
    const ALL: [Self; 2] = [Self::Client, Self::Console];

    /// Returns the word in a grant.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Console => "console",
        }
    }
}

impl<'de> Deserialize<'de> for Approver {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let known = Self::ALL.into_iter().find(|known| known.as_str() == word);
        known.ok_or_else(|| {
            unknown_word(
                "\"client\" or \"console\"",
                &word,
                &Self::ALL.map(Self::as_str),
            )
        })
    }
}

impl<'de> Deserialize<'de> for ApprovalSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let known = Self::ALL.into_iter().find(|known| known.as_str() == word);
        known.ok_or_else(|| {
            let expected = "\"always\", \"first\", \"destructive\" or \"never\"";
            unknown_word(expected, &word, &Self::ALL.map(Self::as_str))
        })
    }
}

/// Returns the error about an unknown word, with the nearest of the known words.
fn unknown_word<E: serde::de::Error>(expected: &str, word: &str, known: &[&str]) -> E {
    let hint = nearest(word, known)
        .map(|near| format!("; did you mean {near:?}?"))
        .unwrap_or_default();
    E::custom(format_args!("expected {expected}, not {word:?}{hint}"))
}

/// The operator's approval settings for the tools of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolApprovals {
    /// Setting of the tools without their own.
    pub default: ApprovalSetting,
    /// Settings by tool name, without the prefix.
    pub tools: BTreeMap<String, ApprovalSetting>,
    /// Approver for the tools without their own.
    pub default_approver: Approver,
    /// Approvers by tool name, without the prefix.
    pub tool_approvers: BTreeMap<String, Approver>,
}

impl ToolApprovals {
    /// Returns the setting of the tool `name` (without the prefix).
    pub fn setting_for(&self, name: &str) -> ApprovalSetting {
        self.tools.get(name).copied().unwrap_or(self.default)
    }

    /// Returns who answers for the tool `name` (without the prefix).
    pub fn approver_for(&self, name: &str) -> Approver {
        self.tool_approvers
            .get(name)
            .copied()
            .unwrap_or(self.default_approver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_destructive_unless_its_annotations_say_otherwise() {
        assert_eq!(
            ApprovalSetting::Destructive.policy_for(None),
            Some(ApprovalPolicy::Each)
        );
        for (read_only, destructive, asks) in [
            (None, None, true),
            (Some(false), None, true),
            (None, Some(true), true),
            (None, Some(false), false),
            (Some(true), None, false),
            // A tool that only reads destroys nothing.
            (Some(true), Some(true), false),
        ] {
            let annotations = Some(EffectHints {
                read_only,
                destructive,
                ..EffectHints::default()
            });
            assert_eq!(
                ApprovalSetting::Destructive.policy_for(annotations),
                asks.then_some(ApprovalPolicy::Each),
                "{annotations:?}"
            );
            assert_eq!(
                ApprovalSetting::Always.policy_for(annotations),
                Some(ApprovalPolicy::Each)
            );
            assert_eq!(
                ApprovalSetting::First.policy_for(annotations),
                Some(ApprovalPolicy::First)
            );
            assert_eq!(ApprovalSetting::Never.policy_for(annotations), None);
        }
    }

    #[test]
    fn the_setting_of_a_tool_wins() {
        let tools = BTreeMap::from([("look".to_owned(), ApprovalSetting::Never)]);
        let approvals = ToolApprovals {
            default: ApprovalSetting::Always,
            tools,
            ..ToolApprovals::default()
        };
        assert_eq!(
            (
                approvals.setting_for("look"),
                approvals.setting_for("erase")
            ),
            (ApprovalSetting::Never, ApprovalSetting::Always)
        );
        assert_eq!(
            ToolApprovals::default().setting_for("erase"),
            ApprovalSetting::Never
        );
    }
}
