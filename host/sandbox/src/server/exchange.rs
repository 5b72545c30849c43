//! One HTTP request to a guest's handler, and its response.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use tokio::sync::oneshot;
use toolbay_guest_mcp::{ClientMessage, ResponseReader};
use wasmtime::Store;
use wasmtime_wasi_http::p2::bindings::http::types::Scheme;
use wasmtime_wasi_http::{Error, WasiBody, WasiHttpView as _};

use super::beside::beside;
use super::intake::{MessageIntake, MessageKind, RequestReply};
use super::{serve, words};
use crate::http_handler::HandlerInstance;
use crate::state::StoreState;

/// The host that guests are asked at. Those that check it take it for one of the same machine.
const AUTHORITY: &str = "localhost";

/// Longest name of a session, in bytes.
const SESSION: usize = 1 << 10;

/// Bytes that the head of a request holds.
const HEAD_HELD: usize = 16 << 10;

/// How much of a body that is no message is waited for, in bytes.
const ENOUGH: usize = 512;

/// What a handler gave as its response, or why there is none, in words.
type HandlerOutcome = Result<http::Response<WasiBody>, String>;

/// Sends a request to the handler. Returns the name of the session that it gave, and what it said. If it is not the `last`
/// one, the handler is waited for.
pub(super) async fn exchange(
    handler: &HandlerInstance,
    store: &mut Store<StoreState>,
    path: &str,
    request: ClientMessage,
    last: bool,
) -> wasmtime::Result<(Option<String>, RequestReply)> {
    let mut intake = MessageIntake::of(store);
    let ClientMessage { id, headers, body } = request;
    intake.hold(HEAD_HELD + body.len())?;
    let mut message = http::Request::post(format!("http://{AUTHORITY}{path}")).header("host", AUTHORITY);
    for (name, value) in headers {
        message = message.header(name.as_ref(), value);
    }
    message = message.header("content-length", body.len());
    let body = Full::new(Bytes::from(body)).map_err(|never| -> Error { match never {} });
    let message = message.body(body)?;
    let silent = || wasmtime::bail!("its HTTP handler returned before its response was complete");
    match handler {
        HandlerInstance::P2(proxy) => {
            let (sender, receiver) = oneshot::channel();
            let http = &mut store.data_mut().http();
            let incoming = http.new_incoming_request(Scheme::Http, message)?;
            let outgoing = http.new_response_outparam(sender)?;
            let guest = proxy.wasi_http_incoming_handler().call_handle(&mut *store, incoming, outgoing);
            let given = async { receiver.await.ok().map(|given| given.map_err(|code| words::code(&code))) };
            beside(guest, response(given, &mut intake, id), last, silent).await
        }
        HandlerInstance::P3(service) => {
            let ((sender, receiver), (hearing, heard)) = (oneshot::channel(), oneshot::channel());
            let failed = AtomicBool::new(false);
            let guest = async {
                let ended = serve::serve(service, store, message.map(BodyExt::boxed_unsync), sender, heard).await;
                failed.store(ended.is_err(), Ordering::Relaxed);
                ended
            };
            let given = async {
                match receiver.await {
                    Ok(given) => Some(given.map_err(|code| words::code(&code))),
                    // It has ended, and how it did says why.
                    Err(_closed) => std::future::pending().await,
                }
            };
            let listening = async {
                let said = response(given, &mut intake, id).await;
                let is_outcome = matches!(said, Ok((_, RequestReply::Outcome(_))));
                if failed.load(Ordering::Relaxed) && !is_outcome {
                    // Its body ends with it, wherever it was: how it ended says more.
                    return std::future::pending().await;
                }
                drop(hearing);
                said
            };
            // It is large, and handlers of WASI 0.2 do not pay for it.
            Box::pin(beside(guest, listening, last, silent)).await
        }
    }
}

/// Reads the response.
async fn response(
    given: impl Future<Output = Option<HandlerOutcome>>,
    intake: &mut MessageIntake,
    id: Option<u64>,
) -> wasmtime::Result<(Option<String>, RequestReply)> {
    let response = match given.await {
        Some(Ok(response)) => response,
        Some(Err(why)) => return Ok((None, RequestReply::Wrong(format!("its HTTP handler failed: {why}")))),
        None => return Ok((None, RequestReply::Wrong("its HTTP handler gave no response".to_owned()))),
    };
    let (head, mut body) = response.into_parts();
    let status = head.status.as_u16();
    let field = |name: &str| head.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let session = field("mcp-session-id").filter(|name| !name.is_empty());
    if session.as_ref().is_some_and(|name| name.len() > SESSION || !name.bytes().all(|byte| byte.is_ascii_graphic())) {
        return Ok((
            None,
            RequestReply::Wrong("it names its session with more than 1 KiB, or not in ASCII".to_owned()),
        ));
    }
    let mut reader = match ResponseReader::new(field("content-type").as_deref(), field("content-encoding").as_deref()) {
        Ok(reader) => reader,
        Err(why) => return Ok((None, RequestReply::Wrong(why))),
    };
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => {
                return Ok((
                    session,
                    RequestReply::Wrong(format!("its response ended before it was complete: {}", words::code(&error))),
                ));
            }
        };
        let Ok(bytes) = frame.into_data() else { continue };
        // Once as they arrived, and once as the text that is read.
        intake.take(bytes.len())?;
        intake.hold(bytes.len())?;
        length += bytes.len();
        for text in reader.push(&bytes) {
            if let Some(said) = said(intake.message(&text, id)?) {
                return Ok((session, said));
            }
        }
        if !reader.carries() && length >= ENOUGH {
            break;
        }
    }
    let shown = reader.shown();
    if let Some(text) = reader.end() {
        return Ok((
            session,
            match intake.message(&text, id)? {
                MessageKind::Outcome(outcome) => RequestReply::Outcome(outcome),
                _ => RequestReply::Other(status, shown),
            },
        ));
    }
    Ok((session, RequestReply::Other(status, shown)))
}

/// What ends the wait. A request of the guest has no answer: it was told that there is nobody who could give one.
fn said(heard: MessageKind) -> Option<RequestReply> {
    match heard {
        MessageKind::Outcome(outcome) => Some(RequestReply::Outcome(outcome)),
        MessageKind::Wrong(why) => Some(RequestReply::Wrong(why)),
        MessageKind::Request(..) | MessageKind::Nothing => None,
    }
}
