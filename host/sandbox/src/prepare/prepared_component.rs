//! Compiled, checked and linked components, ready to be called.

use std::fmt;

use toolbay_model::text::{clean_line, join_lines};
use toolbay_model::{ComponentDescription, GuestServerProtocol, ToolDefinition};
use wasmtime::component::{Component, Instance, types};
use wasmtime::{Engine, Store};

use crate::capability::stdio::stdio_transport::StdioTransport;
use crate::component::docs::ComponentDocs;
use crate::component::prepare_error::PrepareError;
use crate::component::wasi_p3_names::is_wasi_p3;
use crate::context::plugin_request::PluginRequest;
use crate::kind::act::{self, LinkedActComponent};
use crate::kind::command;
use crate::kind::contract::{self, ContractComponent, ExportedContract};
use crate::kind::functions::{self, FunctionTools, UnlinkedFunctions};
use crate::kind::http_handler::{self, HandlerPre};
use crate::kind::linked_command::LinkedCommand;
use crate::kind::mcp_server;
use crate::kind::mcp_server::ServerTransport;
use crate::prepare::engine_pair::LinkedEngine;
use crate::prepare::unknown_items::{display_name, is_wasi, other_exports, unprovided_imports};
use crate::reply::definition;
use crate::reply::guest_reply::{GuestFailure, GuestReply, ToolResult};
use crate::reply::raw_description::RawDescription;
use crate::reply::wide_integers;
use crate::store::state::StoreState;

/// Name of the export that makes a component a command.
const RUN_EXPORT: &str = "wasi:cli/run";

/// Prefix of the import with which a component finds its directories.
const PREOPENS_PREFIX: &str = "wasi:filesystem/preopens@";

/// Maximum length of a list of exports that are not offered, in bytes.
const MAX_LEFT_OUT_BYTES: usize = 500;

/// Size of a page of linear memory, in bytes.
const PAGE_BYTES: u64 = 64 << 10;

/// A component that is ready to be instantiated. It is immutable.
pub struct PreparedComponent {
    form: ComponentForm,
    memory: Option<u64>,
    can_ask: bool,
    /// The MCP transport of the component, if it is known to be an MCP server.
    server_protocol: Option<GuestServerProtocol>,
    /// The engine of its stores.
    engine: Engine,
    /// Number of nested instances with functions, if the component has async functions. Each may be
    /// in the middle of a task.
    async_instances: Option<u32>,
    /// True if the component imports or exports interfaces of WASI 0.3.
    uses_wasi_p3: bool,
    /// False if the component can reach mounted directories only through WASI 0.3.
    has_files: bool,
    /// The command and the name of the HTTP handler, if the component exports both. The command is
    /// used if the handler is not an MCP server.
    command: Option<(LinkedCommand, String)>,
    /// The names of other exported interfaces and functions, which are not offered.
    left_out: Vec<String>,
}

/// The form in which a component offers its tools. For each further form, add a variant here and an
/// arm in [`PreparedComponent::list`], [`PreparedComponent::description`] and
/// [`PreparedComponent::call`].
enum ComponentForm {
    /// It implements the contract.
    Contract(ContractComponent),
    /// It exports the interface of ACT that lists and calls tools.
    Act(LinkedActComponent),
    /// It exports plain functions. Each one is a tool, and so is its command, if it exports one.
    Functions(FunctionTools, Option<(String, LinkedCommand)>),
    /// It exports an interface that handles HTTP requests. It must be an MCP server.
    Handler(HandlerPre),
    /// It exports `wasi:cli/run`. It is a single tool, named after its file, or an MCP server.
    Command(LinkedCommand),
}

