//! Version 0.2.0 of the contract.

use toolbay_model::{
    CompletionReference, CompletionRequest, ComponentDescription, EffectHints, Icon, IconTheme,
    LogLevel, PromptArgument, PromptDefinition, ResourceDefinition, ToolDefinition,
};
use wasmtime::Store;
use wasmtime::component::{HasSelf, InstancePre, Linker};

use self::bindings::FullPlugin;
use self::bindings::exports::toolbay::plugin::{completion, prompts, resources, tools};
use self::bindings::toolbay::plugin::{host, types};
use super::interface::{ExportedInterface, ExportedInterfaces};
use crate::capability::input_request::{QuestionRefusal, RawQuestion, RawQuestionKind};
use crate::component::contract_interface::ContractInterface;
use crate::component::prepare_error::PrepareError;
use crate::context::plugin_request::PluginRequest;
use crate::reply::block::{self, RawBlock};
use crate::reply::guest_reply::{
    ArgumentSuggestions, FilledPrompt, GuestFailure, GuestReply, ReadResource, ResourceReplyItem,
    ToolResult,
};
use crate::store::state::StoreState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/0.2.0",
        world: "full-plugin",
        imports: { default: trappable },
        exports: { default: async },
    });
}

/// A component that implements the contract, with the interfaces that it exports.
pub(crate) struct Adapter {
    pre: InstancePre<StoreState>,
    tools: Option<tools::GuestIndices>,
    prompts: Option<prompts::GuestIndices>,
    resources: Option<resources::GuestIndices>,
    completion: Option<completion::GuestIndices>,
}

impl Adapter {
    pub(super) fn new(
        interfaces: &ExportedInterfaces<'_>,
        pre: InstancePre<StoreState>,
    ) -> Result<Self, PrepareError> {
        let mut adapter = Self {
            pre,
            tools: None,
            prompts: None,
            resources: None,
            completion: None,
        };
        for (part, interface) in interfaces {
            let to_mismatch = |error| interface.type_mismatch(&error);
            match part {
                ContractInterface::Tools => {
                    check_tools(interface)?;
                    adapter.tools =
                        Some(tools::GuestIndices::new(&adapter.pre).map_err(to_mismatch)?);
                }
                ContractInterface::Prompts => {
                    check_prompts(interface)?;
                    adapter.prompts =
                        Some(prompts::GuestIndices::new(&adapter.pre).map_err(to_mismatch)?);
                }
                ContractInterface::Resources => {
                    check_resources(interface)?;
                    adapter.resources =
                        Some(resources::GuestIndices::new(&adapter.pre).map_err(to_mismatch)?);
                }
                ContractInterface::Completion => {
                    check_completion(interface)?;
                    adapter.completion =
                        Some(completion::GuestIndices::new(&adapter.pre).map_err(to_mismatch)?);
                }
            }
        }
        Ok(adapter)
    }

    /// Requests every list, in one instance.
    pub(super) async fn list(
        &self,
        store: &mut Store<StoreState>,
    ) -> wasmtime::Result<ComponentDescription> {
        let instance = self.pre.instantiate_async(&mut *store).await?;
        let mut description = ComponentDescription {
            completes: self.completion.is_some(),
            ..ComponentDescription::default()
        };
        if let Some(tools) = &self.tools {
            let tools = tools
                .load(&mut *store, &instance)?
                .call_list_tools(&mut *store)
                .await?;
            description.tools = tools.into_iter().map(convert_tool).collect();
            charge_transfer(store, description.tools.iter().map(ToolDefinition::size));
        }
        if let Some(prompts) = &self.prompts {
            let prompts = prompts
                .load(&mut *store, &instance)?
                .call_list_prompts(&mut *store)
                .await?;
            description.prompts = prompts.into_iter().map(convert_prompt).collect();
            charge_transfer(
                store,
                description.prompts.iter().map(PromptDefinition::size),
            );
        }
        if let Some(resources) = &self.resources {
            let resources = resources.load(&mut *store, &instance)?;
            let listed = resources.call_list_resources(&mut *store).await?;
            description.resources = listed.into_iter().map(convert_resource).collect();
            charge_transfer(
                store,
                description.resources.iter().map(ResourceDefinition::size),
            );
            let templates = resources.call_list_resource_templates(&mut *store).await?;
            description.templates = templates.into_iter().map(convert_template).collect();
        }
        Ok(description)
    }

