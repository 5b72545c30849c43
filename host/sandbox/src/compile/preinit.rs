//! Instrumentation and snapshots of components: exposes the state of a component before its
//! initialization runs, and writes the resulting state into the file afterwards.
//!
//! Runs in the compiling child, because both the file and the state of the instance are untrusted.
//! The library is written for files of trusted origin and panics on unexpected input.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt as _;
use toolbay_model::text::clean_line;
use wasmparser::{Parser, Payload};
use wasmtime_wizer::{ComponentInstanceState, Wizer};

use crate::compile::memory_snapshot::{MemorySnapshot, SnapshotValue};
use crate::component::adapter;
use crate::component::concurrency;
use crate::component::export_limits::{ComponentKind, check_exports};
use crate::component::nested_component::NestedComponent;
use crate::component::wasm_proposals::WasmProposals;

/// Name of the custom section of an optimized file.
const OPTIMIZED_SECTION: &str = "toolbay-optimized";

/// Name of the initialization function that a component exports. Other pre-initialization tools use
/// the same name.
pub(crate) const INITIALIZE_EXPORT: &str = "wizer-initialize";

/// Name of the instance with the functions that expose the state of a component.
pub(crate) const ACCESS_EXPORT: &str = "wasmtime:wizer/access";

/// Maximum length of a quoted error of the library, in bytes.
const MAX_LIBRARY_ERROR_BYTES: usize = 300;

/// Advice for components that the library cannot process, by a part of its error message.
const LIBRARY_ADVICE: [(&str, &str); 9] = [
    (
        "nested components",
        "it is composed of several components; optimize these before they are composed",
    ),
    (
        "module aliases",
        "it is composed of several components; optimize these before they are composed",
    ),
    (
        "component aliases",
        "it is composed of several components; optimize these before they are composed",
    ),
    (
        "instantiated at most once",
        "it instantiates one of its core modules twice; optimize the components that it consists of",
    ),
    (
        "v128 globals",
        "one of its core modules has a global with 128 bits; compile it without SIMD (-msimd128)",
    ),
    (
        "reference type",
        "it keeps references in globals; compile it without reference types",
    ),
    (
        "unsupported `table.",
        "it can change its tables of functions as it runs, and their contents cannot become part of a file; compile it \
         without reference types and without loading code at run time",
    ),
    (
        ".drop` instruction",
        "it drops segments as it runs (bulk memory, threads); compile it without -pthread",
    ),
    (
        "__wizer_",
        "it was already prepared for initialization by another tool",
    ),
];

/// Returns the component with additional exports that expose its state.
///
/// # Errors
///
/// Returns the reason why it cannot be optimized.
pub(crate) fn instrument(file: Vec<u8>, wit: &str) -> Result<Vec<u8>, String> {
    let component = to_component(file, wit)?;
    if is_optimized(&component) {
        return Err("it is already optimized; optimize the original file".to_owned());
    }
    if WasmProposals::detect(&component)?.uses_gc() {
        return Err(
            "it makes objects that are garbage-collected (WebAssembly GC), and their heap cannot become part of a file"
                .to_owned(),
        );
    }
    match (
        check_exports(&component)?,
        concurrency::wasi_p3_requirements(&component),
    ) {
        (ComponentKind::Sync, concurrency::WasiP3Requirements::Nothing) => {}
        (ComponentKind::Invalid, _) => {
            return Err("invalid component: its exports cannot be read".to_owned());
        }
        _ => {
            return Err(
                "it has async functions or is for WASI 0.3, whose state cannot become part of a file; build it \
                        with synchronous functions, for WASI 0.2 (--sync for componentize-qjs)"
                    .to_owned(),
            );
        }
    }
    let instrument_bytes = |component: &[u8]| {
        let instrumented = wizer()
            .instrument_component(component)
            .map_err(|error| library_error_message(&error))?;
        Ok::<_, String>(instrumented.1)
    };
    catch_panic(|| match NestedComponent::find(&component) {
        Some(nested) => {
            let outer = nested.replace(&component, &instrument_bytes(nested.bytes_in(&component))?);
            Ok(nested.reexport(outer, ACCESS_EXPORT))
        }
        None => instrument_bytes(&component),
    })
}

