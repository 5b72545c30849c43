//! The tools of a generated component.

/// The definition of one tool.
#[derive(Clone, Debug)]
pub struct TinyTool {
    /// The tool's name.
    pub name: String,
    /// The tool's title.
    pub title: Option<String>,
    /// The tool's description.
    pub description: Option<String>,
    /// The JSON Schema of the arguments.
    pub input: String,
    /// The JSON Schema of the structured content.
    pub output: Option<String>,
    /// The annotation `readOnlyHint`.
    pub read_only: Option<bool>,
    /// The `src` of the icon.
    pub icon: Option<String>,
    /// The `_meta` of the tool, as JSON.
    pub meta: Option<String>,
}

impl TinyTool {
    /// Creates a tool that accepts any object. The description contains the name.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: None,
            description: Some(format!("Does {name}.")),
            input: r#"{"type":"object"}"#.to_owned(),
            output: None,
            read_only: None,
            icon: None,
            meta: None,
        }
    }
}
