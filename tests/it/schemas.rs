//! The schemas of tools as clients receive them: every validator and every model API can read their
//! keywords.

use serde_json::{Value, json};

use crate::support::{Folder, MODERN, StdioServer, TinyComponent, TinyTool, ToolbayCommand};

fn with_input(name: &str, input: Value) -> TinyTool {
    TinyTool {
        input: input.to_string(),
        ..TinyTool::new(name)
    }
}

/// Builds a plugin with a tool of each kind that some client could not read.
fn unusual_plugin() -> Vec<u8> {
    let pair = json!({"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false, "minItems": 2});
    let tools = vec![
        TinyTool {
            output: Some(
                json!({"type": "object", "properties": {"pair": pair, "any": true}}).to_string(),
            ),
            ..TinyTool::new("result")
        },
        with_input(
            "tuple",
            json!({"type": "object", "properties": {"pair": pair}}),
        ),
        with_input(
            "boolean",
            json!({"type": "object", "properties": {"any": true, "none": false, "deep": {"items": true}},
                   "additionalProperties": false, "$defs": {"x": true}}),
        ),
        with_input(
            "size",
            json!({"type": "object", "properties": {"size": {"oneOf": [
                {"const": "s", "description": "Small"}, {"const": "l", "description": "Large"}]}}}),
        ),
        with_input(
            "tree",
            json!({"type": "object", "properties": {
                "tree": {"type": "object", "properties": {"child": {"$ref": "#/properties/tree"}}}}}),
        ),
    ];
    TinyComponent::with_tools(tools).with_echo().build()
}

fn listed_tool(server: &mut StdioServer, name: &str) -> Value {
    server
        .tools()
        .into_iter()
        .find(|tool| tool["name"] == name)
        .unwrap()
}

#[test]
fn every_revision_lists_schemas_that_all_validators_read() {
    let folder = Folder::with("odd.wasm", unusual_plugin());
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25", MODERN] {
        let mut server = StdioServer::start_with_revision(revision, &folder);
        server.wait_until_listed(&["boolean", "result", "size", "tree", "tuple"]);
        let tuple = listed_tool(&mut server, "tuple");
        let pair = json!({"prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 2, "maxItems": 2});
        assert_eq!(
            tuple["inputSchema"]["properties"]["pair"], pair,
            "{revision}"
        );
        if let Some(output) = listed_tool(&mut server, "result").get("outputSchema") {
            assert_eq!(
                output["properties"],
                json!({"pair": pair, "any": {}}),
                "{revision}"
            );
        }
        let boolean = listed_tool(&mut server, "boolean");
        assert_eq!(
            boolean["inputSchema"],
            json!({"type": "object", "properties": {"any": {}, "none": {"not": {}}, "deep": {"items": {}}},
                   "additionalProperties": false, "$defs": {"x": {}}}),
        );
        let size = listed_tool(&mut server, "size")["inputSchema"]["properties"]["size"].clone();
        assert_eq!(
            (&size["type"], &size["enum"]),
            (&json!("string"), &json!(["s", "l"])),
            "{size}"
        );
        assert_eq!(size["oneOf"][1]["description"], "Large");
        let tree = listed_tool(&mut server, "tree")["inputSchema"].clone();
        assert_eq!(
            tree["properties"]["tree"]["properties"]["child"]["$ref"], "#/$defs/tree",
            "{tree}"
        );
        assert_eq!(
            tree["$defs"]["tree"]["properties"]["child"]["$ref"], "#/$defs/tree",
            "{tree}"
        );
    }
}

#[test]
fn arguments_are_validated_against_the_original_schema_of_the_plugin() {
    let folder = Folder::with("odd.wasm", unusual_plugin());
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("tuple");
    assert_eq!(
        server.text("tuple", json!({"pair": ["a", 1]})),
        r#"{"pair":["a",1]}"#
    );
    let (kind, said) = server.failure("tuple", json!({"pair": ["a", 1, 2]}));
    assert_eq!(kind, "invalid-arguments");
    assert!(
        said.contains("/pair: has 3 items, but at most 2 are allowed"),
        "{said}"
    );
    let (kind, said) = server.failure("boolean", json!({"none": 1}));
    assert_eq!(kind, "invalid-arguments");
    assert!(
        said.contains("/none: this member is not allowed; leave it out"),
        "{said}"
    );
    let said = server.failure("boolean", json!({"nothing": 1})).1;
    let expected =
        "(root): \"nothing\" is not allowed: this object takes only \"any\", \"none\", \"deep\"";
    assert!(said.contains(expected), "{said}");
    assert_eq!(
        server.failure("size", json!({"size": "m"})).0,
        "invalid-arguments"
    );
    assert_eq!(
        server
            .failure("tree", json!({"tree": {"child": {"child": 1}}}))
            .0,
        "invalid-arguments"
    );
    assert_eq!(
        server.text("tree", json!({"tree": {"child": {}}})),
        r#"{"tree":{"child":{}}}"#
    );
}

#[test]
fn validators_of_clients_compile_every_schema_of_a_list() {
    let output = json!({"$schema": "http://json-schema.org/draft-04/schema#", "id": "urn:x", "type": "object",
        "properties": {"n": {"type": "number", "minimum": 0, "exclusiveMinimum": true}, "id": {"type": "string"}}});
    let input = json!({"$id": "urn:x", "type": "object", "properties": {
        "none": {"enum": []}, "text": {"anyOf": [{"type": "string"}], "nullable": true}}});
    let tool = TinyTool {
        output: Some(output.to_string()),
        ..with_input("old", input)
    };
    let component = TinyComponent::with_tools(vec![tool])
        .with_structured(r#"{"n": 0}"#)
        .build();
    let folder = Folder::with("old.wasm", component);
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("old");
    let tool = listed_tool(&mut server, "old");
    assert_eq!(
        tool["outputSchema"],
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
               "properties": {"n": {"type": "number", "exclusiveMinimum": 0}, "id": {"type": "string"}}}),
    );
    assert_eq!(
        tool["inputSchema"],
        json!({"type": "object",
               "properties": {"none": {"not": {}}, "text": {"anyOf": [{"type": "string"}]}}}),
    );
    assert_eq!(server.failure("old", json!({})).0, "invalid-output");
    assert_eq!(
        server.failure("old", json!({"text": null})).0,
        "invalid-arguments"
    );
}

#[test]
fn the_tool_list_has_the_same_bytes_each_time_and_after_a_restart() {
    let folder = Folder::with("odd.wasm", unusual_plugin());
    let list = |server: &mut StdioServer| server.result("tools/list", json!({})).to_string();
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("tuple");
    let first = list(&mut server);
    assert_eq!(list(&mut server), first);
    drop(server);
    let mut again = StdioServer::start(&folder);
    again.wait_for_tool("tuple");
    assert_eq!(list(&mut again), first);
}

#[test]
fn a_plugin_with_a_pattern_that_clients_cannot_compile_is_refused() {
    let folder = Folder::with("fine.wasm", TinyComponent::new(&["fine"]).build());
    let cases = [
        (
            "flag",
            "(?i)^x$",
            r#"at character 1, "(?i)""#,
            r#"write both cases, such as "[Aa]""#,
        ),
        (
            "name",
            "(?P<n>x)",
            r#"at character 1, "(?P<n>""#,
            r#"write "(?<n>""#,
        ),
        ("begin", r"\Ax", r#"at character 1, "\\A""#, r#"write "^""#),
        (
            "posix",
            "[[:alpha:]]",
            r#"at character 2, "[:alpha:]""#,
            r#"write "A-Za-z""#,
        ),
        (
            "greedy",
            "xa++",
            r#"at character 4, "+""#,
            r#"leave this "+" out"#,
        ),
    ];
    for (id, pattern, ..) in cases {
        let schema =
            json!({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}});
        let output = TinyTool {
            output: Some(schema.to_string()),
            ..TinyTool::new(id)
        };
        folder.put(
            &format!("{id}.wasm"),
            TinyComponent::with_tools(vec![output]).build(),
        );
    }
    let names = json!({"type": "object", "patternProperties": {"^\\_": {}}});
    folder.put(
        "names.wasm",
        TinyComponent::with_tools(vec![with_input("names", names)]).build(),
    );
    let said = ToolbayCommand::new(&folder).args(["list"]).run().stdout;
    for (id, _, place, instead) in cases {
        let line = said
            .lines()
            .find(|line| line.contains(&format!("tool {id:?}: its output schema")))
            .unwrap_or(&said);
        assert!(
            line.contains("/properties/x/pattern")
                && line.contains(place)
                && line.contains(instead),
            "{line}"
        );
    }
    assert!(
        said.contains("/patternProperties: the pattern") && said.contains(r#"write "_""#),
        "{said}"
    );
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["fine"]);
}

#[test]
fn check_reports_schemas_that_some_clients_cannot_read() {
    let folder = Folder::new();
    let pattern =
        json!({"type": "object", "properties": {"x": {"type": "string", "pattern": r"^\p{Lu}"}}});
    let tool = TinyTool {
        description: Some("x".repeat(2_049)),
        output: Some(
            json!({"type": "object", "properties": {
                "at": {"type": "string", "format": "date-time"}, "constructor": {"type": "number", "multipleOf": 0.01},
            }})
            .to_string(),
        ),
        ..with_input("a.b", pattern)
    };
    let long = TinyTool::new(&"y".repeat(51));
    std::fs::write(
        folder.sibling_path("odd.wasm"),
        TinyComponent::with_tools(vec![tool, long]).build(),
    )
    .unwrap();
    let said = ToolbayCommand::new(&folder)
        .args(["check", folder.sibling_path("odd.wasm").to_str().unwrap()])
        .run()
        .stdout;
    for note in [
        r#"! tool "a.b": clients in JavaScript take the member "constructor" for a part of the language"#,
        r#"! tool "a.b": clients in JavaScript and Python refuse many multiples of 0.01"#,
        r#"! tool "a.b": validators in Python refuse the pattern "^\\p{Lu}""#,
        r#"! tool "a.b": the description has 2,049 characters, and clients cut it after 2,048"#,
        r#"! tool "a.b": some clients refuse results that do not have the format "date-time", which Toolbay does not check"#,
        r#"! some clients reject tool names with characters other than A-Z a-z 0-9 _ -: "a.b""#,
        r#"such as "mcp__toolbay__": "yyyyy"#,
    ] {
        assert!(said.contains(note), "{note}\n{said}");
    }
}

#[test]
fn names_have_the_separator_of_the_grant() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
    folder.put("a.toml", "prefix = \"acme\"");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["acme_one"]);
    assert!(
        !ToolbayCommand::new(&folder)
            .args(["list"])
            .run()
            .stdout
            .contains("some clients reject")
    );
    folder.overwrite("a.toml", "prefix = \"acme\"\nseparator = \".\"");
    server.wait_until_listed(&["acme.one"]);
    assert_eq!(server.text("acme.one", json!({})), "fine");
    let said = ToolbayCommand::new(&folder).args(["list"]).run().stdout;
    assert!(
        said.contains(
            r#"some clients reject tool names with characters other than A-Z a-z 0-9 _ -: "acme.one""#
        ),
        "{said}"
    );
    folder.overwrite("a.toml", "prefix = \"acme\"\nseparator = \"-\"");
    let refused = ToolbayCommand::new(&folder).args(["list"]).run();
    assert!(
        refused.stdout.contains("a.toml:2:13: separator:"),
        "{refused}"
    );
    assert_eq!(
        server.tool_names(),
        ["acme.one"],
        "the grant before it is in force"
    );
}

/// A schema for each construct that the model APIs treat differently.
const CONSTRUCTS: &str = include_str!("../clients/constructs.json");

#[test]
fn every_construct_is_listed_in_both_forms() {
    let constructs: serde_json::Map<String, Value> = serde_json::from_str(CONSTRUCTS).unwrap();
    let tools = constructs
        .iter()
        .map(|(name, schema)| with_input(name, schema.clone()));
    let folder = Folder::with(
        "constructs.wasm",
        TinyComponent::with_tools(tools.collect()).build(),
    );
    for form in ["standard", "portable"] {
        let mut server =
            StdioServer::start_with_config(&folder, &format!("[server]\nschemas = \"{form}\"\n"));
        server.wait_for_tool("tuple");
        let listed: serde_json::Map<String, Value> = server
            .tools()
            .into_iter()
            .map(|tool| {
                (
                    tool["name"].as_str().unwrap().to_owned(),
                    tool["inputSchema"].clone(),
                )
            })
            .collect();
        assert_eq!(listed.len(), constructs.len());
        insta::assert_snapshot!(
            format!("constructs_{form}"),
            format!("{:#}", Value::Object(listed))
        );
    }
}
