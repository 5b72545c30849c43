//! Requests to a command that is an MCP server, over its standard input and output.

use toolbay_guest_mcp::{ClientMessage, respond_to_request};
use wasmtime_wasi::I32Exit;

use super::message_reader::{MessageIntake, MessageKind, RequestReply};
use crate::capability::stdio::stdio_transport::StdioConversation;

/// Maximum number of guest requests that are refused with a response during one request to the
/// guest.
const MAX_GUEST_REQUESTS: usize = 100;

/// Sends a line, and charges its bytes to the call's memory.
pub(super) fn send_line(
    talk: &StdioConversation,
    line: &str,
    intake: &MessageIntake,
) -> wasmtime::Result<()> {
    intake.charge_memory(line.len() + 1)?;
    talk.send(line);
    Ok(())
}

/// Sends a request and waits for its response.
pub(super) async fn send_request(
    talk: &StdioConversation,
    request: &ClientMessage,
    intake: &mut MessageIntake,
) -> wasmtime::Result<RequestReply> {
    send_line(talk, &request.body, intake)?;
    let mut requests = 0;
    loop {
        let line = talk.recv().await;
        // The guest's output has already been charged. The text is a copy.
        intake.charge_transfer(line.len())?;
        match intake.read_message(&String::from_utf8_lossy(&line), request.id)? {
            MessageKind::Outcome(outcome) => return Ok(RequestReply::Outcome(outcome)),
            MessageKind::Request(id, method) if requests < MAX_GUEST_REQUESTS => {
                requests += 1;
                send_line(talk, &respond_to_request(&id, &method), intake)?;
            }
            // Other output between the messages is not meant for the host.
            MessageKind::Request(..) | MessageKind::Ignored | MessageKind::Malformed(_) => {}
        }
    }
}

/// Returns the result of a command. An exit with status 0 is a success.
pub(super) fn exit_result(ended: wasmtime::Result<Result<(), ()>>) -> wasmtime::Result<()> {
    match ended {
        Ok(Ok(())) => Ok(()),
        Ok(Err(())) => Err(I32Exit(1).into()),
        Err(error) if matches!(error.downcast_ref(), Some(I32Exit(0))) => Ok(()),
        Err(error) => Err(error),
    }
}