impl PreparedComponent {
    /// Checks and links a compiled component.
    pub(crate) fn new(
        linked: &LinkedEngine,
        component: &Component,
        async_instances: Option<u32>,
    ) -> Result<Self, PrepareError> {
        let LinkedEngine { engine, linker } = linked;
        let ty = component.component_type();
        let unknown = unprovided_imports(engine, &ty);
        if !unknown.is_empty() {
            return Err(PrepareError::UnknownImports(unknown));
        }
        let exports: Vec<&str> = ty.exports(engine).map(|(name, _)| name).collect();
        let find_export = |wanted: &str| {
            exports
                .iter()
                .find(|name| name.split('@').next() == Some(wanted))
        };
        let handler = http_handler::HANDLER_INTERFACES
            .iter()
            .find_map(|wanted| find_export(wanted));
        let link_error =
            |error: wasmtime::Error| PrepareError::Link(join_lines(&format!("{error:#}")));
        let contract = ExportedContract::find(exports.iter().copied())?;
        let act = if contract.is_some() {
            None
        } else {
            act::find_interface(&exports)?
        };
        let is_listed = contract.is_some() || act.is_some();
        let functions = if is_listed {
            None
        } else {
            Some(functions::find_functions(engine, component))
        };
        let pre = linker.instantiate_pre(component).map_err(link_error)?;
        let run = find_export(RUN_EXPORT).copied();
        let mut left_out = other_exports(engine, &ty);
        let command =
            |name: &str| LinkedCommand::new(component, pre.clone(), name).map_err(link_error);
        let mut fallback = None;
        let form = match (contract, act, functions) {
            (Some(exported), ..) => {
                ComponentForm::Contract(ContractComponent::new(engine, component, pre, &exported)?)
            }
            (None, Some(interface), _) => {
                left_out.retain(|other| other != interface);
                ComponentForm::Act(LinkedActComponent::new(engine, component, pre, interface)?)
            }
            (None, None, Some(Ok(functions))) => {
                left_out.retain(|name| Some(name.as_str()) != run && is_wasi(name));
                let tool = functions.free_name(command::COMMAND_TOOL_NAME);
                let command = run
                    .map(|name| Ok::<_, PrepareError>((tool, command(name)?)))
                    .transpose()?;
                ComponentForm::Functions(functions.link(pre), command)
            }
            (None, None, refused) => match (handler, run) {
                (Some(name), run) => {
                    left_out.retain(|other| other != name);
                    fallback = run
                        .map(command)
                        .transpose()?
                        .map(|run| (run, (*name).to_owned()));
                    ComponentForm::Handler(HandlerPre::new(pre, name).map_err(link_error)?)
                }
                (None, Some(name)) => {
                    left_out.retain(|other| other != name);
                    ComponentForm::Command(command(name)?)
                }
                (None, None) => return Err(nothing_offered(engine, &ty, refused)),
            },
        };
        let imports: Vec<&str> = ty.imports(engine).map(|(name, _)| name).collect();
        let uses_wasi_p3 = imports.iter().chain(&exports).any(|name| is_wasi_p3(name));
        let has_files = !imports
            .iter()
            .any(|name| is_wasi_p3(name) && name.starts_with(PREOPENS_PREFIX))
            || imports
                .iter()
                .any(|name| !is_wasi_p3(name) && name.starts_with(PREOPENS_PREFIX));
        let pages = component
            .resources_required()
            .map(|needs| needs.max_initial_memory_size.unwrap_or_default());
        let can_ask = contract::imports_ask(engine, &ty);
        let memory = pages.map(|pages| pages.saturating_mul(PAGE_BYTES));
        let engine = engine.clone();
        let server_protocol = None;
        let command = fallback;
        Ok(Self {
            form,
            memory,
            can_ask,
            server_protocol,
            engine,
            async_instances,
            uses_wasi_p3,
            has_files,
            command,
            left_out,
        })
    }

    /// Returns the engine of its stores.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the number of native stacks that a call may use in addition to the usual one. It is
    /// zero without async functions.
    pub(crate) fn extra_stacks(&self) -> usize {
        self.async_instances
            .map_or(0, |instances| instances.max(1) as usize)
    }

    /// Describes the form of the component for people.
    pub fn form(&self) -> String {
        let form = self.base_form();
        match (self.uses_wasi_p3, self.async_instances) {
            (true, _) => format!("{form}; it is for WASI 0.3"),
            (false, Some(_)) => format!("{form}; it has async functions"),
            (false, None) => form,
        }
    }

    fn base_form(&self) -> String {
        if let Some(GuestServerProtocol { path, revision, .. }) = &self.server_protocol {
            return match path {
                Some(path) => format!("it is an MCP server over HTTP, at {path} (MCP {revision})"),
                None => {
                    format!("it is an MCP server on standard input and output (MCP {revision})")
                }
            };
        }
        match &self.form {
            ComponentForm::Contract(contract) => format!("it exports {contract}"),
            ComponentForm::Act(act) => {
                format!("it exports {}, which lists its tools", act.interface())
            }
            ComponentForm::Handler(handler) => format!("it exports {}", handler.interface()),
            ComponentForm::Functions(_, None) => {
                "it exports plain functions; each is a tool".to_owned()
            }
            ComponentForm::Functions(_, Some((name, _))) => {
                format!(
                    "it exports plain functions and is a command; each function is a tool, and the command is {name}"
                )
            }
            ComponentForm::Command(_) => {
                "it is a command: one tool, named after the file".to_owned()
            }
        }
    }

