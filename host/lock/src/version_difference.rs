//! How a version of a plugin differs from its pin.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use toolbay_model::Digest;

use crate::plugin_pin::{ItemKind, ItemPin, PluginPin};
use crate::text_difference::{changed_lines, signed_lines};
use crate::warning_sign::{ToolOwners, WarningSigns, name_signs, text_signs};

/// Maximum number of parts that a summary names.
const MAX_SUMMARY_PARTS: usize = 4;

/// Difference between the pin of a plugin and a version of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionDifference {
    /// True if the plugin is not in the lock file.
    pub is_new: bool,
    /// The digests of the component before and after, if they differ.
    pub component: Option<[Option<Digest>; 2]>,
    /// The digests of the grant before and after, if they differ.
    pub grant: Option<[Option<Digest>; 2]>,
    /// The purpose of the component before and after, if they differ.
    pub about: Option<[Option<String>; 2]>,
    /// The imports that were removed, and those that were added.
    pub imports: [Vec<String>; 2],
    /// The permissions that were removed, and those that were added.
    pub permissions: [Vec<String>; 2],
    /// The items that differ.
    pub items: Vec<ItemDifference>,
}

/// Difference between two versions of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemDifference {
    /// Its kind.
    pub kind: ItemKind,
    /// Its name, or its URI.
    pub name: String,
    /// True if the pinned version does not have it.
    pub is_new: bool,
    /// True if the new version does not have it.
    pub is_removed: bool,
    /// The fields that differ.
    pub fields: Vec<ChangedField>,
}

/// Field of an item that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedField {
    /// The name, such as `description`.
    pub name: String,
    /// The pinned text, if any.
    pub before: Option<String>,
    /// The new text, if any.
    pub after: Option<String>,
}

impl VersionDifference {
    /// Compares a version with its pin. A plugin without a pin differs in everything.
    pub fn new(pinned: Option<&PluginPin>, version: &PluginPin) -> Self {
        let is_new = pinned.is_none();
        let nothing = PluginPin::default();
        let pinned = pinned.unwrap_or(&nothing);
        // Destructured completely, so that no part is forgotten.
        let PluginPin {
            component,
            grant,
            about,
            imports,
            permissions,
            items,
        } = version;
        let keys: BTreeSet<_> = pinned.items.keys().chain(items.keys()).collect();
        let items = keys.into_iter().filter_map(|key| {
            ItemDifference::new(key.0, &key.1, pinned.items.get(key), items.get(key))
        });
        Self {
            is_new,
            component: (pinned.component != *component).then_some([pinned.component, *component]),
            grant: (pinned.grant != *grant).then_some([pinned.grant, *grant]),
            about: (pinned.about != *about).then(|| [pinned.about.clone(), about.clone()]),
            imports: compare_sets(&pinned.imports, imports),
            permissions: compare_sets(&pinned.permissions, permissions),
            items: items.collect(),
        }
    }

    /// Returns whether the version is the pinned one.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the differing parts in one line, without any text of the plugin but names. It follows
    /// a phrase such as `it differs from toolbay.lock: `.
    pub fn summary(&self) -> String {
        if self.is_new {
            return "it is not in the file".to_owned();
        }
        let mut parts = Vec::new();
        for (noun, [removed, added]) in
            [("import", &self.imports), ("permission", &self.permissions)]
        {
            for (change, count) in [("new", added.len()), ("removed", removed.len())] {
                match count {
                    0 => {}
                    1 => parts.push(format!("1 {change} {noun}")),
                    _ => parts.push(format!("{count} {change} {noun}s")),
                }
            }
        }
        parts.extend(self.items.iter().map(ItemDifference::summary));
        if self.about.is_some() {
            parts.push("its purpose".to_owned());
        }
        if self.grant.is_some() {
            parts.push("its grant changed".to_owned());
        }
        if self.component.is_some() {
            parts.push("its component changed".to_owned());
        }
        let more = parts.len().saturating_sub(MAX_SUMMARY_PARTS);
        parts.truncate(MAX_SUMMARY_PARTS);
        if more > 0 {
            parts.push(format!("{more} more"));
        }
        parts.join(", ")
    }

