//! A native server on the official Rust SDK, with the tools that `cargo xtask bench` calls. Without
//! arguments, it uses standard input and output. With an address, it serves HTTP at `/mcp`.

use std::error::Error;

use axum::Router;
use axum::serve::ListenerExt as _;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::schemars::{self, JsonSchema};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler, ServiceExt as _, tool, tool_handler, tool_router};
use serde::Deserialize;
use tokio::net::TcpListener;

#[derive(Deserialize, JsonSchema)]
struct Message {
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Rounds {
    rounds: u32,
}

#[derive(Clone)]
struct Tools;

#[tool_router]
impl Tools {
    #[tool(description = "Returns the message.")]
    async fn echo(&self, Parameters(Message { message }): Parameters<Message>) -> CallToolResult {
        CallToolResult::success(vec![ContentBlock::text(message)])
    }

    /// Runs on a separate thread, as the SDK documentation recommends for CPU-bound work.
    #[tool(description = "Computes for so many rounds.")]
    async fn burn(
        &self,
        Parameters(Rounds { rounds }): Parameters<Rounds>,
    ) -> Result<CallToolResult, ErrorData> {
        let number = tokio::task::spawn_blocking(move || burnt(rounds)).await;
        let number = number.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(CallToolResult::success(vec![ContentBlock::text(
            number.to_string(),
        )]))
    }
}

#[tool_handler]
impl ServerHandler for Tools {}

/// Computes this number of steps of the Park-Miller generator.
fn burnt(rounds: u32) -> u64 {
    (0..rounds).fold(1, |number, _| number * 48_271 % 2_147_483_647)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Some(address) = std::env::args().nth(1) else {
        Tools
            .serve(rmcp::transport::stdio())
            .await?
            .waiting()
            .await?;
        return Ok(());
    };
    let tools = StreamableHttpService::new(
        || Ok(Tools),
        LocalSessionManager::default().into(),
        StreamableHttpServerConfig::default(),
    );
    // Without `TCP_NODELAY`, each event of a stream waits for the client's acknowledgement of the
    // previous one.
    let listener = TcpListener::bind(address)
        .await?
        .tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, Router::new().nest_service("/mcp", tools)).await?;
    Ok(())
}
