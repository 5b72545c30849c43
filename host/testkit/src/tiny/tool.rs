//! A tool of a component that is made to measure.

/// What one tool says of itself.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub input: String,
    /// The JSON Schema of its structured content.
    pub output: Option<String>,
    /// The hint of that name.
    pub read_only: Option<bool>,
    /// The `src` of its icon.
    pub icon: Option<String>,
    /// Its `_meta`, as JSON.
    pub meta: Option<String>,
}

impl Tool {
    /// One that takes any object, and says what it does by its name.
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