    /// Returns whether the component may use mounted directories. The host provides none through
    /// WASI 0.3.
    pub fn has_files(&self) -> bool {
        self.has_files
    }

    /// Returns the initial size of its largest linear memory, in bytes, or `None` if it cannot be
    /// determined.
    pub fn memory(&self) -> Option<u64> {
        self.memory
    }

    /// Returns whether it can ask its caller questions.
    pub(crate) fn can_ask(&self) -> bool {
        self.can_ask
    }

    /// Returns whether it is an MCP server itself.
    pub fn is_mcp_server(&self) -> bool {
        self.server_protocol.is_some()
    }

    /// Returns whether it is a single tool without its own name.
    pub fn is_command(&self) -> bool {
        matches!(self.form, ComponentForm::Command(_)) && self.server_protocol.is_none()
    }

    /// Returns whether `tool` is a command, which gets its arguments on standard input.
    pub(crate) fn is_command_tool(&self, tool: &str) -> bool {
        match &self.form {
            ComponentForm::Functions(_, Some((name, _))) => name == tool,
            _ => self.is_command(),
        }
    }

    /// Returns whether it exports both a command and a handler of HTTP requests.
    pub(crate) fn has_command(&self) -> bool {
        self.command.is_some()
    }

    /// Sets the MCP transport, if the component is an MCP server. Without one, a component that
    /// exports both a handler of HTTP requests and a command becomes the command.
    pub(crate) fn set_server_protocol(&mut self, server_protocol: Option<GuestServerProtocol>) {
        self.server_protocol = server_protocol;
        if self.server_protocol.is_some() {
            return;
        }
        if let Some((command, handler)) = self.command.take() {
            self.left_out
                .retain(|name| name.split('@').next() != Some(RUN_EXPORT));
            self.left_out.push(handler);
            self.form = ComponentForm::Command(command);
        }
    }

    /// Describes the exports that are not offered, for people. Returns `None` if there are none.
    fn left_out_remark(&self) -> Option<String> {
        let names: Vec<String> = self
            .left_out
            .iter()
            .map(|name| display_name(name))
            .collect();
        if names.is_empty() {
            return None;
        }
        let why = match &self.form {
            ComponentForm::Contract(_) => "the interfaces of toolbay:plugin are",
            ComponentForm::Act(_) => "its tools are",
            ComponentForm::Functions(..) => "its functions are",
            ComponentForm::Handler(_) => "its MCP server is",
            ComponentForm::Command(_) => "its command is",
        };
        Some(format!(
            "it also exports {}, which is not offered: {why}",
            clean_line(&names.join(", "), MAX_LEFT_OUT_BYTES)
        ))
    }

