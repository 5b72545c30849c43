//! Requests of `toolbay approvals` on the console's own socket: the waiting calls, the question of
//! one, and an answer. The client and the server are processes of the same user.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::forwarder::connect_and_request;
use crate::operations::{ConsoleOperations, ConsoleViewer};
use crate::server_data::{ApprovalOutcome, WaitingApproval};
use crate::socket_protocol::SocketRequest;

/// Name of the viewer who answers in a terminal.
const TERMINAL_VIEWER_NAME: &str = "terminal";

/// Maximum length of a request, in bytes.
const MAX_REQUEST_BYTES: u64 = 1 << 10;

/// Maximum length of a response, in bytes: the longest list of calls, or a question.
const MAX_RESPONSE_BYTES: u64 = 1 << 20;

/// Maximum time for a request and its response.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(10);

/// A request about the waiting calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ApprovalRequest {
    /// Lists the waiting calls, without their questions.
    List,
    /// Returns the call with this id, with its question.
    Show(u64),
    /// Answers the call with this id.
    Answer {
        /// The id of the call.
        id: u64,
        /// True to allow the call.
        approve: bool,
    },
}

/// The response to an [`ApprovalRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalResponse {
    /// The waiting calls, oldest first.
    Waiting(Vec<WaitingCall>),
    /// The outcome of an answer.
    Answered(ApprovalOutcome),
}

/// A call that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct WaitingCall {
    /// Number of the call. The first call of a server has a random number.
    pub id: u64,
    /// The plugin.
    pub plugin: String,
    /// The name of the tool for clients.
    pub tool: String,
    /// The caller's name.
    pub caller: String,
    /// Time at which the call started to wait, in seconds of Unix time.
    pub asked_at: u64,
    /// Time at which the question expires, in seconds of Unix time.
    pub expires_at: u64,
    /// The calls that an approval covers, such as `this call`.
    pub covered_calls: String,
    /// The question; `None` in a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

impl WaitingCall {
    fn new(approval: WaitingApproval, with_question: bool) -> Self {
        let seconds = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self {
            id: approval.id,
            plugin: approval.plugin,
            tool: approval.tool,
            caller: approval.caller,
            asked_at: seconds(approval.asked_at),
            expires_at: seconds(approval.expires_at),
            covered_calls: approval.covered_calls.to_owned(),
            question: with_question.then_some(approval.question),
        }
    }
}

/// Sends a request to the server with this socket.
///
/// # Errors
///
/// Returns an error if the server does not respond or belongs to another user.
pub async fn request_approvals(
    socket: &Path,
    request: ApprovalRequest,
) -> io::Result<ApprovalResponse> {
    let exchange = async {
        let mut stream = connect_and_request(socket, SocketRequest::Approvals).await?;
        let text = serde_json::to_string(&request)?;
        stream.write_all(format!("{text}\n").as_bytes()).await?;
        let line = read_line(&mut stream, MAX_RESPONSE_BYTES).await?;
        Ok(serde_json::from_str(&line)?)
    };
    timeout(EXCHANGE_TIMEOUT, exchange)
        .await
        .map_err(|_| io::Error::new(ErrorKind::TimedOut, "it does not respond"))?
}

/// Function that handles the requests of `toolbay approvals`.
pub type ApprovalHandler =
    Arc<dyn Fn(ApprovalRequest) -> BoxFuture<'static, ApprovalResponse> + Send + Sync>;

/// Returns the handler for the calls that wait at the server behind `operations`.
pub fn approval_handler(operations: Arc<dyn ConsoleOperations>) -> ApprovalHandler {
    Arc::new(move |request| {
        let operations = Arc::clone(&operations);
        Box::pin(async move { respond(&*operations, request).await })
    })
}

/// Handles one request on a connection.
pub(crate) async fn handle_request(stream: &mut UnixStream, handler: &ApprovalHandler) {
    let exchange = async {
        let line = read_line(stream, MAX_REQUEST_BYTES).await?;
        let request = serde_json::from_str(&line)?;
        let response = serde_json::to_string(&handler(request).await)?;
        stream.write_all(format!("{response}\n").as_bytes()).await
    };
    drop(timeout(EXCHANGE_TIMEOUT, exchange).await);
}

async fn respond(operations: &dyn ConsoleOperations, request: ApprovalRequest) -> ApprovalResponse {
    let viewer = ConsoleViewer {
        name: TERMINAL_VIEWER_NAME.to_owned(),
        is_local: true,
    };
    let waiting = || operations.waiting_approvals().into_iter();
    match request {
        ApprovalRequest::List => ApprovalResponse::Waiting(
            waiting()
                .map(|approval| WaitingCall::new(approval, false))
                .collect(),
        ),
        ApprovalRequest::Show(id) => ApprovalResponse::Waiting(
            waiting()
                .filter(|approval| approval.id == id)
                .map(|approval| WaitingCall::new(approval, true))
                .collect(),
        ),
        ApprovalRequest::Answer { id, approve } => {
            ApprovalResponse::Answered(operations.answer_approval(&viewer, id, approve).await)
        }
    }
}

async fn read_line(stream: &mut UnixStream, max_bytes: u64) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(stream.take(max_bytes))
        .read_line(&mut line)
        .await?;
    match line.pop() {
        Some('\n') => Ok(line),
        _ => Err(io::Error::new(
            ErrorKind::UnexpectedEof,
            "it does not respond",
        )),
    }
}
