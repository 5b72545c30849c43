//! Sends one HTTP request to a guest's handler and reads the response.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use tokio::sync::oneshot;
use toolbay_guest_mcp::{ClientMessage, ResponseReader};
use wasmtime::Store;
use wasmtime_wasi_http::p2::bindings::http::types::Scheme;
use wasmtime_wasi_http::{Error, WasiBody, WasiHttpView as _};

use super::message_reader::{GuestMessageReader, MessageKind, RequestReply};
use super::run_until::run_until;
use super::{p3_handler, reply_conversion};
use crate::kind::http_handler::HandlerInstance;
use crate::store::state::StoreState;

/// Host name in requests to guests. Guests that check it accept it as the local machine.
const GUEST_AUTHORITY: &str = "localhost";

/// Maximum length of a session ID, in bytes.
const MAX_SESSION_ID_BYTES: usize = 1 << 10;

/// Memory that the head of a request uses, in bytes.
const REQUEST_HEAD_BYTES: usize = 16 << 10;

/// Length after which reading a body without messages stops, in bytes.
const MAX_ERROR_BODY_BYTES: usize = 512;

/// The handler's response, or a description of its error.
type HandlerOutcome = Result<http::Response<WasiBody>, String>;

/// Sends a request to the handler. Returns the session ID from the response, if any, and the
/// response. If `is_last` is not set, waits until the handler returns.
pub(super) async fn send_request(
    handler: &HandlerInstance,
    store: &mut Store<StoreState>,
    path: &str,
    request: ClientMessage,
    is_last: bool,
) -> wasmtime::Result<(Option<String>, RequestReply)> {
    let mut message_reader = GuestMessageReader::for_call(store);
    let ClientMessage { id, headers, body } = request;
    message_reader.charge_memory(REQUEST_HEAD_BYTES + body.len())?;
    let mut message = http::Request::post(format!("http://{GUEST_AUTHORITY}{path}"))
        .header("host", GUEST_AUTHORITY);
    for (name, value) in headers {
        message = message.header(name.as_ref(), value);
    }
    message = message.header("content-length", body.len());
    let body = Full::new(Bytes::from(body)).map_err(|never| -> Error { match never {} });
    let message = message.body(body)?;
    let missing_reply =
        || wasmtime::bail!("its HTTP handler returned before its response was complete");
    match handler {
        HandlerInstance::P2(proxy) => {
            let (sender, receiver) = oneshot::channel();
            let http = &mut store.data_mut().http();
            let incoming = http.new_incoming_request(Scheme::Http, message)?;
            let outgoing = http.new_response_outparam(sender)?;
            let guest =
                proxy
                    .wasi_http_incoming_handler()
                    .call_handle(&mut *store, incoming, outgoing);
            let response = async {
                receiver.await.ok().map(|outcome| {
                    outcome.map_err(|code| reply_conversion::describe_error_code(&code))
                })
            };
            run_until(
                guest,
                read_response(response, &mut message_reader, id),
                is_last,
                missing_reply,
            )
            .await
        }
        HandlerInstance::P3(service) => {
            let (sender, receiver) = oneshot::channel();
            let (read_sender, read_receiver) = oneshot::channel();
            let has_failed = AtomicBool::new(false);
            let guest = async {
                let result = p3_handler::run_handler(
                    service,
                    store,
                    message.map(BodyExt::boxed_unsync),
                    sender,
                    read_receiver,
                )
                .await;
                has_failed.store(result.is_err(), Ordering::Relaxed);
                result
            };
            let response = async {
                match receiver.await {
                    Ok(outcome) => {
                        Some(outcome.map_err(|code| reply_conversion::describe_error_code(&code)))
                    }
                    // The guest has ended; its result has the reason.
                    Err(_closed) => std::future::pending().await,
                }
            };
            let reading = async {
                let reply = read_response(response, &mut message_reader, id).await;
                let is_outcome = matches!(reply, Ok((_, RequestReply::Outcome(_))));
                if has_failed.load(Ordering::Relaxed) && !is_outcome {
                    // The body ends when the guest fails. The guest's error has more information.
                    return std::future::pending().await;
                }
                drop(read_sender);
                reply
            };
            // Boxed, because the future is large and WASI 0.2 handlers do not need it.
            Box::pin(run_until(guest, reading, is_last, missing_reply)).await
        }
    }
}

/// Reads the response.
async fn read_response(
    handler_outcome: impl Future<Output = Option<HandlerOutcome>>,
    message_reader: &mut GuestMessageReader,
    id: Option<u64>,
) -> wasmtime::Result<(Option<String>, RequestReply)> {
    let response = match handler_outcome.await {
        Some(Ok(response)) => response,
        Some(Err(why)) => {
            return Ok((
                None,
                RequestReply::Malformed(format!("its HTTP handler failed: {why}")),
            ));
        }
        None => {
            return Ok((
                None,
                RequestReply::Malformed("its HTTP handler gave no response".to_owned()),
            ));
        }
    };
    let (head, mut body) = response.into_parts();
    let status = head.status.as_u16();
    let header = |name: &str| {
        head.headers
            .get(name)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let session = header("mcp-session-id").filter(|name| !name.is_empty());
    if session.as_ref().is_some_and(|name| {
        name.len() > MAX_SESSION_ID_BYTES || !name.bytes().all(|byte| byte.is_ascii_graphic())
    }) {
        return Ok((
            None,
            RequestReply::Malformed(
                "its session ID is longer than 1 KiB, or is not visible ASCII".to_owned(),
            ),
        ));
    }
    let mut reader = match ResponseReader::new(
        header("content-type").as_deref(),
        header("content-encoding").as_deref(),
    ) {
        Ok(reader) => reader,
        Err(why) => return Ok((None, RequestReply::Malformed(why))),
    };
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => {
                return Ok((
                    session,
                    RequestReply::Malformed(format!(
                        "its response ended before it was complete: {}",
                        reply_conversion::describe_error_code(&error)
                    )),
                ));
            }
        };
        let Ok(bytes) = frame.into_data() else {
            continue;
        };
        // The bytes are charged twice: as received, and as the text that is parsed.
        message_reader.charge_transfer(bytes.len())?;
        message_reader.charge_memory(bytes.len())?;
        length += bytes.len();
        for text in reader.push(&bytes) {
            if let Some(reply) = final_response(message_reader.read_message(&text, id)?) {
                return Ok((session, reply));
            }
        }
        if !reader.carries_messages() && length >= MAX_ERROR_BODY_BYTES {
            break;
        }
    }
    let excerpt = reader.body_excerpt();
    if let Some(text) = reader.finish() {
        return Ok((
            session,
            match message_reader.read_message(&text, id)? {
                MessageKind::Outcome(outcome) => RequestReply::Outcome(outcome),
                _ => RequestReply::NotMcp(status, excerpt),
            },
        ));
    }
    Ok((session, RequestReply::NotMcp(status, excerpt)))
}

/// Returns the response if this message ends the wait. A request of the guest does not end it, and
/// gets no response: the host declared that the client cannot answer requests.
fn final_response(message: MessageKind) -> Option<RequestReply> {
    match message {
        MessageKind::Outcome(outcome) => Some(RequestReply::Outcome(outcome)),
        MessageKind::Malformed(why) => Some(RequestReply::Malformed(why)),
        MessageKind::Request(..) | MessageKind::Ignored => None,
    }
}