    pub(super) async fn call(
        &self,
        store: &mut Store<StoreState>,
        plugin_request: PluginRequest<'_>,
    ) -> wasmtime::Result<Result<GuestReply, GuestFailure>> {
        let result = match (
            plugin_request,
            &self.tools,
            &self.prompts,
            &self.resources,
            &self.completion,
        ) {
            (PluginRequest::Tool { name, arguments }, Some(tools), ..) => {
                let instance = self.pre.instantiate_async(&mut *store).await?;
                let tools = tools.load(&mut *store, &instance)?;
                tools
                    .call_call_tool(store, name, arguments)
                    .await?
                    .map(|output| GuestReply::Tool(convert_output(output)))
            }
            (PluginRequest::Prompt { name, arguments }, _, Some(prompts), ..) => {
                let instance = self.pre.instantiate_async(&mut *store).await?;
                let prompts = prompts.load(&mut *store, &instance)?;
                let arguments: Vec<_> = arguments
                    .iter()
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                prompts
                    .call_get_prompt(store, name, &arguments)
                    .await?
                    .map(|output| GuestReply::Prompt(convert_prompt_output(output)))
            }
            (PluginRequest::Resource { uri }, _, _, Some(resources), _) => {
                let instance = self.pre.instantiate_async(&mut *store).await?;
                let resources = resources.load(&mut *store, &instance)?;
                let items = resources.call_read_resource(store, uri).await?;
                items.map(|items| GuestReply::Resource(convert_contents(uri, items)))
            }
            (PluginRequest::Completion(request), .., Some(completion)) => {
                let instance = self.pre.instantiate_async(&mut *store).await?;
                let completion = completion.load(&mut *store, &instance)?;
                let completions = completion
                    .call_complete(store, &to_completion_request(request))
                    .await?;
                completions
                    .map(|completions| GuestReply::Completion(convert_completions(completions)))
            }
            (asked, ..) => return Ok(Err(asked.not_offered_failure())),
        };
        Ok(result.map_err(|failure| match failure {
            types::Failure::InvalidArguments(text) => GuestFailure::InvalidArguments(text),
            types::Failure::Failed(text) => GuestFailure::Failed(text),
        }))
    }
}

fn check_tools(interface: &ExportedInterface<'_>) -> Result<(), PrepareError> {
    interface.check_function("list-tools", |function, ty| {
        function.typecheck::<(), (Vec<types::ToolDefinition>,)>(&ty.instance_type())
    })?;
    interface.check_function("call-tool", |function, ty| {
        function.typecheck::<(&str, &str), (Result<types::Output, types::Failure>,)>(
            &ty.instance_type(),
        )
    })
}

fn check_prompts(interface: &ExportedInterface<'_>) -> Result<(), PrepareError> {
    interface.check_function("list-prompts", |function, ty| {
        function.typecheck::<(), (Vec<types::PromptDefinition>,)>(&ty.instance_type())
    })?;
    interface.check_function("get-prompt", |function, ty| {
        function.typecheck::<(&str, &[(String, String)]), (Result<types::PromptOutput, types::Failure>,)>(
            &ty.instance_type(),
        )
    })
}

fn check_resources(interface: &ExportedInterface<'_>) -> Result<(), PrepareError> {
    interface.check_function("list-resources", |function, ty| {
        function.typecheck::<(), (Vec<types::ResourceDefinition>,)>(&ty.instance_type())
    })?;
    interface.check_function("list-resource-templates", |function, ty| {
        function.typecheck::<(), (Vec<types::ResourceTemplate>,)>(&ty.instance_type())
    })?;
    interface.check_function("read-resource", |function, ty| {
        function.typecheck::<(&str,), (Result<Vec<types::ResourceContents>, types::Failure>,)>(
            &ty.instance_type(),
        )
    })
}

fn check_completion(interface: &ExportedInterface<'_>) -> Result<(), PrepareError> {
    interface.check_function("complete", |function, ty| {
        function.typecheck::<(&types::CompletionRequest,), (Result<types::Completions, types::Failure>,)>(
            &ty.instance_type(),
        )
    })
}

/// Subtracts `sizes` from the remaining transfer limit. Wasmtime bounds the bytes of each reply.
/// All lists together share the transfer limit of one call.
fn charge_transfer(store: &mut Store<StoreState>, sizes: impl Iterator<Item = usize>) {
    let remaining = store.hostcall_fuel().saturating_sub(sizes.sum());
    store.set_hostcall_fuel(remaining);
}

