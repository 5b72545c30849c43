//! Checks that a grant matches a component: it is for this component, and names only its tools.

use std::collections::{BTreeMap, BTreeSet};

use toolbay_model::Digest;
use toolbay_settings::toml_file::nearest;

use crate::definition::component_contents::ComponentContents;
use crate::rules::grant::Grant;

/// Maximum number of tools that a message lists.
const MAX_LISTED_NAMES: usize = 12;
use crate::version::plugin::tool_name;

impl Grant {
    /// Checks that the grant is for the component of the plugin `id` with this digest, and names
    /// only tools that the component has. A setting of a tool can be a restriction, which would
    /// silently have no effect if the name were misspelled. Slow for thousands of tools.
    ///
    /// # Errors
    ///
    /// Returns the mismatch, with the nearest name.
    pub fn check_component(
        &self,
        id: &str,
        digest: Digest,
        contents: &ComponentContents,
        is_command: bool,
    ) -> Result<(), String> {
        let schema = self
            .tools
            .iter()
            .find(|(_, tool)| !is_command && tool.input_schema.is_some());
        if let Some((name, _)) = schema {
            return Err(format!(
                "tools.{name}.input_schema: the plugin defines its tools' arguments itself; only a command can \
                 have a schema here"
            ));
        }
        let component_tools = contents
            .tools
            .iter()
            .map(|definition| definition.tool.name.clone());
        // The tool of a command is named after its plugin.
        let tool_names: Vec<String> = if is_command {
            vec![tool_name(id)]
        } else {
            component_tools.collect()
        };
        self.check_names(digest, &tool_names, &contents.left_out)
    }

    /// Returns whether [`Grant::check_component`] has anything to compare.
    pub(crate) fn names_component(&self) -> bool {
        self.component.is_some() || self.enabled_tools.is_some() || !self.tools.is_empty()
    }

    /// Checks that the names in the grant are names of the plugin's tools. `left_out` has the
    /// reason for each tool that is left out.
    fn check_names(
        &self,
        digest: Digest,
        tools: &[String],
        left_out: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        if let Some(pinned) = self.component.filter(|pinned| *pinned != digest) {
            let prefix = Digest::PREFIX;
            return Err(format!(
                "component: the grant is for the file with {prefix}{pinned}, and this one has {prefix}{digest}; if you \
                 trust it, change the grant"
            ));
        }
        let tool_names: BTreeSet<&str> = tools.iter().map(String::as_str).collect();
        let omitted =
            |why: &str| format!("this tool is left out, because its definition is invalid: {why}");
        let suggestion =
            |name: &str| match nearest(name, &tool_names.iter().copied().collect::<Vec<_>>()) {
                Some(near) => format!("; did you mean {near:?}?"),
                None => list_names(&tool_names),
            };
        if let Some(name) = self
            .tools
            .keys()
            .find(|name| !tool_names.contains(name.as_str()))
        {
            if let Some(why) = left_out.get(name.as_str()) {
                return Err(format!("tools.{name}: {}", omitted(why)));
            }
            return Err(format!(
                "tools.{name}: the plugin has no tool with this name{}",
                suggestion(name)
            ));
        }
        for pattern in self.enabled_tools.iter().flatten() {
            if !tool_names.iter().any(|name| pattern.matches(name)) {
                let text = pattern.as_str();
                if let Some((_, why)) = left_out.iter().find(|(name, _)| pattern.matches(name)) {
                    return Err(format!("enabled_tools: {text:?}: {}", omitted(why)));
                }
                return Err(format!(
                    "enabled_tools: the plugin has no tool {text:?}{}",
                    suggestion(&text.replace('*', ""))
                ));
            }
        }
        Ok(())
    }

    /// Returns whether `enabled_tools` includes the tool `name` (without the prefix). Ignores
    /// whether the tool is disabled.
    pub(crate) fn offers(&self, name: &str) -> bool {
        self.enabled_tools
            .as_ref()
            .is_none_or(|patterns| patterns.iter().any(|pattern| pattern.matches(name)))
    }
}

/// Returns the end of a message that lists the names of tools; empty if there are too many.
fn list_names(tool_names: &BTreeSet<&str>) -> String {
    match tool_names.len() {
        0 => "; it has no tools".to_owned(),
        1..=MAX_LISTED_NAMES => {
            let names: Vec<&str> = tool_names.iter().copied().collect();
            format!("; its tools are {}", names.join(", "))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parse(text: &str) -> Result<Grant, String> {
        Grant::parse("a.toml", text, Path::new("/plugins"))
    }

    #[test]
    fn a_grant_names_only_tools_of_the_plugin() {
        let digest = Digest::new([7; 32]);
        let pinned = "07".repeat(32);
        let tools = ["slugify".to_owned(), "read_file".to_owned()];
        let left_out = BTreeMap::from([(
            "erase_all".to_owned(),
            "its input schema must be a JSON object".to_owned(),
        )]);
        let check =
            |text: &str| parse(text).and_then(|grant| grant.check_names(digest, &tools, &left_out));
        for text in [
            String::new(),
            "[tools.slugify]\ndisabled = true".to_owned(),
            "enabled_tools = [\"read_*\"]".to_owned(),
            format!("component = \"sha256:{pinned}\""),
        ] {
            assert_eq!(check(&text), Ok(()), "{text}");
        }
        let wrong = [
            "[tools.slugifi]\nrequire_approval = \"always\"",
            "[tools.erase]\ndisabled = true",
            "enabled_tools = [\"raed_*\"]",
            "enabled_tools = [\"slugify\", \"erase\"]",
            "enabled_tools = []",
            "enabled_tools = [\"read file\"]",
            "enabled_tools = \"read_*\"",
            "component = \"sha256:07\"",
            "component = \"07\"",
        ];
        let said: Vec<String> = wrong.iter().map(|text| check(text).unwrap_err()).collect();
        insta::assert_snapshot!(said.join("\n"));
        for text in [
            "[tools.erase_all]\nrequire_approval = \"always\"",
            "enabled_tools = [\"erase_*\"]",
        ] {
            let why = check(text).unwrap_err();
            assert!(
                why.ends_with(
                    "because its definition is invalid: its input schema must be a JSON object"
                ),
                "{why}"
            );
        }
        let why = check(&format!("component = \"sha256:{}\"", "0A".repeat(32))).unwrap_err();
        assert!(
            why.contains(&"0a".repeat(32)) && why.contains(&pinned),
            "{why}"
        );
    }
}
