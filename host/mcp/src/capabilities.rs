//! The capabilities that a client declared: their names, which is all that tools ask for.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The most names that are kept of one client. The protocol has fewer than ten.
const MOST: usize = 64;

/// Longest name that is kept, in bytes.
const LONGEST: usize = 128;

/// The names of the capabilities that a client declared: at most 64, of at most 128 bytes each. Others are ignored.
/// Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(Arc<BTreeSet<Box<str>>>);

impl Capabilities {
    /// Whether the client declared the capability with this name.
    pub fn contain(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

impl<'de> Deserialize<'de> for Capabilities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Names)
    }
}

/// Takes the names of an object's members, and keeps nothing of their values.
struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = Capabilities;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut names = BTreeSet::new();
        while let Some((name, IgnoredAny)) = map.next_entry::<String, _>()? {
            if names.len() < MOST && name.len() <= LONGEST {
                names.insert(name.into_boxed_str());
            }
        }
        Ok(Capabilities(Arc::new(names)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_within_bounds() {
        let read = |text: &str| serde_json::from_str::<Capabilities>(text);
        let few = read(r#"{"roots": {"listChanged": true}, "sampling": [[]], "r\u006fots": 7}"#).unwrap();
        assert!(few.contain("roots") && few.contain("sampling") && !few.contain("listChanged"));
        assert_eq!(few.0.len(), 2);
        let many: Vec<String> = (0..1000).map(|n| format!("\"{n}\":{{}}")).collect();
        assert_eq!(read(&format!("{{{}}}", many.join(","))).unwrap().0.len(), MOST);
        let long = format!(r#"{{"{}": {{}}, "a": {{}}}}"#, "x".repeat(LONGEST + 1));
        assert_eq!(read(&long).unwrap().0.len(), 1);
        for wrong in ["[]", "7", "\"roots\"", "null"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
