//! Requests to a command that is an MCP server, over its standard input and output.

use toolbay_guest_mcp::{ClientMessage, respond_to_request};
use wasmtime_wasi::I32Exit;

use super::message_reader::{GuestMessageReader, MessageKind, RequestReply};
use crate::capability::stdio::stdio_transport::StdioTransport;

/// Maximum number of guest requests that are refused with a response during one request to the
/// guest.
const MAX_GUEST_REQUESTS: usize = 100;

/// Sends a line, and charges its bytes to the call's memory.
pub(super) fn send_line(
    transport: &StdioTransport,
    line: &str,
    message_reader: &GuestMessageReader,
) -> wasmtime::Result<()> {
    message_reader.charge_memory(line.len() + 1)?;
    transport.send(line);
    Ok(())
}

/// Sends a request and waits for its response.
pub(super) async fn send_request(
    transport: &StdioTransport,
    request: &ClientMessage,
    message_reader: &mut GuestMessageReader,
) -> wasmtime::Result<RequestReply> {
    send_line(transport, &request.body, message_reader)?;
    let mut guest_request_count = 0;
    loop {
        let line = transport.recv().await;
        // The guest's output has already been charged. The text is a copy.
        message_reader.charge_transfer(line.len())?;
        match message_reader.read_message(&String::from_utf8_lossy(&line), request.id)? {
            MessageKind::Outcome(outcome) => return Ok(RequestReply::Outcome(outcome)),
            MessageKind::Request(id, method) if guest_request_count < MAX_GUEST_REQUESTS => {
                guest_request_count += 1;
                send_line(transport, &respond_to_request(&id, &method), message_reader)?;
            }
            // Other output between the messages is not meant for the host.
            MessageKind::Request(..) | MessageKind::Ignored | MessageKind::Malformed(_) => {}
        }
    }
}

/// Returns the result of a command. An exit with status 0 is a success.
pub(super) fn exit_result(run_result: wasmtime::Result<Result<(), ()>>) -> wasmtime::Result<()> {
    match run_result {
        Ok(Ok(())) => Ok(()),
        Ok(Err(())) => Err(I32Exit(1).into()),
        Err(error) if matches!(error.downcast_ref(), Some(I32Exit(0))) => Ok(()),
        Err(error) => Err(error),
    }
}