pub(super) fn add_to_linker(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    FullPlugin::add_to_linker::<StoreState, HasSelf<StoreState>>(linker, |state| state)
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

fn convert_prompt(prompt: types::PromptDefinition) -> PromptDefinition {
    let argument = |argument: types::PromptArgument| PromptArgument {
        name: argument.name,
        title: argument.title,
        description: argument.description,
        required: argument.required,
    };
    PromptDefinition {
        name: prompt.name,
        title: prompt.title,
        description: prompt.description,
        arguments: prompt.arguments.into_iter().map(argument).collect(),
        icons: prompt.icons.into_iter().map(convert_icon).collect(),
        meta: prompt.meta,
    }
}

fn convert_resource(resource: types::ResourceDefinition) -> ResourceDefinition {
    ResourceDefinition {
        uri: resource.uri,
        name: resource.name,
        title: resource.title,
        description: resource.description,
        mime_type: resource.mime_type,
        size: resource.size,
        audience: audience_names(resource.audience),
        priority: resource.priority,
        last_modified: resource.last_modified,
        icons: resource.icons.into_iter().map(convert_icon).collect(),
        meta: resource.meta,
    }
}

fn convert_template(template: types::ResourceTemplate) -> ResourceDefinition {
    ResourceDefinition {
        uri: template.uri_template,
        name: template.name,
        title: template.title,
        description: template.description,
        mime_type: template.mime_type,
        size: None,
        audience: audience_names(template.audience),
        priority: template.priority,
        last_modified: None,
        icons: template.icons.into_iter().map(convert_icon).collect(),
        meta: template.meta,
    }
}

fn audience_names(roles: Vec<types::Role>) -> Vec<String> {
    block::deduplicate_audience(roles.into_iter().map(role_name))
        .into_iter()
        .map(str::to_owned)
        .collect()
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

fn convert_prompt_output(output: types::PromptOutput) -> FilledPrompt {
    let message =
        |message: types::PromptMessage| (role_name(message.role), convert_content(message.content));
    FilledPrompt {
        description: output.description,
        messages: output.messages.into_iter().map(message).collect(),
        meta: output.meta,
    }
}

fn convert_contents(uri: &str, items: Vec<types::ResourceContents>) -> ReadResource {
    let item = |item: types::ResourceContents| ResourceReplyItem {
        uri: item.uri,
        mime_type: item.mime_type,
        text: item.text,
        data: item.data,
        meta: item.meta,
    };
    ReadResource {
        uri: uri.to_owned(),
        items: items.into_iter().map(item).collect(),
    }
}

fn to_completion_request(request: &CompletionRequest) -> types::CompletionRequest {
    let (kind, name) = match &request.reference {
        CompletionReference::Prompt(name) => (types::ReferenceKind::Prompt, name),
        CompletionReference::Resource(uri) => (types::ReferenceKind::ResourceTemplate, uri),
    };
    types::CompletionRequest {
        kind,
        name: name.clone(),
        argument: request.argument.clone(),
        value: request.value.clone(),
        context: request
            .context
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    }
}

fn convert_completions(completions: types::Completions) -> ArgumentSuggestions {
    let types::Completions {
        values,
        total,
        has_more,
    } = completions;
    ArgumentSuggestions {
        values,
        total,
        has_more,
    }
}

fn convert_content(block: types::Content) -> RawBlock {
    RawBlock {
        kind: block.kind,
        text: block.text,
        data: block.data,
        mime_type: block.mime_type,
        uri: block.uri,
        name: block.name,
        title: block.title,
        description: block.description,
        size: block.size,
        audience: block::deduplicate_audience(block.audience.into_iter().map(role_name)),
        priority: block.priority,
        last_modified: block.last_modified,
        members: block.members,
    }
}

fn role_name(role: types::Role) -> &'static str {
    match role {
        types::Role::User => "user",
        types::Role::Assistant => "assistant",
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

    fn ask(
        &mut self,
        questions: Vec<types::Question>,
    ) -> wasmtime::Result<Result<Vec<String>, types::AskError>> {
        let questions: Vec<_> = questions.into_iter().map(to_raw_question).collect();
        let answers = self.question_context.ask(&questions)?;
        Ok(answers.map_err(|refusal| match refusal {
            QuestionRefusal::Unsupported(why) => types::AskError::Unsupported(why),
            QuestionRefusal::Invalid(why) => types::AskError::Invalid(why),
        }))
    }

    fn resource_updated(&mut self, uri: String) -> wasmtime::Result<()> {
        Ok(self.imports.resource_updated(&uri)?)
    }
}

fn to_raw_question(question: types::Question) -> RawQuestion {
    let kind = match question.kind {
        types::QuestionKind::Form => RawQuestionKind::Form,
        types::QuestionKind::Url => RawQuestionKind::Url,
        types::QuestionKind::Sampling => RawQuestionKind::Sampling,
        types::QuestionKind::Roots => RawQuestionKind::Roots,
    };
    RawQuestion {
        key: question.key,
        kind,
        params: question.params,
        is_required: question.required,
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
