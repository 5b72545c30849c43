//! Test helper that loads and calls components, in a sandbox that compiles in this process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytesize::ByteSize;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use toolbay_model::{
    CallError, CallObserver, CallReply, ComponentDescription, Interrupt, Limits, NoopObserver,
    QuestionKindSet, ToolDefinition, ToolOutput,
};

use crate::{
    CallContext, CompileLimits, CompileSource, FinishedCall, PluginContext, PluginRequest,
    PrepareError, PreparedComponent, Sandbox, SandboxSettings,
};

/// Returns a sandbox that compiles in this process.
pub(crate) fn sandbox() -> Sandbox {
    let compile = CompileLimits {
        memory: ByteSize::gib(2),
        cpu: Duration::from_mins(1),
        timeout: Duration::from_mins(1),
    };
    let settings = SandboxSettings {
        max_calls: 16,
        max_waiting_calls: 0,
        stack_size: ByteSize::kib(512),
        max_limits: Limits::CEILING,
        allow_async: true,
        compiler: None,
        compile_limits: compile,
        cache: None,
        http_client: toolbay_outgoing::ConnectorOptions::default(),
        state: None,
        scratch: std::env::temp_dir(),
    };
    Sandbox::new(settings).unwrap()
}

/// Loaded component with its description.
pub(crate) struct TrialComponent {
    sandbox: Sandbox,
    form: String,
    prepared: PreparedComponent,
    pub(crate) description: ComponentDescription,
}

/// Checked result of a request.
pub(crate) type TrialReply = FinishedCall<Option<CallReply>>;

impl TrialComponent {
    /// Loads a component and reads its description.
    pub(crate) fn new(sandbox: &Sandbox, file: Vec<u8>) -> Result<Self, PrepareError> {
        Self::with_limits(sandbox, file, &Limits::DEFAULT).map(Result::unwrap)
    }

    /// Like [`TrialComponent::new`], within limits that reading the description may reach.
    pub(crate) fn with_limits(
        sandbox: &Sandbox,
        file: Vec<u8>,
        limits: &Limits,
    ) -> Result<Result<Self, CallError>, PrepareError> {
        runtime().block_on(async {
            let mut compiled = sandbox
                .compile(CompileSource {
                    file,
                    wit: String::new(),
                })
                .await?;
            let listed = match sandbox.describe(&compiled, limits).await.result {
                Ok(listed) => listed,
                Err(error) => return Ok(Err(error)),
            };
            let description = compiled.description(listed);
            let (prepared, ..) = compiled.into_parts();
            let form = prepared.form();
            Ok(Ok(Self {
                sandbox: sandbox.clone(),
                form,
                prepared,
                description,
            }))
        })
    }

    /// Returns the form of the component.
    pub(crate) fn form(&self) -> String {
        self.form.clone()
    }

    /// Returns the tool with this name.
    pub(crate) fn tool(&self, name: &str) -> &ToolDefinition {
        self.description
            .tools
            .iter()
            .find(|tool| tool.name == name)
            .unwrap()
    }

    /// Calls a tool.
    pub(crate) fn call(&self, name: &str, arguments: &Value) -> Result<ToolOutput, CallError> {
        let arguments = arguments.to_string();
        match self.request(PluginRequest::Tool {
            name,
            arguments: &arguments,
        })? {
            Some(CallReply::Tool(output)) => Ok(output),
            other => panic!("{other:?}"),
        }
    }

    /// Sends a request.
    pub(crate) fn request(
        &self,
        request: PluginRequest<'_>,
    ) -> Result<Option<CallReply>, CallError> {
        self.request_in(&PluginContext::default(), Arc::new(NoopObserver), request)
            .result
    }

    /// Sends a request in this environment.
    pub(crate) fn request_in(
        &self,
        environment: &PluginContext,
        observer: Arc<dyn CallObserver>,
        request: PluginRequest<'_>,
    ) -> TrialReply {
        let deadline = Instant::now() + environment.limits.timeout;
        let answerable = QuestionKindSet::default();
        let journal = Arc::default();
        let tape = crate::ReplayTape::default();
        let caller = None;
        let trace = None;
        let compute_permit = None;
        let context = CallContext {
            environment,
            caller,
            trace,
            observer,
            answerable,
            journal,
            deadline,
            tape,
            compute_permit,
        };
        let finished = runtime().block_on(self.sandbox.call(&self.prepared, context, request));
        let check = |returned: crate::UncheckedReply| {
            returned.check(
                &environment.limits,
                None,
                &Interrupt::with_deadline(deadline),
            )
        };
        finished.and_then(check)
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}
