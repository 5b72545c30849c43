//! Generated components of a few hundred bytes. They compile in a millisecond, so a test can use
//! hundreds of them. They can also be invalid in ways that no toolchain produces.
//!
//! A component consists of two core modules. `libc` has the memory, laid out according to the
//! canonical ABI of `wit/plugin.wit`. `main` has the code.

#![allow(
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a component that cannot be made fails the test that wants it"
)]

mod core_module;
mod layout;
mod tool;

pub use self::core_module::TinyCoreModule;
use self::layout::{MemoryLayout, encode_words, memory_text};
pub use self::tool::TinyTool;

/// A builder for a component whose tools return the same text for every call.
#[derive(Clone, Debug)]
pub struct TinyComponent {
    tools: Vec<TinyTool>,
    text: String,
    structured: Option<String>,
    imports: String,
    core: String,
    list: Option<String>,
    call: Option<String>,
    echo: bool,
}

impl TinyComponent {
    /// Creates a component with tools of these names.
    pub fn new(names: &[&str]) -> Self {
        Self::with_tools(names.iter().map(|name| TinyTool::new(name)).collect())
    }

    /// Creates a component with these tools.
    pub fn with_tools(tools: Vec<TinyTool>) -> Self {
        let answer = "fine".to_owned();
        Self {
            tools,
            text: answer,
            structured: None,
            imports: String::new(),
            core: String::new(),
            list: None,
            call: None,
            echo: false,
        }
    }

    /// Sets the text that every call returns.
    #[must_use]
    pub fn with_text(mut self, text: &str) -> Self {
        text.clone_into(&mut self.text);
        self
    }

    /// Makes every call return its arguments, as JSON text.
    #[must_use]
    pub fn with_echo(mut self) -> Self {
        self.echo = true;
        self
    }

    /// Sets the structured content that every call returns.
    #[must_use]
    pub fn with_structured(mut self, json: &str) -> Self {
        self.structured = Some(json.to_owned());
        self
    }

    /// Sets the imports of the component, in the text format.
    /// [`with_core_items`](Self::with_core_items) can import the core function that is named
    /// `$import` in `component_text`, as `"host" "import"`.
    #[must_use]
    pub fn with_imports(mut self, text: &str) -> Self {
        text.clone_into(&mut self.imports);
        self
    }

    /// Sets additional items of the core module `main`, in the text format: imports, memories,
    /// tables or a start function.
    #[must_use]
    pub fn with_core_items(mut self, text: &str) -> Self {
        text.clone_into(&mut self.core);
        self
    }

    /// Sets code that `list-tools` runs before it returns.
    #[must_use]
    pub fn before_list(mut self, code: &str) -> Self {
        self.list = Some(code.to_owned());
        self
    }

    /// Sets code that `call-tool` runs before it returns.
    #[must_use]
    pub fn before_call(mut self, code: &str) -> Self {
        self.call = Some(code.to_owned());
        self
    }

