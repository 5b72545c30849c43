//! Components of a few hundred bytes, made to measure: they compile in a
//! millisecond, so that a test can have hundreds, and they can be wrong in ways
//! that no toolchain is.
//!
//! A component is made of two core modules: `libc` has the memory, laid out by
//! the canonical ABI of `wit/plugin.wit`, and `main` has the code.

use std::fmt::Write as _;

/// Where the data begins: nothing is at address zero.
const BASE: usize = 1024;

/// What one tool says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) input: String,
    pub(crate) output: Option<String>,
    pub(crate) read_only: Option<bool>,
    pub(crate) icon: Option<String>,
    pub(crate) meta: Option<String>,
}

impl Tool {
    pub(crate) fn new(name: &str) -> Self {
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

/// A component that answers every call of its tools with the same text.
#[derive(Clone, Debug)]
pub(crate) struct Tiny {
    tools: Vec<Tool>,
    answer: String,
    structured: Option<String>,
    imports: String,
    core: String,
    list: Option<String>,
    call: Option<String>,
}

impl Tiny {
    /// With tools of these names.
    pub(crate) fn new(names: &[&str]) -> Self {
        Self::of(names.iter().map(|name| Tool::new(name)).collect())
    }

    /// With these tools.
    pub(crate) fn of(tools: Vec<Tool>) -> Self {
        let answer = "fine".to_owned();
        Self { tools, answer, structured: None, imports: String::new(), core: String::new(), list: None, call: None }
    }

    /// Sets the text that every call answers.
    pub(crate) fn answer(mut self, text: &str) -> Self {
        text.clone_into(&mut self.answer);
        self
    }

    /// Sets the structured content that every call answers.
    pub(crate) fn structured(mut self, json: &str) -> Self {
        self.structured = Some(json.to_owned());
        self
    }

    /// Adds imports to the component, as component text. Core functions in it
    /// that are called `$import` can be imported by [`core`](Self::core) as
    /// `"host" "import"`.
    pub(crate) fn imports(mut self, text: &str) -> Self {
        text.clone_into(&mut self.imports);
        self
    }

    /// Adds items to the core module with the code, as text: imports, memories, tables, a start function.
    pub(crate) fn core(mut self, text: &str) -> Self {
        text.clone_into(&mut self.core);
        self
    }

    /// Has `list-tools` do this before it answers.
    pub(crate) fn before_list(mut self, code: &str) -> Self {
        self.list = Some(code.to_owned());
        self
    }

    /// Has `call-tool` do this before it answers.
    pub(crate) fn before_call(mut self, code: &str) -> Self {
        self.call = Some(code.to_owned());
        self
    }

    /// The component.
    pub(crate) fn build(&self) -> Vec<u8> {
        let text = self.text();
        wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// The same tools as a core module, as compilers leave it before it becomes a component.
    pub(crate) fn module(&self) -> Vec<u8> {
        let (data, list, answer) = self.data();
        let text = format!(
            r#"(module {libc}
    (export "cabi_realloc" (func $realloc))
    (func (export "toolbay:plugin/tools@0.1.0#list-tools") (result i32) (i32.const {list}))
    (func (export "toolbay:plugin/tools@0.1.0#call-tool") (param i32 i32 i32 i32) (result i32) (i32.const {answer})))"#,
            libc = libc(&data.bytes),
        );
        wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// What is in memory, and where in it the tools and the answer are.
    fn data(&self) -> (Data, usize, usize) {
        let mut data = Data::default();
        let tools: Vec<u8> = self.tools.iter().flat_map(|tool| definition(&mut data, tool)).collect();
        let list = data.put(&tools);
        let list = data.put(&words(&[list, self.tools.len()]));
        let output = output(&mut data, &self.answer, self.structured.as_deref());
        let answer = data.put(&output);
        (data, list, answer)
    }

    fn text(&self) -> String {
        let (data, list, answer) = self.data();
        let with = if self.imports.contains("$import") {
            r#"(with "host" (instance (export "import" (func $import))))"#
        } else {
            ""
        };
        format!(
            r#"(component
  {TYPES}
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
      (param $arguments-length i32) (result i32) {before_call} (i32.const {answer})))
  (core instance $main (instantiate $main-module (with "libc" (instance $libc)) {with}))
  (alias core export $main "list-tools" (core func $main-list))
  (alias core export $main "call-tool" (core func $main-call))
  (func $list (result (list $tool-definition))
    (canon lift (core func $main-list) (memory $memory) (realloc $realloc)))
  (func $call (param "name" string) (param "arguments" string) (result (result $output (error $failure)))
    (canon lift (core func $main-call) (memory $memory) (realloc $realloc)))
  (instance $tools (export "list-tools" (func $list)) (export "call-tool" (func $call)))
  (export "toolbay:plugin/tools@0.1.0" (instance $tools)))"#,
            libc = libc(&data.bytes),
            imports = self.imports,
            core = self.core,
            before_list = self.list.as_deref().unwrap_or_default(),
            before_call = self.call.as_deref().unwrap_or_default(),
        )
    }
}

