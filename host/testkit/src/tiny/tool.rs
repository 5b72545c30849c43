//! The tools of a generated component.

/// The definition of one tool.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: Option<String>,
    /// The tool's description.
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub input: String,
    /// The JSON Schema of its structured content.
    pub output: Option<String>,
    /// The annotation `readOnlyHint`.
    pub read_only: Option<bool>,
    /// The `src` of its icon.
    pub icon: Option<String>,
    /// Its `_meta`, as JSON.
    pub meta: Option<String>,
}

impl Tool {
    /// A tool that accepts any object. Its description contains its name.
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
