//! Components that a test loads and enters, in a sandbox that compiles in this process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytesize::ByteSize;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use toolbay_model::{
    Answerable, CallError, Description, Interrupt, Limits, Observer, Output, Quiet, Reply, ToolDefinition,
};

use crate::{Asked, Callable, Compile, Entry, Environment, Finished, PrepareError, Sandbox, Settings, Source};

/// A sandbox that compiles in this process.
pub(crate) fn sandbox() -> Sandbox {
    let compile = Compile { memory: ByteSize::gib(2), cpu: Duration::from_mins(1), timeout: Duration::from_mins(1) };
    let settings = Settings {
        calls: 16,
        waiting: 0,
        stack: ByteSize::kib(512),
        ceiling: Limits::CEILING,
        concurrent: true,
        compiler: None,
        compile,
        cache: None,
        http_client: toolbay_outgoing::Options::default(),
        state: None,
        scratch: std::env::temp_dir(),
    };
    Sandbox::new(settings).unwrap()
}

/// A loaded component and what it offers.
pub(crate) struct Loaded {
    sandbox: Sandbox,
    form: String,
    callable: Callable,
    pub(crate) description: Description,
}

/// What came of asking for something, checked.
pub(crate) type Answered = Finished<Option<Reply>>;

impl Loaded {
    /// A component that can be asked for what it offers.
    pub(crate) fn new(sandbox: &Sandbox, file: Vec<u8>) -> Result<Self, PrepareError> {
        Self::within(sandbox, file, &Limits::DEFAULT).map(Result::unwrap)
    }

    /// The same within limits, which asking for what it offers may reach.
    pub(crate) fn within(
        sandbox: &Sandbox,
        file: Vec<u8>,
        limits: &Limits,
    ) -> Result<Result<Self, CallError>, PrepareError> {
        runtime().block_on(async {
            let mut compiled = sandbox.compile(Source { file, wit: String::new() }).await?;
            let listed = match sandbox.describe(&compiled, limits).await.result {
                Ok(listed) => listed,
                Err(error) => return Ok(Err(error)),
            };
            let description = compiled.description(listed);
            let (prepared, ..) = compiled.into_parts();
            let form = prepared.form();
            Ok(Ok(Self { sandbox: sandbox.clone(), form, callable: prepared.into(), description }))
        })
    }

    /// How it offers what it has.
    pub(crate) fn form(&self) -> String {
        self.form.clone()
    }

    /// The tool of this name.
    pub(crate) fn tool(&self, name: &str) -> &ToolDefinition {
        self.description.tools.iter().find(|tool| tool.name == name).unwrap()
    }

    /// Calls a tool.
    pub(crate) fn call(&self, name: &str, arguments: &Value) -> Result<Output, CallError> {
        let arguments = arguments.to_string();
        match self.ask(Asked::Tool { name, arguments: &arguments })? {
            Some(Reply::Tool(output)) => Ok(output),
            other => panic!("{other:?}"),
        }
    }

    /// Asks for something.
    pub(crate) fn ask(&self, asked: Asked<'_>) -> Result<Option<Reply>, CallError> {
        self.enter(&Environment::default(), Arc::new(Quiet), asked).result
    }

    /// Asks for something in this environment.
    pub(crate) fn enter(&self, environment: &Environment, observer: Arc<dyn Observer>, asked: Asked<'_>) -> Answered {
        let deadline = Instant::now() + environment.limits.timeout;
        let (answerable, journal) = (Answerable::default(), Arc::default());
        let tape = crate::Tape::default();
        let (caller, trace, place) = (None, None, None);
        let entry = Entry { environment, caller, trace, observer, answerable, journal, deadline, tape, place };
        let finished = runtime().block_on(self.sandbox.call(&self.callable, entry, asked));
        let check = |returned: crate::Unchecked| returned.check(&environment.limits, None, &Interrupt::at(deadline));
        finished.and_then(check)
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}
