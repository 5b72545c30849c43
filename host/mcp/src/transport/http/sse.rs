//! The HTTP+SSE transport of 2024-11-05: a stream at `/sse` announces the URL for messages and
//! carries the responses.

use std::pin::Pin;
use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Query, Request, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;

use super::app_state::{HttpState, read_body};
use super::credential_validity::CredentialValidity;
use super::event::EventSource;
use super::headers::ErrorId;
use super::peer::HttpPeer;
use super::post_response;
use super::sse_streams::OpenStream;
use super::{event, sessions};
use crate::dispatch::dispatcher;
use crate::exchange::outbox::{self, OutboxReceiver};
use crate::host::caller::Caller;
use crate::protocol::jsonrpc;
use crate::session::client_session::{Session, SessionChannel};

/// Path at which clients open their stream.
pub(super) const SSE_PATH: &str = "/sse";

/// Path to which clients post messages.
pub(super) const MESSAGES_PATH: &str = "/messages";

/// Ends the session when its stream ends.
struct SessionEnd {
    app: Arc<HttpState>,
    id: String,
}

impl Drop for SessionEnd {
    fn drop(&mut self) {
        let open = self.app.streams.open_streams().remove(&self.id);
        if let Some(open) = open {
            open.session.shutdown.ended.cancel();
        }
    }
}

#[derive(Deserialize)]
pub(super) struct StreamAddress {
    session: String,
}

/// Opens a stream. The limit on connections also limits streams.
pub(super) async fn open_stream(
    State(app): State<Arc<HttpState>>,
    Extension(caller): Extension<Arc<Caller>>,
    Extension(trust): Extension<CredentialValidity>,
) -> Response {
    let Ok(id) = sessions::new_id() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let session = Session::new(
        Arc::clone(&app.server),
        caller,
        Arc::clone(&app.intake),
        SessionChannel::Shared,
        app.life.child(),
    );
    let (outbox, messages) = outbox::channel();
    let endpoint = event::named_event(
        "endpoint",
        "",
        format!("{}?session={id}", relative_reference(MESSAGES_PATH)).as_bytes(),
    );
    let stopped = app.life.closing.clone();
    app.streams
        .open_streams()
        .insert(id.clone(), OpenStream { session, outbox });
    let keep_alive = app.options.stream_keep_alive;
    let over = async move {
        tokio::select! {
            () = stopped.cancelled() => {}
            () = trust.wait_until_invalid() => {}
        }
    };
    let all = SessionMessages {
        messages,
        over: Box::pin(over),
        _end: SessionEnd { app, id },
    };
    post_response::event_stream(Some(endpoint), all, keep_alive)
}

/// Source of all messages of a session, until the server stops or the client's trust lapses.
struct SessionMessages {
    messages: OutboxReceiver,
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
    _end: SessionEnd,
}

impl EventSource for SessionMessages {
    async fn next(&mut self) -> Option<Bytes> {
        tokio::select! {
            biased;
            () = self.over.as_mut() => None,
            message = self.messages.recv() => Some(event::message_event(None, &message?.text)),
        }
    }
}

/// Returns a path as a reference relative to [`SSE_PATH`]. It stays valid if a proxy serves both
/// below a prefix.
fn relative_reference(path: &str) -> &str {
    path.trim_start_matches('/')
}

/// Handles a posted message. The response goes to the stream.
pub(super) async fn post_message(
    State(app): State<Arc<HttpState>>,
    Extension(caller): Extension<Arc<Caller>>,
    Extension(trust): Extension<CredentialValidity>,
    Extension(peer): Extension<HttpPeer>,
    address: Result<Query<StreamAddress>, QueryRejection>,
    request: Request,
) -> Response {
    let Ok(Query(address)) = address else {
        let what = "the query must contain `session` exactly once: post to the URL that the stream at /sse announces, \
                    /messages?session=ID";
        return (StatusCode::BAD_REQUEST, what).into_response();
    };
    let open = app.streams.open_streams().get(&address.session).cloned();
    let Some(open) = open.filter(|open| open.session.is_owned_by(&caller)) else {
        return (StatusCode::NOT_FOUND, "unknown stream; open one at /sse").into_response();
    };
    let (parts, body) = request.into_parts();
    let headers = parts.headers;
    let payload = match read_body(&app, &caller, body, ErrorId::Null).await {
        Ok(payload) => payload,
        Err(response) => return response,
    };
    // A client can take a long time to send a body.
    let caller = match app.gate.authenticate_again(
        (caller, trust),
        &headers,
        peer.source,
        app.server.calls(),
    ) {
        Ok((caller, _)) if open.session.is_owned_by(&caller) => caller,
        Ok(_) => {
            return (StatusCode::NOT_FOUND, "unknown stream; open one at /sse").into_response();
        }
        Err(denied) => return app.reject(peer.source, &denied),
    };
    let length = payload.bytes.len();
    let receiving = async move {
        dispatcher::receive(
            &open.session,
            &caller,
            jsonrpc::decode(&payload.bytes),
            &open.outbox,
        )
        .await;
    };
    app.body_workers.run(length, receiving).await;
    (StatusCode::ACCEPTED, "Accepted").into_response()
}
