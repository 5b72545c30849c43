//! A validated prompt definition.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};
use toolbay_model::text::{clean_line, format_thousands};
use toolbay_model::{
    MAX_MCP_TOOL_NAME_BYTES, Prompt, PromptDefinition, SchemaViolation, is_tool_name,
};

use crate::definition::definition_meta::{check_icons, parse_meta};
use crate::definition::fingerprint::DefinitionFingerprint;

/// Maximum number of arguments of a prompt.
const MAX_ARGUMENTS: usize = 64;

/// Maximum number of argument names in an error.
const MAX_SHOWN_ARGUMENTS: usize = 8;

/// A validated prompt definition, shared by all offers built from it.
#[derive(Clone, Debug)]
pub struct PromptEntry {
    /// The prompt as listed to clients, but with its name within the plugin.
    pub prompt: Arc<Prompt>,
    /// Fingerprint of the definition. It differs for definitions that differ for clients.
    pub(crate) fingerprint: DefinitionFingerprint,
    /// The capabilities that a client must declare to get the prompt.
    pub required_capabilities: Map<String, Value>,
}

impl PromptEntry {
    /// Validates a definition.
    ///
    /// # Errors
    ///
    /// Returns a message that describes the problem.
    pub(crate) fn new(definition: PromptDefinition) -> Result<Self, String> {
        let name = definition.name;
        if !is_tool_name(&name) {
            return Err(format!(
                "prompt {name:?}: a name must have 1 to {MAX_MCP_TOOL_NAME_BYTES} characters of A-Z a-z 0-9 _ - ."
            ));
        }
        let error_message = |why: String| format!("prompt {name:?}: {why}");
        if definition.arguments.len() > MAX_ARGUMENTS {
            let n = format_thousands(definition.arguments.len() as u64);
            return Err(error_message(format!(
                "has {n} arguments, but at most {MAX_ARGUMENTS} are allowed"
            )));
        }
        let mut names = HashSet::new();
        for argument in &definition.arguments {
            let name = &argument.name;
            if !is_tool_name(name) {
                return Err(error_message(format!(
                    "the name of an argument must have 1 to {MAX_MCP_TOOL_NAME_BYTES} characters of A-Z a-z 0-9 _ - ., not {name:?}"
                )));
            }
            if !names.insert(name) {
                return Err(error_message(format!(
                    "two of its arguments are named {name:?}"
                )));
            }
        }
        let (meta, required_capabilities) = match &definition.meta {
            Some(text) => parse_meta(text).map_err(error_message)?,
            None => (None, Map::new()),
        };
        check_icons(&definition.icons).map_err(error_message)?;
        let prompt = Prompt {
            name,
            title: definition.title,
            description: definition.description,
            arguments: definition.arguments.into(),
            icons: definition.icons.into(),
            meta,
        };
        Ok(Self {
            fingerprint: DefinitionFingerprint::of_prompt(&prompt),
            prompt: Arc::new(prompt),
            required_capabilities,
        })
    }

