//! The tools of {{name}}: the functions with `#[tool]` that `export!` lists.

use serde::{Deserialize, Serialize};
use toolbay_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GreetArgs {
    /// Who to greet.
    name: String,
    /// Whether to shout.
    #[serde(default)]
    excited: bool,
}

/// Greets somebody by name.
#[tool(read_only)]
fn {{ident}}_greet(args: GreetArgs) -> Result<String> {
    if args.name.trim().is_empty() {
        invalid!("name is empty: say who to greet");
    }
    Ok(if args.excited { format!("HELLO, {}!", args.name.to_uppercase()) } else { format!("Hello, {}.", args.name) })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CountArgs {
    /// Text to count.
    text: String,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Count {
    /// Unicode code points.
    characters: usize,
    /// What white space separates.
    words: usize,
    /// What line feeds separate.
    lines: usize,
}

/// Counts the characters, words and lines of a text.
#[tool(read_only)]
fn {{ident}}_count(args: CountArgs) -> Json<Count> {
    let lines = if args.text.is_empty() { 0 } else { args.text.split('\n').count() };
    Json(Count { characters: args.text.chars().count(), words: args.text.split_whitespace().count(), lines })
}

export!({{ident}}_greet, {{ident}}_count);

#[cfg(test)]
mod tests {
    use super::*;
    use toolbay_plugin::serde_json::json;
    use toolbay_plugin::test;

    fn greet(name: &str, excited: bool) -> Result<String> {
        {{ident}}_greet(GreetArgs { name: name.to_owned(), excited })
    }

    #[test]
    fn greets() {
        assert_eq!(greet("Ada", false).unwrap(), "Hello, Ada.");
        assert_eq!(greet("Ada", true).unwrap(), "HELLO, ADA!");
    }

    #[test]
    fn greets_nobody() {
        let error = greet(" ", false).unwrap_err();
        assert!(error.is_invalid_arguments());
        assert_eq!(error.message(), "name is empty: say who to greet");
    }

    #[test]
    fn counts() {
        let count = |text: &str| {{ident}}_count(CountArgs { text: text.to_owned() }).0;
        assert_eq!(count("one two\nthrée"), Count { characters: 13, words: 3, lines: 2 });
        assert_eq!(count(""), Count { characters: 0, words: 0, lines: 0 });
    }

    // Calls the tool with JSON, as the host does.
    #[test]
    fn takes_json() {
        let output = test::call::<{{ident}}_greet>(json!({"name": "Ada"}), &Context::test()).unwrap();
        assert_eq!(output.text(), "Hello, Ada.");
    }
}
