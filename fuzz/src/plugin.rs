//! Generates components from bytes: arbitrary ones, and plugins whose code, data and types are
//! arbitrary.

use std::fmt::Write as _;
use std::sync::LazyLock;

use arbitrary::{Result, Unstructured};
use toolbay_testkit::{Tiny, Tool};
use wasm_smith::{Component, Config, MemoryOffsetChoices, Module};

/// Component text that imports and lowers the functions in [`FUNCTIONS`].
const HOST: &str = include_str!("../wat/host.wat");

/// The functions that a generated core module can import, with the core type of each.
const FUNCTIONS: [(&str, &str); 19] = [
    ("log", "(param i32 i32 i32)"),
    ("progress", "(param f64 i32 f64 i32 i32 i32)"),
    ("cancelled", "(result i32)"),
    ("config", "(param i32 i32 i32)"),
    ("config-all", "(param i32)"),
    ("number", "(result i64)"),
    ("bytes", "(param i64 i32)"),
    ("variables", "(param i32)"),
    ("arguments", "(param i32)"),
    ("block", "(param i32)"),
    ("poll", "(param i32 i32 i32)"),
    ("drop-pollable", "(param i32)"),
    ("now", "(result i64)"),
    ("subscribe", "(param i64) (result i32)"),
    ("check", "(param i32 i32)"),
    ("write", "(param i32 i32 i32 i32)"),
    ("ready", "(param i32) (result i32)"),
    ("drop-stream", "(param i32)"),
    ("stdout", "(result i32)"),
];

/// Schemas that random text is unlikely to contain.
const SCHEMAS: [&str; 5] = [
    r#"{"type":"object"}"#,
    r#"{"type":"object","required":["a"]}"#,
    r#"{"type":"object","properties":{"a":{"type":"string","pattern":"^a+$"}},"additionalProperties":false}"#,
    r##"{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"$ref":"#"}}}"##,
    r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}"#,
];

/// A module with the imports that a generated module may have.
static IMPORTS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut text = String::from(r#"(module (import "libc" "memory" (memory 0))"#);
    for (name, ty) in FUNCTIONS {
        let _ = write!(text, r#"(import "host" "{name}" (func {ty}))"#);
    }
    parse(&(text + ")"))
});