    /// Returns the transport of messages to the component, if it may be an MCP server.
    pub(crate) fn server_transport(&self) -> Option<ServerTransport<'_>> {
        match &self.form {
            ComponentForm::Handler(pre) => Some(ServerTransport::Http(pre)),
            ComponentForm::Command(pre) => Some(ServerTransport::Stdio(pre)),
            ComponentForm::Contract(_) | ComponentForm::Act(_) | ComponentForm::Functions(..) => {
                None
            }
        }
    }

    /// Returns the stdio transport of a call, if the component uses one.
    pub(crate) fn stdio_transport(&self) -> Option<StdioTransport> {
        (self.server_protocol.is_some() && matches!(self.form, ComponentForm::Command(_)))
            .then(StdioTransport::default)
    }

    /// Returns the names of tools in `description` that the component does not document.
    pub fn undocumented_tools(&self, description: &ComponentDescription) -> Vec<String> {
        match &self.form {
            ComponentForm::Functions(functions, _) => functions.undocumented_tools(description),
            ComponentForm::Contract(_)
            | ComponentForm::Act(_)
            | ComponentForm::Handler(_)
            | ComponentForm::Command(_) => Vec::new(),
        }
    }

    /// Lists what the component offers, if it has list functions.
    pub(crate) async fn list(
        &self,
        store: &mut Store<StoreState>,
    ) -> wasmtime::Result<RawDescription> {
        match &self.form {
            ComponentForm::Contract(contract) => {
                contract.list(store).await.map(RawDescription::from)
            }
            ComponentForm::Act(act) => act.list(store).await,
            ComponentForm::Functions(..)
            | ComponentForm::Handler(_)
            | ComponentForm::Command(_) => Ok(RawDescription::default()),
        }
    }

    /// Returns the description of the component. `docs` is the documentation of plain functions.
    pub(crate) fn description(
        &self,
        listed: RawDescription,
        docs: &ComponentDocs,
    ) -> ComponentDescription {
        let (listed, refused) = match &self.form {
            ComponentForm::Contract(_) | ComponentForm::Act(_) | ComponentForm::Handler(_) => {
                (listed.description, [].as_slice())
            }
            ComponentForm::Functions(functions, command) => {
                let command_definition = |(name, _): &(String, LinkedCommand)| ToolDefinition {
                    name: name.clone(),
                    ..command::command_definition()
                };
                let definitions = functions
                    .definitions(docs)
                    .into_iter()
                    .chain(command.as_ref().map(command_definition));
                (
                    tools_description(definitions.collect()),
                    functions.rejections(),
                )
            }
            ComponentForm::Command(_) if listed.description.manner.is_some() => {
                (listed.description, [].as_slice())
            }
            ComponentForm::Command(_) => (
                tools_description(vec![command::command_definition()]),
                [].as_slice(),
            ),
        };
        let mut description = definition::clean_description(listed);
        description.remarks.extend_from_slice(refused);
        description.remarks.extend(self.left_out_remark());
        description
            .remarks
            .extend(wide_integers::wide_integer_warning(&description.tools));
        description
    }

    /// Calls a plain function in the instance `within`. Returns `None` if the component has no
    /// plain functions.
    pub(crate) async fn call_function(
        &self,
        store: &mut Store<StoreState>,
        within: Instance,
        name: &str,
        arguments: &str,
    ) -> wasmtime::Result<Option<Result<ToolResult, GuestFailure>>> {
        match &self.form {
            ComponentForm::Functions(functions, _) => functions
                .call(store, Some(within), name, arguments)
                .await
                .map(Some),
            ComponentForm::Contract(_)
            | ComponentForm::Act(_)
            | ComponentForm::Handler(_)
            | ComponentForm::Command(_) => Ok(None),
        }
    }

    /// Sends a request to the component in `store`.
    pub(crate) async fn call(
        &self,
        store: &mut Store<StoreState>,
        request: PluginRequest<'_>,
    ) -> wasmtime::Result<Result<GuestReply, GuestFailure>> {
        if let (Some(protocol), Some(transport)) = (&self.server_protocol, self.server_transport())
        {
            return mcp_server::call(transport, store, protocol, request).await;
        }
        let result = match (&self.form, request) {
            (ComponentForm::Contract(contract), _) => return contract.call(store, request).await,
            (ComponentForm::Act(act), PluginRequest::Tool { name, arguments }) => {
                return act.call(store, name, arguments).await;
            }
            (
                ComponentForm::Functions(_, Some((tool, command))),
                PluginRequest::Tool { name, .. },
            ) if tool == name => command::run_command(command, store).await?,
            (ComponentForm::Functions(functions, _), PluginRequest::Tool { name, arguments }) => {
                functions.call(store, None, name, arguments).await?
            }
            (ComponentForm::Command(pre), PluginRequest::Tool { .. }) => {
                command::run_command(pre, store).await?
            }
            (
                ComponentForm::Act(_)
                | ComponentForm::Functions(..)
                | ComponentForm::Handler(_)
                | ComponentForm::Command(_),
                _,
            ) => Err(request.not_offered_failure()),
        };
        Ok(result.map(GuestReply::Tool))
    }
}

/// Returns the error for a component that offers nothing. `refused` is the result for its
/// functions.
fn nothing_offered(
    engine: &Engine,
    ty: &types::Component,
    refused: Option<Result<UnlinkedFunctions, String>>,
) -> PrepareError {
    let nothing = || "nothing (is `export!(…)` missing?)".to_owned();
    let exports: Vec<String> = ty
        .exports(engine)
        .map(|(name, _)| display_name(name))
        .collect();
    let exports = if exports.is_empty() {
        nothing()
    } else {
        clean_line(&exports.join(", "), MAX_LEFT_OUT_BYTES)
    };
    let why = refused.and_then(Result::err).filter(|why| !why.is_empty());
    PrepareError::NothingOffered(why.map_or(exports.clone(), |why| format!("{exports} ({why})")))
}

fn tools_description(tools: Vec<ToolDefinition>) -> ComponentDescription {
    ComponentDescription {
        tools,
        ..ComponentDescription::default()
    }
}

impl fmt::Debug for PreparedComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedComponent").finish_non_exhaustive()
    }
}
