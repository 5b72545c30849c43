//! Compiled, checked and linked components, ready to be called.

use std::fmt;

use toolbay_model::text::{joined, line};
use toolbay_model::{Description, Manner, ToolDefinition};
use wasmtime::component::{Component, Instance, types};
use wasmtime::{Engine, Store};

use crate::act::{self, Act};
use crate::asked::Asked;
use crate::contract::{self, Contract, Exported};
use crate::docs::Docs;
use crate::engines::Linked;
use crate::functions::{self, Found, Functions};
use crate::handler::{self, HandlerPre};
use crate::listed::Listed;
use crate::newer::is_newer;
use crate::prepare_error::PrepareError;
use crate::returned::{Refusal, Returned, ToolResult};
use crate::run::Run;
use crate::server::Wire;
use crate::state::State;
use crate::surplus::{is_wasi, other_exports, shown, unprovided};
use crate::talk::Talk;
use crate::{command, definition, server, wide};

/// Name of the export that makes a component a command.
const RUN: &str = "wasi:cli/run";

/// Prefix of the import with which a component finds its directories.
const PREOPENS: &str = "wasi:filesystem/preopens@";

/// Maximum length of a list of exports that are not offered, in bytes.
const LEFT_OUT: usize = 500;

/// Size of a page of linear memory, in bytes.
const PAGE: u64 = 64 << 10;

/// A component that is ready to be instantiated. It is immutable.
pub struct Prepared {
    form: Form,
    memory: Option<u64>,
    asks: bool,
    /// The MCP transport of the component, if it is known to be an MCP server.
    manner: Option<Manner>,
    /// The engine of its stores.
    engine: Engine,
    /// Number of nested instances with functions, if the component has async functions. Each may be
    /// in the middle of a task.
    tasked: Option<u32>,
    /// True if the component imports or exports interfaces of WASI 0.3.
    newer: bool,
    /// True if the component uses mounted directories.
    has_files: bool,
    /// The command and the name of the HTTP handler, if the component exports both. The command is
    /// used if the handler is not an MCP server.
    command: Option<(Run, String)>,
    /// The names of other exported interfaces and functions, which are not offered.
    left_out: Vec<String>,
}

/// The form in which a component offers its tools. For each further form, add a variant here and an
/// arm in [`Prepared::list`], [`Prepared::description`] and [`Prepared::call`].
enum Form {
    /// It implements the contract.
    Contract(Contract),
    /// It exports the interface of ACT that lists and calls tools.
    Act(Act),
    /// It exports plain functions. Each one is a tool, and so is its command, if it exports one.
    Functions(Functions, Option<(String, Run)>),
    /// It exports an interface that handles HTTP requests. It must be an MCP server.
    Handler(HandlerPre),
    /// It exports `wasi:cli/run`. It is a single tool, named after its file, or an MCP server.
    Command(Run),
}

impl Prepared {
    /// Checks and links a compiled component.
    pub(crate) fn new(linked: &Linked, component: &Component, tasked: Option<u32>) -> Result<Self, PrepareError> {
        let Linked { engine, linker } = linked;
        let ty = component.component_type();
        let unknown = unprovided(engine, &ty);
        if !unknown.is_empty() {
            return Err(PrepareError::UnknownImports(unknown));
        }
        let exports: Vec<&str> = ty.exports(engine).map(|(name, _)| name).collect();
        let exported = |wanted: &str| exports.iter().find(|name| name.split('@').next() == Some(wanted));
        let handler = handler::INTERFACES.iter().find_map(|wanted| exported(wanted));
        let unlinked = |error: wasmtime::Error| PrepareError::Link(joined(&format!("{error:#}")));
        let contract = Exported::find(exports.iter().copied())?;
        let act = if contract.is_some() { None } else { act::find(&exports)? };
        let is_listed = contract.is_some() || act.is_some();
        let functions = if is_listed { None } else { Some(functions::find(engine, component)) };
        let pre = linker.instantiate_pre(component).map_err(unlinked)?;
        let run = exported(RUN).copied();
        let mut left_out = other_exports(engine, &ty);
        let command = |name: &str| Run::new(component, pre.clone(), name).map_err(unlinked);
        let mut fallback = None;
        let form = match (contract, act, functions) {
            (Some(exported), ..) => Form::Contract(Contract::new(engine, component, pre, &exported)?),
            (None, Some(interface), _) => {
                left_out.retain(|other| other != interface);
                Form::Act(Act::new(engine, component, pre, interface)?)
            }
            (None, None, Some(Ok(functions))) => {
                left_out.retain(|name| Some(name.as_str()) != run && is_wasi(name));
                let tool = functions.free_name(command::NAME);
                let command = run.map(|name| Ok::<_, PrepareError>((tool, command(name)?))).transpose()?;
                Form::Functions(functions.linked(pre), command)
            }
            (None, None, refused) => match (handler, run) {
                (Some(name), run) => {
                    left_out.retain(|other| other != name);
                    fallback = run.map(command).transpose()?.map(|run| (run, (*name).to_owned()));
                    Form::Handler(HandlerPre::new(pre, name).map_err(unlinked)?)
                }
                (None, Some(name)) => {
                    left_out.retain(|other| other != name);
                    Form::Command(command(name)?)
                }
                (None, None) => return Err(nothing(engine, &ty, refused)),
            },
        };
        let imports: Vec<&str> = ty.imports(engine).map(|(name, _)| name).collect();
        let newer = imports.iter().chain(&exports).any(|name| is_newer(name));
        let has_files = !imports.iter().any(|name| is_newer(name) && name.starts_with(PREOPENS))
            || imports.iter().any(|name| !is_newer(name) && name.starts_with(PREOPENS));
        let pages = component.resources_required().map(|needs| needs.max_initial_memory_size.unwrap_or_default());
        let asks = contract::imports_ask(engine, &ty);
        let (memory, engine) = (pages.map(|pages| pages.saturating_mul(PAGE)), engine.clone());
        let (manner, command) = (None, fallback);
        Ok(Self { form, memory, asks, manner, engine, tasked, newer, has_files, command, left_out })
    }