    /// Builds the component.
    pub fn build(&self) -> Vec<u8> {
        let text = self.component_text();
        wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// Builds the component after replacing parts of its text, for components that no toolchain
    /// produces.
    pub fn build_edited(&self, edits: &[(&str, &str)]) -> Vec<u8> {
        let mut text = self.component_text();
        for (from, to) in edits {
            assert!(text.contains(from), "{from:?} is not in\n{text}");
            text = text.replace(from, to);
        }
        wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// Builds the same tools as a core module, in the form that compilers emit.
    pub fn build_core_module(&self) -> Vec<u8> {
        let (data, list, answer) = self.lay_out_memory();
        let text = format!(
            r#"(module {libc}
    (export "cabi_realloc" (func $realloc))
    (func (export "toolbay:plugin/tools@0.1.0#list-tools") (result i32) (i32.const {list}))
    (func (export "toolbay:plugin/tools@0.1.0#call-tool") (param i32 i32 i32 i32) (result i32) (i32.const {answer})))"#,
            libc = memory_text(&data.bytes),
        );
        wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// Returns the content of the memory and the addresses of the list of tools and of the result.
    fn lay_out_memory(&self) -> (MemoryLayout, usize, usize) {
        let mut data = MemoryLayout::default();
        let tools: Vec<u8> = self
            .tools
            .iter()
            .flat_map(|tool| data.encode_tool(tool))
            .collect();
        let list = data.write_bytes(&tools);
        let list = data.write_bytes(&encode_words(&[list, self.tools.len()]));
        let output = data.encode_output(&self.text, self.structured.as_deref());
        let answer = data.write_bytes(&output);
        (data, list, answer)
    }

    fn component_text(&self) -> String {
        let (data, list, answer) = self.lay_out_memory();
        // The code overwrites the address and the length of the text in the result's only block.
        let echo = if self.echo {
            format!(
                "(i32.store offset=8 (i32.load offset=4 (i32.const {answer})) (local.get $arguments))
      (i32.store offset=12 (i32.load offset=4 (i32.const {answer})) (local.get $arguments-length))"
            )
        } else {
            String::new()
        };
        let with = if self.imports.contains("$import") {
            r#"(with "host" (instance (export "import" (func $import))))"#
        } else {
            ""
        };
        format!(
            r#"(component
  {CONTRACT_TYPES}
  (core module $libc-module {libc})
  (core instance $libc (instantiate $libc-module))
  (alias core export $libc "memory" (core memory $memory))
  (alias core export $libc "realloc" (core func $realloc))
  {imports}
  (core module $main-module
    (import "libc" "memory" (memory 0))
    {core}
    (func (export "list-tools") (result i32) {before_list} (i32.const {list}))
    (func (export "call-tool") (param $name i32) (param $name-length i32) (param $arguments i32)
      (param $arguments-length i32) (result i32) {before_call} {echo} (i32.const {answer})))
  (core instance $main (instantiate $main-module (with "libc" (instance $libc)) {with}))
  (alias core export $main "list-tools" (core func $main-list))
  (alias core export $main "call-tool" (core func $main-call))
  (func $list (result (list $tool-definition))
    (canon lift (core func $main-list) (memory $memory) (realloc $realloc)))
  (func $call (param "name" string) (param "arguments" string) (result (result $output (error $failure)))
    (canon lift (core func $main-call) (memory $memory) (realloc $realloc)))
  (instance $tools (export "list-tools" (func $list)) (export "call-tool" (func $call)))
  (export "toolbay:plugin/tools@0.1.0" (instance $tools)))"#,
            libc = memory_text(&data.bytes),
            imports = self.imports,
            core = self.core,
            before_list = self.list.as_deref().unwrap_or_default(),
            before_call = self.call.as_deref().unwrap_or_default(),
        )
    }
}

/// The types of `wit/plugin.wit`, imported in the way that every toolchain does.
const CONTRACT_TYPES: &str = r#"
  (import "toolbay:plugin/types@0.1.0" (instance $types
    (type $hints' (record (field "read-only" (option bool)) (field "destructive" (option bool))
      (field "idempotent" (option bool)) (field "open-world" (option bool))))
    (export "annotations" (type $annotations (eq $hints')))
    (type $theme' (enum "light" "dark"))
    (export "theme" (type $theme (eq $theme')))
    (type $icon' (record (field "src" string) (field "mime-type" (option string)) (field "sizes" (list string))
      (field "theme" (option $theme))))
    (export "icon" (type $icon (eq $icon')))
    (type $tool' (record (field "name" string) (field "title" (option string)) (field "description" (option string))
      (field "input-schema" string) (field "output-schema" (option string)) (field "annotations" (option $annotations))
      (field "icons" (list $icon)) (field "meta" (option string))))
    (export "tool-definition" (type $tool-definition (eq $tool')))
    (type $kind' (enum "text" "image" "audio" "resource-link" "embedded-resource"))
    (export "content-kind" (type $kind (eq $kind')))
    (type $audience' (enum "user" "assistant"))
    (export "audience" (type $audience (eq $audience')))
    (type $content' (record (field "kind" $kind) (field "text" (option string)) (field "data" (option (list u8)))
      (field "mime-type" (option string)) (field "uri" (option string)) (field "name" (option string))
      (field "title" (option string)) (field "description" (option string)) (field "size" (option u64))
      (field "audience" (list $audience)) (field "priority" (option f64))))
    (export "content" (type $content (eq $content')))
    (type $output' (record (field "content" (list $content)) (field "structured" (option string))
      (field "meta" (option string))))
    (export "output" (type $output (eq $output')))
    (type $failure' (variant (case "invalid-arguments" string) (case "failed" string)))
    (export "failure" (type $failure (eq $failure')))))
  (alias export $types "tool-definition" (type $tool-definition))
  (alias export $types "output" (type $output))
  (alias export $types "failure" (type $failure))"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_made_and_edited() {
        let tiny = TinyComponent::with_tools(vec![TinyTool {
            meta: Some("{}".to_owned()),
            ..TinyTool::new("a")
        }])
        .with_text("hi")
        .with_structured("{}");
        assert!(tiny.build().starts_with(b"\0asm\x0d\0\x01\0"));
        assert!(tiny.build_core_module().starts_with(b"\0asm\x01\0\0\0"));
        let edited = tiny.build_edited(&[(
            "\"toolbay:plugin/tools@0.1.0\"",
            "\"toolbay:plugin/tools@9.9.9\"",
        )]);
        assert!(edited.windows(5).any(|window| window == b"9.9.9"));
        assert!(tiny.with_echo().build().starts_with(b"\0asm\x0d\0\x01\0"));
    }
}
