//! Commands as tools: `wasi:cli/run` gets the arguments as JSON on standard input and answers on standard output.

use serde_json::{Map, Value};
use toolbay_model::ToolDefinition;
use wasmtime::Store;
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p2::bindings::CommandPre;

use crate::block::{Block, Refusal, Returned};
use crate::state::State;

/// What the tool is called until it is known by its file's name.
const NAME: &str = "run";

/// The one tool that a command is.
pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: NAME.into(),
        description: Some(
            "Runs a command. It receives the arguments as JSON on standard input, and its standard output is the result."
                .into(),
        ),
        input_schema: r#"{"type":"object"}"#.into(),
        ..ToolDefinition::default()
    }
}

/// Runs it. The store's standard input has the arguments.
pub(crate) async fn call(
    pre: &CommandPre<State>,
    store: &mut Store<State>,
) -> wasmtime::Result<Result<Returned, Refusal>> {
    let command = pre.instantiate_async(&mut *store).await?;
    let done = match command.wasi_cli_run().call_run(&mut *store).await {
        Ok(done) => done.map_err(|()| 1),
        Err(error) => match error.downcast_ref::<I32Exit>() {
            Some(I32Exit(0)) => Ok(()),
            Some(I32Exit(code)) => Err(*code),
            None => return Err(error),
        },
    };
    let (stdout, stderr) = store.data().stdio.captured();
    if let Err(code) = done {
        let [stdout, stderr] = [stdout, stderr].map(|kept| kept.scrubbed(&store.data().secrets));
        let said = [stderr.trim(), stdout.trim()].into_iter().find(|text| !text.is_empty());
        let said = said.map_or_else(|| format!("The command exited with code {code}."), str::to_owned);
        return Ok(Err(Refusal::Failed(said)));
    }
    let stdout = stdout.text();
    // A JSON object is structured content as well.
    let structured = serde_json::from_str::<Map<String, Value>>(&stdout).is_ok().then(|| stdout.clone());
    Ok(Ok(Returned { content: vec![Block::text(stdout)], structured, meta: None }))
}
