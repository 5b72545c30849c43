//! Generated core modules that list prompts, resources and resource templates of any number and
//! size. The server converts the modules to components.

use super::layout::{MemoryLayout, memory_text};

/// A builder for a core module that implements contract 0.2.0. The module exports an interface only
/// if it lists an item of that interface.
///
/// Prompts have no messages, and resources have no content.
#[derive(Clone, Debug, Default)]
pub struct TinyCoreModule {
    prompts: Vec<[String; 2]>,
    resources: Vec<[String; 2]>,
    templates: Vec<[String; 2]>,
    completes: bool,
    before: Vec<(String, String)>,
}

impl TinyCoreModule {
    /// Creates a module that lists nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a prompt with this name and description.
    #[must_use]
    pub fn prompt(mut self, name: &str, description: &str) -> Self {
        self.prompts.push([name, description].map(str::to_owned));
        self
    }

    /// Adds a resource with this URI and name.
    #[must_use]
    pub fn resource(mut self, uri: &str, name: &str) -> Self {
        self.resources.push([uri, name].map(str::to_owned));
        self
    }

    /// Adds a resource template with this URI template and name.
    #[must_use]
    pub fn template(mut self, uri: &str, name: &str) -> Self {
        self.templates.push([uri, name].map(str::to_owned));
        self
    }

    /// Also exports `completion`. No argument has values.
    #[must_use]
    pub fn with_completion(mut self) -> Self {
        self.completes = true;
        self
    }

    /// Adds code that a function of the contract, such as `read-resource`, runs before it returns.
    #[must_use]
    pub fn before_function(mut self, function: &str, code: &str) -> Self {
        self.before.push((function.to_owned(), code.to_owned()));
        self
    }

    /// Builds the module.
    pub fn build(&self) -> Vec<u8> {
        let mut data = MemoryLayout::default();
        // The result of each function that does not list items: every member is absent and every
        // list is empty.
        let nothing = data.write_bytes(&[0; 64]);
        let mut functions = Vec::new();
        let mut export = |interface: &str, name: &str, parameters: usize, answer: usize| {
            let code = self
                .before
                .iter()
                .filter(|(function, _)| function == name)
                .map(|(_, code)| code.as_str());
            functions.push(format!(
                "\n(func (export \"toolbay:plugin/{interface}@0.2.0#{name}\") (param {}) (result i32) {} \
                 (i32.const {answer}))",
                "i32 ".repeat(parameters),
                code.collect::<String>()
            ));
        };
        if !self.prompts.is_empty() {
            let list = data.write_list(&self.prompts, |data, [name, description]| {
                data.encode_prompt(name, description)
            });
            export("prompts", "list-prompts", 0, list);
            export("prompts", "get-prompt", 4, nothing);
        }
        if !self.resources.is_empty() || !self.templates.is_empty() {
            let resources = data.write_list(&self.resources, |data, [uri, name]| {
                data.encode_resource(uri, name)
            });
            let templates = data.write_list(&self.templates, |data, [uri, name]| {
                data.encode_template(uri, name)
            });
            export("resources", "list-resources", 0, resources);
            export("resources", "list-resource-templates", 0, templates);
            export("resources", "read-resource", 2, nothing);
        }
        if self.completes {
            export("completion", "complete", 9, nothing);
        }
        let functions = functions.concat();
        let text = format!(
            "(module {} (export \"cabi_realloc\" (func $realloc)) {functions})",
            memory_text(&data.bytes)
        );
        wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{functions}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_exported() {
        let module = TinyCoreModule::new()
            .template("a://{b}", "a")
            .with_completion()
            .build();
        let has = |name: &str| {
            module
                .windows(name.len())
                .any(|window| window == name.as_bytes())
        };
        assert!(
            has("toolbay:plugin/resources@0.2.0#read-resource")
                && has("#complete")
                && !has("prompts")
        );
    }
}