/// Returns the component with the state in `image`.
///
/// # Errors
///
/// Returns the reason why it cannot be optimized.
pub(crate) fn snapshot(file: Vec<u8>, wit: &str, image: MemorySnapshot) -> Result<Vec<u8>, String> {
    let component = to_component(file, wit)?;
    let mut optimized = catch_panic(|| match NestedComponent::find(&component) {
        Some(nested) => Ok(nested.replace(
            &component,
            &write_state(nested.bytes_in(&component), image)?,
        )),
        None => write_state(&component, image),
    })?;
    optimized.extend(optimized_section());
    Ok(optimized)
}

/// Writes the state into a component.
fn write_state(component: &[u8], image: MemorySnapshot) -> Result<Vec<u8>, String> {
    let wizer = wizer();
    let (context, _) = wizer
        .instrument_component(component)
        .map_err(|error| library_error_message(&error))?;
    let mut state = SnapshotSource(image);
    let result = wizer
        .snapshot_component(&context, &mut state)
        .now_or_never();
    result
        .ok_or_else(unsupported_message)?
        .map_err(|error| library_error_message(&error))
}

fn to_component(file: Vec<u8>, wit: &str) -> Result<Vec<u8>, String> {
    adapter::componentize(file, wit).map(|adapted| adapted.component)
}

/// Returns the configured library. The initialization function stays exported, because the library
/// would also remove it from the core module, and the component would still refer to it.
fn wizer() -> Wizer {
    let mut wizer = Wizer::new();
    wizer.init_func(INITIALIZE_EXPORT).keep_init_func(true);
    wizer
}

/// Runs `work` and catches panics: the library panics on unexpected input.
fn catch_panic<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_panic| Err(unsupported_message()))
}

fn unsupported_message() -> String {
    "it cannot be optimized: it is built in a way whose state cannot become part of a file"
        .to_owned()
}

fn library_error_message(error: &wasmtime::Error) -> String {
    let why = clean_line(&format!("{error:#}"), MAX_LIBRARY_ERROR_BYTES);
    let advice = LIBRARY_ADVICE
        .iter()
        .find(|(fragment, _)| why.contains(fragment))
        .map(|(_, cure)| *cure);
    match advice {
        Some(cure) => format!("it cannot be optimized: {cure} ({why})"),
        None => format!("it cannot be optimized: {why}"),
    }
}

/// Returns the custom section that marks a file as optimized.
fn optimized_section() -> Vec<u8> {
    let mut section = vec![0, 0];
    for text in [OPTIMIZED_SECTION, env!("CARGO_PKG_VERSION")] {
        if text == OPTIMIZED_SECTION {
            section.push(u8::try_from(text.len()).unwrap_or_default());
        }
        section.extend(text.as_bytes());
    }
    let length = u8::try_from(section.len() - 2).unwrap_or_default();
    if let Some(byte) = section.get_mut(1) {
        *byte = length;
    }
    section
}

fn is_optimized(component: &[u8]) -> bool {
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component).map_while(Result::ok) {
        match payload {
            Payload::CustomSection(section)
                if depth == 0 && section.name() == OPTIMIZED_SECTION =>
            {
                return true;
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// The state of an instance, in the form that the library reads. Missing values are empty, which
/// the library reports.
struct SnapshotSource(MemorySnapshot);

impl ComponentInstanceState for SnapshotSource {
    async fn call_func_ret_list_u8(
        &mut self,
        _instance: &str,
        func: &str,
        contents: impl FnOnce(&[u8]) + Send,
    ) {
        match self.0.get(func) {
            Some(SnapshotValue::Memory(bytes)) => contents(bytes),
            _ => contents(&[]),
        }
    }

    async fn call_func_ret_s32(&mut self, _instance: &str, func: &str) -> i32 {
        match self.0.get(func) {
            Some(SnapshotValue::I32(value)) => *value,
            _ => 0,
        }
    }

    async fn call_func_ret_s64(&mut self, _instance: &str, func: &str) -> i64 {
        match self.0.get(func) {
            Some(SnapshotValue::I64(value)) => *value,
            _ => 0,
        }
    }

    async fn call_func_ret_f32(&mut self, _instance: &str, func: &str) -> u32 {
        match self.0.get(func) {
            Some(SnapshotValue::F32(bits)) => *bits,
            _ => 0,
        }
    }

    async fn call_func_ret_f64(&mut self, _instance: &str, func: &str) -> u64 {
        match self.0.get(func) {
            Some(SnapshotValue::F64(bits)) => *bits,
            _ => 0,
        }
    }
}
