//! Commands as tools: `wasi:cli/run` receives the arguments as JSON on standard input and writes
//! its result to standard output.

use serde_json::{Map, Value};
use toolbay_model::ToolDefinition;
use wasmtime::Store;
use wasmtime_wasi::I32Exit;

use crate::kind::linked_command::LinkedCommand;
use crate::reply::block::RawBlock;
use crate::reply::guest_reply::{GuestFailure, ToolResult};
use crate::store::state::StoreState;

/// The tool's placeholder name. The plugin's file name replaces it.
pub(crate) const COMMAND_TOOL_NAME: &str = "run";

/// The only tool of a command.
pub(crate) fn command_definition() -> ToolDefinition {
    ToolDefinition {
        name: COMMAND_TOOL_NAME.into(),
        description: Some(
            "Runs a command. It receives the arguments as JSON on standard input, and its standard output is the result."
                .into(),
        ),
        input_schema: r#"{"type":"object"}"#.into(),
        ..ToolDefinition::default()
    }
}

/// Runs the command. The store's standard input contains the arguments.
pub(crate) async fn run_command(
    command: &LinkedCommand,
    store: &mut Store<StoreState>,
) -> wasmtime::Result<Result<ToolResult, GuestFailure>> {
    let outcome = match command.instantiate(store).await?.run(store).await {
        Ok(result) => result.map_err(|()| 1),
        Err(error) => match error.downcast_ref::<I32Exit>() {
            Some(I32Exit(0)) => Ok(()),
            Some(I32Exit(code)) => Err(*code),
            None => return Err(error),
        },
    };
    let (stdout, stderr) = store.data().stdio.captured();
    if let Err(code) = outcome {
        let [stdout, stderr] =
            [stdout, stderr].map(|captured| captured.scrubbed(&store.data().secrets));
        let output = [stderr.trim(), stdout.trim()]
            .into_iter()
            .find(|text| !text.is_empty());
        let message = output.map_or_else(
            || format!("The command exited with code {code}."),
            str::to_owned,
        );
        return Ok(Err(GuestFailure::Failed(message)));
    }
    let stdout = stdout.text();
    // A JSON object is structured content as well.
    let structured = serde_json::from_str::<Map<String, Value>>(&stdout)
        .is_ok()
        .then(|| stdout.clone());
    Ok(Ok(ToolResult {
        content: vec![RawBlock::text(stdout)],
        structured,
        meta: None,
    }))
}