    /// Returns the engine of its stores.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the number of native stacks that a call may use in addition to the usual one. It is
    /// zero without async functions.
    pub(crate) fn further_stacks(&self) -> usize {
        self.tasked.map_or(0, |tasked| tasked.max(1) as usize)
    }

    /// Describes the form of the component for people.
    pub fn form(&self) -> String {
        let form = self.form_alone();
        match (self.newer, self.tasked) {
            (true, _) => format!("{form}; it is for WASI 0.3"),
            (false, Some(_)) => format!("{form}; it has async functions"),
            (false, None) => form,
        }
    }

    fn form_alone(&self) -> String {
        if let Some(Manner { path, revision, .. }) = &self.manner {
            return match path {
                Some(path) => format!("it is an MCP server over HTTP, at {path} (MCP {revision})"),
                None => format!("it is an MCP server on standard input and output (MCP {revision})"),
            };
        }
        match &self.form {
            Form::Contract(contract) => format!("it exports {contract}"),
            Form::Act(act) => format!("it exports {}, which lists its tools", act.interface()),
            Form::Handler(handler) => format!("it exports {}", handler.interface()),
            Form::Functions(_, None) => "it exports plain functions; each is a tool".to_owned(),
            Form::Functions(_, Some((name, _))) => {
                format!(
                    "it exports plain functions and is a command; each function is a tool, and the command is {name}"
                )
            }
            Form::Command(_) => "it is a command: one tool, named after the file".to_owned(),
        }
    }

    /// Returns whether the component uses mounted directories. The host provides none through WASI
    /// 0.3.
    pub fn has_files(&self) -> bool {
        self.has_files
    }

    /// Returns the initial size of its largest linear memory, in bytes, or `None` if it cannot be
    /// determined.
    pub fn memory(&self) -> Option<u64> {
        self.memory
    }

    /// Returns whether it can ask its caller questions.
    pub(crate) fn asks(&self) -> bool {
        self.asks
    }

    /// Returns whether it is a single tool without its own name.
    pub fn is_command(&self) -> bool {
        matches!(self.form, Form::Command(_)) && self.manner.is_none()
    }

    /// Returns whether `tool` is a command, which gets its arguments on standard input.
    pub(crate) fn runs(&self, tool: &str) -> bool {
        match &self.form {
            Form::Functions(_, Some((name, _))) => name == tool,
            _ => self.is_command(),
        }
    }

    /// Returns whether it exports both a command and a handler of HTTP requests.
    pub(crate) fn has_command(&self) -> bool {
        self.command.is_some()
    }

    /// Sets the MCP transport, if the component is an MCP server. Without one, a handler of HTTP
    /// requests that also exports a command becomes this command.
    pub(crate) fn spoken_to(&mut self, manner: Option<Manner>) {
        self.manner = manner;
        if self.manner.is_some() {
            return;
        }
        if let Some((command, handler)) = self.command.take() {
            self.left_out.retain(|name| name.split('@').next() != Some(RUN));
            self.left_out.push(handler);
            self.form = Form::Command(command);
        }
    }

    /// Describes the exports that are not offered, for people. Returns `None` if there are none.
    fn remainder(&self) -> Option<String> {
        let names: Vec<String> = self.left_out.iter().map(|name| shown(name)).collect();
        if names.is_empty() {
            return None;
        }
        let why = match &self.form {
            Form::Contract(_) => "the interfaces of toolbay:plugin are",
            Form::Act(_) => "its tools are",
            Form::Functions(..) => "its functions are",
            Form::Handler(_) => "its MCP server is",
            Form::Command(_) => "its command is",
        };
        Some(format!("it also exports {}, which is not offered: {why}", line(&names.join(", "), LEFT_OUT)))
    }