    /// Returns the problems with the arguments of a request for the prompt: required arguments that
    /// are missing, and arguments that the prompt does not have. Empty if the request is valid.
    pub fn violations(&self, arguments: &BTreeMap<String, String>) -> Vec<SchemaViolation> {
        let declared = &self.prompt.arguments;
        let missing = declared
            .iter()
            .filter(|argument| argument.required && !arguments.contains_key(&argument.name));
        let missing = missing.map(|argument| SchemaViolation {
            pointer: String::new(),
            message: format!("{:?} is missing", argument.name),
        });
        let names: Vec<_> = declared
            .iter()
            .take(MAX_SHOWN_ARGUMENTS)
            .map(|argument| format!("{:?}", argument.name))
            .collect();
        let valid_names = match declared.len() {
            0 => "the prompt has no arguments".to_owned(),
            n if n > MAX_SHOWN_ARGUMENTS => {
                format!(
                    "its arguments are {} and {} more",
                    names.join(", "),
                    n - MAX_SHOWN_ARGUMENTS
                )
            }
            1 => format!("its only argument is {}", names.join("")),
            _ => format!("its arguments are {}", names.join(", ")),
        };
        let unknown = arguments
            .keys()
            .filter(|name| !declared.iter().any(|argument| argument.name == **name));
        let unknown = unknown
            .take(MAX_SHOWN_ARGUMENTS)
            .map(|name| SchemaViolation {
                pointer: String::new(),
                message: format!(
                    "the prompt has no argument {:?}; {valid_names}",
                    clean_line(name, MAX_MCP_TOOL_NAME_BYTES)
                ),
            });
        missing.chain(unknown).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use toolbay_model::PromptArgument;

    use super::*;

    /// Returns the entry of a prompt with these arguments. Those that end in `!` are required.
    pub(crate) fn prompt(name: &str, arguments: &[&str]) -> PromptEntry {
        let arguments = arguments.iter().map(|name| PromptArgument {
            name: name.trim_end_matches('!').into(),
            required: name.ends_with('!'),
            ..PromptArgument::default()
        });
        let arguments = arguments.collect();
        PromptEntry::new(PromptDefinition {
            name: name.into(),
            arguments,
            ..PromptDefinition::default()
        })
        .unwrap()
    }

    fn arguments(names: &[&str]) -> BTreeMap<String, String> {
        names
            .iter()
            .map(|name| ((*name).to_owned(), String::new()))
            .collect()
    }

    #[test]
    fn arguments_are_those_of_the_prompt() {
        let entry = prompt("a", &["code!", "language"]);
        assert_eq!(entry.violations(&arguments(&["code"])), []);
        assert_eq!(entry.violations(&arguments(&["code", "language"])), []);
        let said = |entry: &PromptEntry, names: &[&str]| {
            let all = entry.violations(&arguments(names));
            all.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("\n")
        };
        let many: Vec<String> = (0..1000).map(|n| format!("n{n:04}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(
            entry.violations(&arguments(&many)).len(),
            1 + MAX_SHOWN_ARGUMENTS,
            "an error does not grow with the request"
        );
        insta::assert_snapshot!([
            said(&entry, &["language", "colour"]),
            said(&prompt("a", &[]), &["\u{1b}[31m"]),
            said(&prompt("a", &["x"]), &["y"]),
            said(&prompt("a", &many[..10]), &["y"]),
        ].join("\n"), @r#"
        (root): "code" is missing
        (root): the prompt has no argument "colour"; its arguments are "code", "language"
        (root): the prompt has no argument ""; the prompt has no arguments
        (root): the prompt has no argument "y"; its only argument is "x"
        (root): the prompt has no argument "y"; its arguments are "n0000", "n0001", "n0002", "n0003", "n0004", "n0005", "n0006", "n0007" and 2 more
        "#);
    }

    #[test]
    fn invalid_definitions_are_refused() {
        let definition = |name: &str| PromptDefinition {
            name: name.into(),
            ..PromptDefinition::default()
        };
        let argument = |name: &str| PromptArgument {
            name: name.into(),
            ..PromptArgument::default()
        };
        let with = |arguments| PromptDefinition {
            arguments,
            ..definition("a")
        };
        let definitions = [
            definition(""),
            definition("a b"),
            with(vec![argument("a b")]),
            with(vec![argument("x"), argument("x")]),
            with(vec![argument("x"); 65]),
            PromptDefinition {
                meta: Some("7".into()),
                ..definition("a")
            },
        ];
        let said: Vec<String> = definitions
            .map(|definition| PromptEntry::new(definition).unwrap_err())
            .into();
        insta::assert_snapshot!(said.join("\n"), @r#"
        prompt "": a name must have 1 to 128 characters of A-Z a-z 0-9 _ - .
        prompt "a b": a name must have 1 to 128 characters of A-Z a-z 0-9 _ - .
        prompt "a": the name of an argument must have 1 to 128 characters of A-Z a-z 0-9 _ - ., not "a b"
        prompt "a": two of its arguments are named "x"
        prompt "a": has 65 arguments, but at most 64 are allowed
        prompt "a": its _meta must be a JSON object
        "#);
    }

    #[test]
    fn the_fingerprint_covers_what_clients_receive() {
        let definition = PromptDefinition {
            name: "a".into(),
            ..PromptDefinition::default()
        };
        let same = PromptEntry::new(definition.clone()).unwrap().fingerprint;
        assert_eq!(
            PromptEntry::new(definition.clone()).unwrap().fingerprint,
            same
        );
        for other in [
            PromptDefinition {
                title: Some("A".into()),
                ..definition.clone()
            },
            PromptDefinition {
                description: Some("A".into()),
                ..definition.clone()
            },
            PromptDefinition {
                arguments: vec![PromptArgument {
                    name: "x".into(),
                    ..PromptArgument::default()
                }],
                ..definition.clone()
            },
            PromptDefinition {
                meta: Some(r#"{"a":1}"#.into()),
                ..definition.clone()
            },
        ] {
            assert_ne!(PromptEntry::new(other).unwrap().fingerprint, same);
        }
    }
}