/// The types of `wit/plugin.wit`, imported as every toolchain does.
const TYPES: &str = r#"
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

/// A memory with `data` in it, and an allocator that never frees.
fn libc(data: &[u8]) -> String {
    let mut literal = String::new();
    for byte in data {
        let _ = write!(literal, "\\{byte:02x}");
    }
    let end = BASE + data.len();
    let pages = end / 65536 + 1;
    format!(
        r#"(memory (export "memory") {pages})
    (data (i32.const {BASE}) "{literal}")
    (global $next (mut i32) (i32.const {end}))
    (func $realloc (export "realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 15)) (i32.const -16)))
      (global.set $next (i32.add (local.get $at) (local.get 3)))
      (block $fits (loop $more
        (br_if $fits (i32.le_u (global.get $next) (i32.shl (memory.size) (i32.const 16))))
        (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable))
        (br $more)))
      (local.get $at))"#
    )
}

/// What will be in memory, from [`BASE`] on.
#[derive(Default)]
struct Data {
    bytes: Vec<u8>,
}

impl Data {
    /// Puts bytes at an address that suits every type.
    fn put(&mut self, bytes: &[u8]) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = BASE + self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        at
    }

    /// `string`.
    fn string(&mut self, text: &str) -> Vec<u8> {
        words(&[self.put(text.as_bytes()), text.len()])
    }

    /// `option<string>`.
    fn optional(&mut self, text: Option<&str>) -> Vec<u8> {
        match text {
            Some(text) => [words(&[1]), self.string(text)].concat(),
            None => words(&[0, 0, 0]),
        }
    }
}

fn words(values: &[usize]) -> Vec<u8> {
    values.iter().flat_map(|value| u32::try_from(*value).unwrap().to_le_bytes()).collect()
}

/// `tool-definition`: 84 bytes.
fn definition(data: &mut Data, tool: &Tool) -> Vec<u8> {
    let icons = match &tool.icon {
        Some(src) => {
            let icon = [data.string(src), words(&[0, 0, 0, 0, 0, 0])].concat();
            words(&[data.put(&icon), 1])
        }
        None => words(&[0, 0]),
    };
    let annotations = match tool.read_only {
        // Some, and in it read-only, and three that are not there.
        Some(yes) => [1, 1, u8::from(yes), 0, 0, 0, 0, 0, 0, 0, 0, 0],
        None => [0; 12],
    };
    [
        data.string(&tool.name),
        data.optional(tool.title.as_deref()),
        data.optional(tool.description.as_deref()),
        data.string(&tool.input),
        data.optional(tool.output.as_deref()),
        annotations.to_vec(),
        icons,
        data.optional(tool.meta.as_deref()),
    ]
    .concat()
}

/// `result<output, failure>`, with one text block.
fn output(data: &mut Data, answer: &str, structured: Option<&str>) -> Vec<u8> {
    // `kind` 0 is text; every other member of the 128 bytes is absent.
    let mut content = [words(&[0]), data.optional(Some(answer))].concat();
    content.resize(128, 0);
    let content = data.put(&content);
    [words(&[0, content, 1]), data.optional(structured), data.optional(None)].concat()
}

impl Tiny {
    /// The component, with some of its text replaced: for what no generator makes.
    pub(crate) fn edited(&self, edits: &[(&str, &str)]) -> Vec<u8> {
        let mut text = self.text();
        for (from, to) in edits {
            assert!(text.contains(from), "{from:?} is not in\n{text}");
            text = text.replace(from, to);
        }
        wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }
}
