//! Sends one HTTP request to a guest's handler and reads the response.

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

/// Host name in requests to guests. Guests that check it accept it as the local machine.
const AUTHORITY: &str = "localhost";

/// Maximum length of a session ID, in bytes.
const SESSION: usize = 1 << 10;

/// Memory that the head of a request uses, in bytes.
const HEAD_HELD: usize = 16 << 10;

/// Length after which reading a body without messages stops, in bytes.
const ENOUGH: usize = 512;

/// The handler's response, or a description of its error.
type HandlerOutcome = Result<http::Response<WasiBody>, String>;

/// Sends a request to the handler. Returns the session ID from the response, if any, and the
/// response. If `last` is not set, waits until the handler returns.
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
                    // The guest has ended; its result has the reason.
                    Err(_closed) => std::future::pending().await,
                }
            };
            let listening = async {
                let said = response(given, &mut intake, id).await;
                let is_outcome = matches!(said, Ok((_, RequestReply::Outcome(_))));
                if failed.load(Ordering::Relaxed) && !is_outcome {
                    // The body ends when the guest fails. The guest's error has more information.
                    return std::future::pending().await;
                }
                drop(hearing);
                said
            };
            // Boxed, because the future is large and WASI 0.2 handlers do not need it.
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
        // The bytes are charged twice: as received, and as the text that is parsed.
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

/// Returns the response if this message ends the wait. A request of the guest does not, and gets no
/// answer: the guest was informed that no client can answer it.
fn said(heard: MessageKind) -> Option<RequestReply> {
    match heard {
        MessageKind::Outcome(outcome) => Some(RequestReply::Outcome(outcome)),
        MessageKind::Wrong(why) => Some(RequestReply::Wrong(why)),
        MessageKind::Request(..) | MessageKind::Nothing => None,
    }
}