/// A module with the exports that a generated module has.
static EXPORTS: LazyLock<Vec<u8>> =
    LazyLock::new(|| parse(r#"(module (func (export "run") (result i32) unreachable))"#));

/// Returns the component that these bytes produce. A binary component is used as it is.
pub fn component(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.starts_with(b"\0as") {
        return Some(bytes.to_vec());
    }
    let mut input = Unstructured::new(bytes);
    let made = match input.arbitrary::<u8>().ok()? % 8 {
        0 => Component::new(config(&mut input).ok()?, &mut input)
            .map(|component| component.to_bytes()),
        kind => plugin(&mut input, kind),
    };
    made.ok()
}

/// Generates a plugin. It lists its tools and returns results like a normal plugin, unless its code
/// or its data are mutated.
fn plugin(input: &mut Unstructured<'_>, kind: u8) -> Result<Vec<u8>> {
    let mut plugin = Tiny::of(tools(input)?);
    if input.ratio(1, 4)? {
        plugin = plugin.answer(&text(input)?);
    }
    if input.ratio(1, 4)? {
        plugin = plugin.structured(if input.arbitrary()? {
            r#"{"a":"aaa"}"#
        } else {
            input.arbitrary()?
        });
    }
    let broken: Vec<(u16, u8)> = if input.ratio(1, 4)? {
        changes(input)?
    } else {
        Vec::new()
    };
    if kind >= 3 {
        let run = ["", "(drop (call $import))", "(return (call $import))"];
        plugin = plugin
            .before_list(run[input.choose_index(2)?])
            .before_call(run[input.choose_index(3)?]);
        plugin = plugin.core(r#"(import "host" "import" (func $import (result i32)))"#);
        // The rest of the input is code.
        plugin = plugin.imports(&with_module(&module(input)?));
    }
    let mut component = plugin.build();
    change_data(&mut component, &broken);
    Ok(component)
}

/// Returns component text with the host's functions and this module. The module's `run` is
/// `$import`.
fn with_module(module: &[u8]) -> String {
    let module = wasmprinter::print_bytes(module).expect("wasm-smith makes what is valid");
    let module = module
        .trim_start()
        .replacen("(module", "(core module $smith-module", 1);
    let mut given = String::new();
    for (name, _) in FUNCTIONS {
        let _ = write!(given, r#"(export "{name}" (func ${name}))"#);
    }
    format!(
        r#"{HOST}
  {module}
  (core instance $smith (instantiate $smith-module
    (with "libc" (instance $libc)) (with "host" (instance {given}))))
  (alias core export $smith "run" (core func $import))"#
    )
}

fn module(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let config = Config {
        available_imports: Some(IMPORTS.clone()),
        exports: Some(EXPORTS.clone()),
        allow_start_export: input.ratio(1, 8)?,
        ..config(input)?
    };
    Ok(Module::new(config, input)?.to_bytes())
}

/// Returns limits for small modules that use only features the engine supports, with occasional
/// exceptions.
fn config(input: &mut Unstructured<'_>) -> Result<Config> {
    let config = Config {
        max_aliases: 20,
        max_components: 3,
        max_data_segments: 4,
        max_element_segments: 4,
        max_elements: 20,
        max_exports: 10,
        max_funcs: 6,
        max_globals: 6,
        max_imports: 24,
        max_instances: 6,
        max_instructions: 80,
        max_memories: 3,
        max_modules: 4,
        max_nesting_depth: 3,
        max_table_elements: 30_000,
        max_tables: 3,
        max_tags: 0,
        max_type_size: 100,
        max_types: 12,
        max_values: 4,
        memory_offset_choices: MemoryOffsetChoices(60, 30, 10),
        exceptions_enabled: false,
        gc_enabled: false,
        threads_enabled: false,
        ..Config::default()
    };
    if !input.ratio(1, 16)? {
        return Ok(config);
    }
    Ok(Config {
        exceptions_enabled: input.arbitrary()?,
        gc_enabled: input.arbitrary()?,
        threads_enabled: input.arbitrary()?,
        memory64_enabled: input.arbitrary()?,
        custom_page_sizes_enabled: input.arbitrary()?,
        wide_arithmetic_enabled: input.arbitrary()?,
        generate_custom_sections: input.arbitrary()?,
        ..config
    })
}

fn tools(input: &mut Unstructured<'_>) -> Result<Vec<Tool>> {
    let count = if input.ratio(1, 8)? {
        input.int_in_range(0..=4)?
    } else {
        1
    };
    (0..count).map(|number| tool(input, number)).collect()
}

/// Generates a tool that is valid except for some of its members.
fn tool(input: &mut Unstructured<'_>, number: usize) -> Result<Tool> {
    let mut tool = Tool::new(&format!("tool-{number}"));
    if input.ratio(1, 8)? {
        tool.name = text(input)?;
    }
    if input.ratio(1, 8)? {
        tool.title = Some(text(input)?);
    }
    if input.ratio(1, 8)? {
        tool.description = Some(text(input)?);
    }
    if input.ratio(1, 4)? {
        tool.input = schema(input)?;
    }
    if input.ratio(1, 4)? {
        tool.output = Some(schema(input)?);
    }
    if input.ratio(1, 8)? {
        tool.icon = Some(text(input)?);
    }
    if input.ratio(1, 8)? {
        tool.meta = Some(if input.arbitrary()? {
            r#"{"a":1}"#.to_owned()
        } else {
            text(input)?
        });
    }
    tool.read_only = input.arbitrary()?;
    Ok(tool)
}

fn schema(input: &mut Unstructured<'_>) -> Result<String> {
    if input.ratio(1, 4)? {
        text(input)
    } else {
        Ok((*input.choose(&SCHEMAS)?).to_owned())
    }
}

/// Returns at most 100 bytes of the input as text, to leave the rest for other parts.
fn text(input: &mut Unstructured<'_>) -> Result<String> {
    let most = input.int_in_range(0..=100)?.min(input.len());
    Ok(String::from_utf8_lossy(input.bytes(most)?).into_owned())
}

/// Returns at most eight mutations, as positions and values.
fn changes(input: &mut Unstructured<'_>) -> Result<Vec<(u16, u8)>> {
    let count = input.int_in_range(1..=8)?;
    (0..count).map(|_| input.arbitrary()).collect()
}

/// Mutates bytes of the data in the component's first module: pointers, lengths, discriminants,
/// texts.
fn change_data(component: &mut [u8], changes: &[(u16, u8)]) {
    let Some((module, end)) = section(component, 0, 1) else {
        return;
    };
    let Some((data, end)) = section(&component[..end], module, 11) else {
        return;
    };
    for (place, byte) in changes {
        // Positions count from the end, because the descriptions of tools and results are written
        // last.
        if let Some(at) = end
            .checked_sub(1 + usize::from(*place))
            .filter(|at| *at > data + 8)
        {
            component[at] = *byte;
        }
    }
}

/// Returns start and end of the first section with this id in the binary that starts at `start`.
fn section(bytes: &[u8], start: usize, id: u8) -> Option<(usize, usize)> {
    let mut at = start + 8;
    loop {
        let found = *bytes.get(at)?;
        let mut length = 0;
        let mut shift = 0;
        loop {
            at += 1;
            let byte = *bytes.get(at)?;
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let begin = at + 1;
        if found == id {
            return Some((begin, begin + length));
        }
        at = begin + length;
    }
}

fn parse(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("the text of a module")
}
