//! Preferences of callers for their models: the strictness of argument checks, and the form of
//! schemas.

use serde::Deserialize;

/// The strictness of the check of arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArgumentCheck {
    /// Arguments must match the schema.
    #[default]
    Strict,
    /// Arguments of the wrong form are converted, such as a number that was written as a string.
    Lenient,
}

impl ArgumentCheck {
    /// Returns the check that applies to a call. `overrides` has the values of the caller and of
    /// the plugin's grant, and `self` is the value of the server. [`ArgumentCheck::Strict`] in
    /// `overrides` takes precedence over [`ArgumentCheck::Lenient`], and `self` applies if both are
    /// unset.
    #[must_use]
    pub fn with_overrides(self, overrides: [Option<Self>; 2]) -> Self {
        match overrides {
            values if values.contains(&Some(Self::Strict)) => Self::Strict,
            values if values.contains(&Some(Self::Lenient)) => Self::Lenient,
            _ => self,
        }
    }
}

/// The form of argument schemas in lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemaForm {
    /// The schema as the plugin defines it.
    #[default]
    Standard,
    /// A schema with only the keywords that the function schemas of all model APIs support.
    Portable,
}

/// The preferences in a caller's configuration. `None` selects the server's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallerPreferences {
    /// The strictness of the check of its arguments.
    pub arguments: Option<ArgumentCheck>,
    /// The form of the schemas that it receives.
    pub schemas: Option<SchemaForm>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_takes_precedence_over_lenient() {
        use ArgumentCheck::{Lenient, Strict};
        for (server, said, expected) in [
            (Strict, [None, None], Strict),
            (Lenient, [None, None], Lenient),
            (Strict, [Some(Lenient), None], Lenient),
            (Strict, [None, Some(Lenient)], Lenient),
            (Lenient, [Some(Lenient), Some(Strict)], Strict),
            (Lenient, [Some(Strict), Some(Lenient)], Strict),
            (Lenient, [None, Some(Strict)], Strict),
        ] {
            assert_eq!(server.with_overrides(said), expected, "{server:?} {said:?}");
        }
    }
}
