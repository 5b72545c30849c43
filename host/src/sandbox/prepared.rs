//! A component that is compiled, checked and linked: all that can be done before the first call.

use std::fmt;

use thiserror::Error;
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Engine, Store};
use wasmtime_wasi::p2::bindings::CommandPre;

use super::bindings::toolbay::plugin::types;
use super::bindings::{Plugin, PluginPre};
use super::docs::Docs;
use super::functions::{self, Functions};
use super::state::State;
use super::{command, output};
use crate::definition::Description;

/// The export that makes a component a plugin.
const TOOLS: &str = "toolbay:plugin/tools";

/// The export that makes it a command.
const RUN: &str = "wasi:cli/run";

/// What every import of a plugin begins with: these are linked always, and a
/// grant decides what they may do.
const WORLD: [&str; 8] = [
    "toolbay:plugin/",
    "wasi:cli/",
    "wasi:clocks/",
    "wasi:filesystem/",
    "wasi:http/",
    "wasi:io/",
    "wasi:random/",
    "wasi:sockets/",
];

/// A component ready to be instantiated; cheap to share, never changed.
pub struct Prepared {
    form: Form,
}

/// How a component offers its tools. A further form is a further variant here
/// and an arm in [`Prepared::describe`] and [`Prepared::call`].
enum Form {
    /// It exports `toolbay:plugin/tools`.
    Tools(PluginPre<State>),
    /// It exports functions of its own: each is a tool.
    Functions(Functions),
    /// It exports `wasi:cli/run`: it is one tool, called as its file is.
    Command(CommandPre<State>),
    /// Nothing: for tests of what does not call.
    #[cfg(any(test, fuzzing))]
    Nothing,
}

/// Why bytes are not a plugin. The texts are for the author.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PrepareError {
    /// The file ends before it says it does: most likely still being written.
    #[error("the file is incomplete: it ends in the middle of a section")]
    Incomplete,
    /// Something else altogether.
    #[error("not a WebAssembly file: it begins with {0}, not with \\0asm")]
    NotWasm(String),
    /// A component that does not validate or compile.
    #[error("{0}")]
    Invalid(String),
    /// A valid one that is larger than the server's ceilings.
    #[error("{0}")]
    TooLarge(String),
    /// The compiler met a limit or broke on it.
    #[error("{0}")]
    Compiler(String),
    /// The compiler did not come to an end for a reason that may pass, such as other work on the machine.
    #[error("{0}")]
    Hindered(String),
    /// The compiled code could not be written where it should be.
    #[error("the compiled code could not be written")]
    Unwritten,
    /// It needs something that the world does not have.
    #[error("imports what no plugin can have: {}", .0.join(", "))]
    UnknownImports(Vec<String>),
    /// It imports something known in a shape or version that is not.
    #[error("imports do not fit: {0}")]
    Link(String),
    /// A component of another version of the contract.
    #[error("exports {0}; this host serves toolbay:plugin/tools@0.1.0")]
    OtherVersion(String),
    /// A component without anything that a tool could be.
    #[error("exports neither toolbay:plugin/tools@0.1.0 nor a function that can be a tool; it exports {0}")]
    NoTools(String),
}

impl Prepared {
    /// Checks and links a compiled component.
    pub(super) fn new(engine: &Engine, linker: &Linker<State>, component: &Component) -> Result<Self, PrepareError> {
        let ty = component.component_type();
        let unknown: Vec<String> = ty
            .imports(engine)
            .map(|(name, _)| name)
            .filter(|name| !WORLD.iter().any(|known| name.starts_with(known)))
            .map(str::to_owned)
            .collect();
        if !unknown.is_empty() {
            return Err(PrepareError::UnknownImports(unknown));
        }
        let exports: Vec<&str> = ty.exports(engine).map(|(name, _)| name).collect();
        let exports_interface = |wanted: &str| exports.iter().find(|name| name.split('@').next() == Some(wanted));
        let tools = exports_interface(TOOLS);
        let functions = if tools.is_some() { None } else { Some(functions::find(engine, component)) };
        let pre =
            linker.instantiate_pre(component).map_err(|error| PrepareError::Link(one_line(&format!("{error:#}"))))?;
        let form = match (tools, functions) {
            // In another version, or in another shape.
            (Some(tools), _) => {
                Form::Tools(PluginPre::new(pre).map_err(|_| PrepareError::OtherVersion((*tools).to_owned()))?)
            }
            (None, Some(Ok(functions))) => Form::Functions(functions.linked(pre)),
            (None, _) if exports_interface(RUN).is_some() => Form::Command(
                CommandPre::new(pre).map_err(|error| PrepareError::Link(one_line(&format!("{error:#}"))))?,
            ),
            (None, refused) => {
                let nothing = || "nothing: is `export!(…)` missing?".to_owned();
                let exports = if exports.is_empty() { nothing() } else { exports.join(", ") };
                let why = refused.and_then(Result::err).filter(|why| !why.is_empty());
                return Err(PrepareError::NoTools(why.map_or(exports.clone(), |why| format!("{exports} ({why})"))));
            }
        };
        Ok(Self { form })
    }

