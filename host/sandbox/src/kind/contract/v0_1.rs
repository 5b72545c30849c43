//! Version 0.1.0 of the contract.

use toolbay_model::text::join_lines;
use toolbay_model::{ComponentDescription, EffectHints, Icon, IconTheme, LogLevel, ToolDefinition};
use wasmtime::Store;
use wasmtime::component::{HasSelf, InstancePre, Linker};

use self::bindings::exports::toolbay::plugin::tools::{Failure, Output};
use self::bindings::toolbay::plugin::{host, types};
use self::bindings::{Plugin, PluginPre};
use super::interface::ExportedInterfaces;
use crate::component::contract_interface::ContractInterface;
use crate::component::prepare_error::PrepareError;
use crate::context::plugin_request::PluginRequest;
use crate::reply::block::{self, BlockKind, RawBlock};
use crate::reply::guest_reply::{GuestFailure, GuestReply, ToolResult};
use crate::store::state::StoreState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/0.1.0",
        world: "plugin",
        imports: { default: trappable },
        exports: { default: async },
    });
}

/// A component that implements the contract.
pub(crate) struct Adapter(PluginPre<StoreState>);

impl Adapter {
    pub(super) fn new(
        interfaces: &ExportedInterfaces<'_>,
        pre: InstancePre<StoreState>,
    ) -> Result<Self, PrepareError> {
        for (part, interface) in interfaces {
            match part {
                ContractInterface::Tools => {
                    interface.check_function("list-tools", |function, ty| {
                        function.typecheck::<(), (Vec<types::ToolDefinition>,)>(&ty.instance_type())
                    })?;
                    interface.check_function("call-tool", |function, ty| {
                        function.typecheck::<(&str, &str), (Result<Output, Failure>,)>(
                            &ty.instance_type(),
                        )
                    })?;
                }
                ContractInterface::Prompts
                | ContractInterface::Resources
                | ContractInterface::Completion => {
                    return Err(
                        interface.rejection("that version has tools only; build it against 0.2.0")
                    );
                }
            }
        }
        PluginPre::new(pre)
            .map(Self)
            .map_err(|error| PrepareError::Link(join_lines(&format!("{error:#}"))))
    }

    pub(super) async fn list(
        &self,
        store: &mut Store<StoreState>,
    ) -> wasmtime::Result<ComponentDescription> {
        let plugin = self.0.instantiate_async(&mut *store).await?;
        let tools = plugin.toolbay_plugin_tools().call_list_tools(store).await?;
        Ok(ComponentDescription {
            tools: tools.into_iter().map(convert_tool).collect(),
            ..ComponentDescription::default()
        })
    }

    pub(super) async fn call(
        &self,
        store: &mut Store<StoreState>,
        plugin_request: PluginRequest<'_>,
    ) -> wasmtime::Result<Result<GuestReply, GuestFailure>> {
        let PluginRequest::Tool { name, arguments } = plugin_request else {
            return Ok(Err(plugin_request.not_offered_failure()));
        };
        let plugin = self.0.instantiate_async(&mut *store).await?;
        let result = plugin
            .toolbay_plugin_tools()
            .call_call_tool(store, name, arguments)
            .await?;
        Ok(result
            .map(|output| GuestReply::Tool(convert_output(output)))
            .map_err(|failure| match failure {
                Failure::InvalidArguments(text) => GuestFailure::InvalidArguments(text),
                Failure::Failed(text) => GuestFailure::Failed(text),
            }))
    }
}

pub(super) fn add_to_linker(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    Plugin::add_to_linker::<StoreState, HasSelf<StoreState>>(linker, |state| state)
}

fn convert_tool(tool: types::ToolDefinition) -> ToolDefinition {
    ToolDefinition {
        name: tool.name,
        title: tool.title,
        description: tool.description,
        input_schema: tool.input_schema,
        output_schema: tool.output_schema,
        annotations: tool.annotations.map(|hints| EffectHints {
            read_only: hints.read_only,
            destructive: hints.destructive,
            idempotent: hints.idempotent,
            open_world: hints.open_world,
        }),
        icons: tool.icons.into_iter().map(convert_icon).collect(),
        meta: tool.meta,
    }
}

fn convert_icon(icon: types::Icon) -> Icon {
    let theme = icon.theme.map(|theme| match theme {
        types::Theme::Light => IconTheme::Light,
        types::Theme::Dark => IconTheme::Dark,
    });
    Icon {
        src: icon.src,
        mime_type: icon.mime_type,
        sizes: icon.sizes,
        theme,
    }
}

fn convert_output(output: types::Output) -> ToolResult {
    let content = output.content.into_iter().map(convert_content).collect();
    ToolResult {
        content,
        structured: output.structured,
        meta: output.meta,
    }
}

fn convert_content(block: types::Content) -> RawBlock {
    let kind = match block.kind {
        types::ContentKind::Text => BlockKind::Text,
        types::ContentKind::Image => BlockKind::Image,
        types::ContentKind::Audio => BlockKind::Audio,
        types::ContentKind::ResourceLink => BlockKind::ResourceLink,
        types::ContentKind::EmbeddedResource => BlockKind::EmbeddedResource,
    };
    RawBlock {
        kind: kind.name().to_owned(),
        text: block.text,
        data: block.data,
        mime_type: block.mime_type,
        uri: block.uri,
        name: block.name,
        title: block.title,
        description: block.description,
        size: block.size,
        audience: block::deduplicate_audience(block.audience.into_iter().map(audience_name)),
        priority: block.priority,
        last_modified: None,
        members: None,
    }
}

fn audience_name(audience: types::Audience) -> &'static str {
    match audience {
        types::Audience::User => "user",
        types::Audience::Assistant => "assistant",
    }
}

impl types::Host for StoreState {}

impl host::Host for StoreState {
    fn log(&mut self, level: host::Level, message: String) -> wasmtime::Result<()> {
        Ok(self.imports.log(log_level(level), &message)?)
    }

    fn progress(
        &mut self,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    ) -> wasmtime::Result<()> {
        Ok(self.imports.progress(progress, total, message.as_deref())?)
    }

    fn cancelled(&mut self) -> wasmtime::Result<bool> {
        Ok(self.imports.is_cancelled())
    }

    fn config(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        Ok(self.imports.config(&key))
    }

    fn config_all(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        Ok(self.imports.config_all())
    }
}

fn log_level(level: host::Level) -> LogLevel {
    match level {
        host::Level::Debug => LogLevel::Debug,
        host::Level::Info => LogLevel::Info,
        host::Level::Notice => LogLevel::Notice,
        host::Level::Warning => LogLevel::Warning,
        host::Level::Error => LogLevel::Error,
        host::Level::Critical => LogLevel::Critical,
        host::Level::Alert => LogLevel::Alert,
        host::Level::Emergency => LogLevel::Emergency,
    }
}
