//! How the server meets the models of a caller: how arguments are checked, and how schemas are written.

use serde::Deserialize;

/// How arguments are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArgumentCheck {
    /// They must be as the schema says.
    #[default]
    Strict,
    /// What does not fit in its form alone is converted, such as a number that was written as a text.
    Lenient,
}

impl ArgumentCheck {
    /// What applies to a call of what its caller and the plugin's grant say, and otherwise the server: whoever says
    /// [`ArgumentCheck::Strict`] wins.
    #[must_use]
    pub fn of(self, said: [Option<Self>; 2]) -> Self {
        match said {
            said if said.contains(&Some(Self::Strict)) => Self::Strict,
            said if said.contains(&Some(Self::Lenient)) => Self::Lenient,
            _ => self,
        }
    }
}

/// How the schemas of arguments are written in lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemaForm {
    /// With all that the plugin says.
    #[default]
    Standard,
    /// In the words that the function schemas of all APIs for models have in common.
    Portable,
}

/// What a caller's configuration says; `None` leaves it to the server's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallerPreferences {
    /// How its arguments are checked.
    pub arguments: Option<ArgumentCheck>,
    /// How the schemas that it gets are written.
    pub schemas: Option<SchemaForm>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_says_strict_wins() {
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
            assert_eq!(server.of(said), expected, "{server:?} {said:?}");
        }
    }
}