    /// How it offers its tools, in words.
    pub fn form(&self) -> &'static str {
        match &self.form {
            Form::Tools(_) => "it exports toolbay:plugin/tools",
            Form::Functions(_) => "each function that it exports is a tool",
            Form::Command(_) => "it is a command: one tool, called as its file is",
            #[cfg(any(test, fuzzing))]
            Form::Nothing => "it has no tools",
        }
    }

    /// Whether it is one tool without a name of its own.
    pub fn is_command(&self) -> bool {
        matches!(self.form, Form::Command(_))
    }

    /// What cannot be called.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn for_test() -> Self {
        Self { form: Form::Nothing }
    }

    /// Its tools; `docs` is what is written about plain functions.
    pub(super) async fn describe(&self, store: &mut Store<State>, docs: &Docs) -> wasmtime::Result<Description> {
        match &self.form {
            Form::Tools(pre) => {
                let plugin = pre.instantiate_async(&mut *store).await?;
                let tools = plugin.toolbay_plugin_tools().call_list_tools(store).await?;
                Ok(Description { tools: tools.into_iter().map(output::definition).collect(), remarks: Vec::new() })
            }
            Form::Functions(functions) => {
                let tools = functions.definitions(docs).into_iter().map(output::cleaned_definition).collect();
                Ok(Description { tools, remarks: functions.refused().to_vec() })
            }
            Form::Command(_) => Ok(Description { tools: vec![command::definition()], remarks: Vec::new() }),
            #[cfg(any(test, fuzzing))]
            Form::Nothing => Ok(Description::default()),
        }
    }

    pub(super) async fn call(
        &self,
        store: &mut Store<State>,
        tool: &str,
        arguments: &str,
    ) -> wasmtime::Result<Result<types::Output, types::Failure>> {
        match &self.form {
            Form::Tools(pre) => {
                let plugin = pre.instantiate_async(&mut *store).await?;
                plugin.toolbay_plugin_tools().call_call_tool(store, tool, arguments).await
            }
            Form::Functions(functions) => functions.call(store, tool, arguments).await,
            Form::Command(pre) => command::call(pre, store).await,
            #[cfg(any(test, fuzzing))]
            Form::Nothing => Ok(Err(types::Failure::Failed("nothing to call".into()))),
        }
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").finish_non_exhaustive()
    }
}

/// Everything a plugin can import. Linking is not permission: an empty context denies at use.
pub(super) fn linker(engine: &Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    Plugin::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    Ok(linker)
}

/// Tells what is no component at all from what is not one yet, without compiling anything.
pub(super) fn check_preamble(bytes: &[u8]) -> Result<(), PrepareError> {
    const MAGIC: &[u8] = b"\0asm";
    if !bytes.starts_with(MAGIC) {
        return Err(if MAGIC.starts_with(bytes) {
            PrepareError::Incomplete
        } else {
            let start: String = bytes.iter().take(8).map(|b| b.escape_ascii().to_string()).collect();
            PrepareError::NotWasm(format!("\"{start}\""))
        });
    }
    match bytes.get(4..8) {
        // Version 1, layer 0: a core module. Version 13, layer 1: a component. Their sections are alike.
        Some(_) if sections_are_complete(bytes.get(8..).unwrap_or_default()) => Ok(()),
        _ => Err(PrepareError::Incomplete),
    }
}

/// Whether every section is as long as it says: an id, a LEB128 length, that many bytes.
fn sections_are_complete(mut rest: &[u8]) -> bool {
    while let Some((_id, tail)) = rest.split_first() {
        let mut length: u64 = 0;
        let mut shift = 0;
        let mut after = tail;
        loop {
            let Some((byte, tail)) = after.split_first() else { return false };
            length |= u64::from(byte & 0x7f) << shift;
            after = tail;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if shift > 28 {
                // Longer than any LEB128 of 32 bits: let the validator say so.
                return true;
            }
        }
        let Some(next) = usize::try_from(length).ok().and_then(|length| after.get(length..)) else { return false };
        rest = next;
    }
    true
}

/// Messages of the compiler may have several lines; ours have one.
pub(super) fn one_line(text: &str) -> String {
    text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(bytes: &[u8]) -> PrepareError {
        check_preamble(bytes).unwrap_err()
    }

    #[test]
    fn what_is_not_a_component_is_named() {
        assert_eq!(refused(b""), PrepareError::Incomplete);
        assert_eq!(refused(b"\0as"), PrepareError::Incomplete);
        assert_eq!(refused(b"\0asm\x0d\0"), PrepareError::Incomplete);
        assert_eq!(
            refused(b"hello, world").to_string(),
            "not a WebAssembly file: it begins with \"hello, w\", not with \\0asm"
        );
    }

    #[test]
    fn every_cut_inside_a_section_is_incomplete() {
        // Two custom sections, one with a two-byte length.
        let mut file = b"\0asm\x0d\0\x01\0".to_vec();
        file.extend([0, 3, 1, b'a', b'b']);
        file.extend([0, 0x85, 0x01, 1, b'c']);
        file.extend(std::iter::repeat_n(0, 0x85 - 2));
        assert!(check_preamble(&file).is_ok());
        let boundaries = [8, 13, file.len()];
        for cut in 8..file.len() {
            assert_eq!(check_preamble(&file[..cut]).is_ok(), boundaries.contains(&cut), "cut at {cut}");
        }
    }
}