    /// Returns the signs that the version may deceive a model or a user. `others` are the tools of
    /// other plugins.
    pub fn warning_signs(&self, others: &ToolOwners) -> WarningSigns {
        let mut signs = WarningSigns::default();
        let [removed, added] = &self.imports;
        let known: BTreeSet<&str> = removed
            .iter()
            .map(|import| without_version(import))
            .collect();
        for import in added {
            if !self.is_new && !known.contains(without_version(import)) {
                signs.add(format!(
                    "it imports {import}, which the pinned version does not"
                ));
            }
        }
        if let Some([before, Some(after)]) = &self.about {
            let before = before.as_deref().unwrap_or_default();
            signs.extend("its purpose", text_signs(before, after, others));
        }
        for item in self.items.iter().filter(|item| !item.is_removed) {
            let subject = format!("{} {:?}", item.kind.noun(), item.name);
            if item.is_new && item.kind == ItemKind::Tool {
                signs.extend(&subject, name_signs(&item.name, others));
            }
            for field in &item.fields {
                let (Some(after), before) = (&field.after, field.before.as_deref()) else {
                    continue;
                };
                let place = format!("{subject}, {}", field.name);
                signs.extend(
                    &place,
                    text_signs(before.unwrap_or_default(), after, others),
                );
            }
        }
        signs
    }

    /// Returns the difference as text for people: the changed parts with the words before and after.
    pub fn render(&self, signs: &WarningSigns) -> String {
        let mut out = String::new();
        for sign in signs.lines() {
            let _ = writeln!(out, "! {sign}");
        }
        for (noun, digests) in [("component", &self.component), ("grant", &self.grant)] {
            let Some([before, after]) = digests else {
                continue;
            };
            let show = |digest: &Option<Digest>| {
                digest.map_or_else(|| "none".to_owned(), |digest| format!("sha256:{digest}"))
            };
            let _ = writeln!(out, "{noun}\n  - {}\n  + {}", show(before), show(after));
        }
        for (title, [removed, added]) in [
            ("imports", &self.imports),
            ("permissions", &self.permissions),
        ] {
            if removed.is_empty() && added.is_empty() {
                continue;
            }
            let _ = writeln!(out, "{title}");
            for (sign, lines) in [('-', removed), ('+', added)] {
                for line in lines.iter().flat_map(|line| signed_lines(sign, line)) {
                    let _ = writeln!(out, "  {line}");
                }
            }
        }
        for item in &self.items {
            item.render(&mut out);
        }
        out
    }
}

impl ItemDifference {
    fn new(
        kind: ItemKind,
        name: &str,
        before: Option<&ItemPin>,
        after: Option<&ItemPin>,
    ) -> Option<Self> {
        let nothing = ItemPin::new();
        let (is_new, is_removed) = (before.is_none(), after.is_none());
        let (before, after) = (before.unwrap_or(&nothing), after.unwrap_or(&nothing));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let fields = names.into_iter().filter_map(|name| {
            let (before, after) = (before.get(name), after.get(name));
            (before != after).then(|| ChangedField {
                name: name.clone(),
                before: before.cloned(),
                after: after.cloned(),
            })
        });
        let fields: Vec<ChangedField> = fields.collect();
        (is_new || is_removed || !fields.is_empty()).then(|| Self {
            kind,
            name: name.to_owned(),
            is_new,
            is_removed,
            fields,
        })
    }

    /// Returns the difference in a few words.
    fn summary(&self) -> String {
        let subject = format!("{} {:?}", self.kind.noun(), self.name);
        match self {
            Self { is_new: true, .. } => format!("new {subject}"),
            Self {
                is_removed: true, ..
            } => format!("removed {subject}"),
            Self { fields, .. } => {
                let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                format!("{} of {subject}", names.join(" and "))
            }
        }
    }

    fn render(&self, out: &mut String) {
        let change = match (self.is_new, self.is_removed) {
            (true, _) => "new ",
            (_, true) => "removed ",
            _ => "",
        };
        let _ = writeln!(out, "{change}{} {:?}", self.kind.noun(), self.name);
        for ChangedField {
            name,
            before,
            after,
        } in &self.fields
        {
            let _ = writeln!(out, "  {name}");
            let lines = match (before, after) {
                (Some(before), Some(after)) => changed_lines(before, after),
                (Some(before), None) => signed_lines('-', before),
                (None, Some(after)) => signed_lines('+', after),
                (None, None) => Vec::new(),
            };
            for line in lines {
                let _ = writeln!(out, "    {line}");
            }
        }
    }
}

/// Returns the lines that only `before` has, and those that only `after` has.
fn compare_sets(before: &BTreeSet<String>, after: &BTreeSet<String>) -> [Vec<String>; 2] {
    [
        before.difference(after).cloned().collect(),
        after.difference(before).cloned().collect(),
    ]
}

/// Returns the name of an interface without its version.
fn without_version(import: &str) -> &str {
    import.split_once('@').map_or(import, |(name, _)| name)
}

#[cfg(test)]
mod tests;