    /// Returns the wire for messages to the component, if it may be an MCP server.
    pub(crate) fn wire(&self) -> Option<Wire<'_>> {
        match &self.form {
            Form::Handler(pre) => Some(Wire::Handler(pre)),
            Form::Command(pre) => Some(Wire::Command(pre)),
            Form::Contract(_) | Form::Act(_) | Form::Functions(..) => None,
        }
    }

    /// Returns the stdio transport of a call, if the component uses one.
    pub(crate) fn talk(&self) -> Option<Talk> {
        (self.manner.is_some() && matches!(self.form, Form::Command(_))).then(Talk::default)
    }

    /// Returns the names of tools in `description` that the component does not document.
    pub fn wordless(&self, description: &Description) -> Vec<String> {
        match &self.form {
            Form::Functions(functions, _) => functions.wordless(description),
            Form::Contract(_) | Form::Act(_) | Form::Handler(_) | Form::Command(_) => Vec::new(),
        }
    }

    /// Lists what the component offers, if it has list functions.
    pub(crate) async fn list(&self, store: &mut Store<State>) -> wasmtime::Result<Listed> {
        match &self.form {
            Form::Contract(contract) => contract.list(store).await.map(Listed::from),
            Form::Act(act) => act.list(store).await,
            Form::Functions(..) | Form::Handler(_) | Form::Command(_) => Ok(Listed::default()),
        }
    }

    /// Returns the description of the component. `docs` is the documentation of plain functions.
    pub(crate) fn description(&self, listed: Listed, docs: &Docs) -> Description {
        let (listed, refused) = match &self.form {
            Form::Contract(_) | Form::Act(_) | Form::Handler(_) => (listed.description, [].as_slice()),
            Form::Functions(functions, command) => {
                let named = |(name, _): &(String, Run)| ToolDefinition { name: name.clone(), ..command::definition() };
                let all = functions.definitions(docs).into_iter().chain(command.as_ref().map(named));
                (tools(all.collect()), functions.refused())
            }
            Form::Command(_) if listed.description.manner.is_some() => (listed.description, [].as_slice()),
            Form::Command(_) => (tools(vec![command::definition()]), [].as_slice()),
        };
        let mut description = definition::cleaned(listed);
        description.remarks.extend_from_slice(refused);
        description.remarks.extend(self.remainder());
        description.remarks.extend(wide::remark(&description.tools));
        description
    }

    /// Calls a plain function in the instance `within`. Returns `None` if the component has no
    /// plain functions.
    pub(crate) async fn call_function(
        &self,
        store: &mut Store<State>,
        within: Instance,
        name: &str,
        arguments: &str,
    ) -> wasmtime::Result<Option<Result<ToolResult, Refusal>>> {
        match &self.form {
            Form::Functions(functions, _) => functions.call(store, Some(within), name, arguments).await.map(Some),
            Form::Contract(_) | Form::Act(_) | Form::Handler(_) | Form::Command(_) => Ok(None),
        }
    }

    /// Handles a request in the given store.
    pub(crate) async fn call(
        &self,
        store: &mut Store<State>,
        asked: Asked<'_>,
    ) -> wasmtime::Result<Result<Returned, Refusal>> {
        if let (Some(manner), Some(wire)) = (&self.manner, self.wire()) {
            return server::call(wire, store, manner, asked).await;
        }
        let result = match (&self.form, asked) {
            (Form::Contract(contract), _) => return contract.call(store, asked).await,
            (Form::Act(act), Asked::Tool { name, arguments }) => return act.call(store, name, arguments).await,
            (Form::Functions(_, Some((tool, command))), Asked::Tool { name, .. }) if tool == name => {
                command::call(command, store).await?
            }
            (Form::Functions(functions, _), Asked::Tool { name, arguments }) => {
                functions.call(store, None, name, arguments).await?
            }
            (Form::Command(pre), Asked::Tool { .. }) => command::call(pre, store).await?,
            (Form::Act(_) | Form::Functions(..) | Form::Handler(_) | Form::Command(_), _) => Err(asked.not_offered()),
        };
        Ok(result.map(Returned::Tool))
    }
}

/// Returns the error for a component that offers nothing. `refused` is the result for its
/// functions.
fn nothing(engine: &Engine, ty: &types::Component, refused: Option<Result<Found, String>>) -> PrepareError {
    let nothing = || "nothing (is `export!(…)` missing?)".to_owned();
    let exports: Vec<String> = ty.exports(engine).map(|(name, _)| shown(name)).collect();
    let exports = if exports.is_empty() { nothing() } else { line(&exports.join(", "), LEFT_OUT) };
    let why = refused.and_then(Result::err).filter(|why| !why.is_empty());
    PrepareError::NothingOffered(why.map_or(exports.clone(), |why| format!("{exports} ({why})")))
}

fn tools(tools: Vec<ToolDefinition>) -> Description {
    Description { tools, ..Description::default() }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").finish_non_exhaustive()
    }
}
