//! An MCP server made with the official Rust SDK, as a command for WASI 0.2: it speaks over
//! standard input and output.

use std::io::{Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::{ServiceExt, schemars, tool, tool_router};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Turns of the runtime after which nothing but more input can get it on.
const TURNS: u32 = 256;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Numbers {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sum {
    sum: f64,
}

#[derive(Clone)]
struct Calculator;

#[tool_router(server_handler)]
impl Calculator {
    #[tool(description = "Adds two numbers.")]
    fn add(&self, Parameters(Numbers { a, b }): Parameters<Numbers>) -> Json<Sum> {
        Json(Sum { sum: a + b })
    }

    #[tool(description = "Divides a number by another.")]
    async fn divide(
        &self,
        Parameters(Numbers { a, b }): Parameters<Numbers>,
    ) -> Result<String, String> {
        tokio::task::yield_now().await;
        if b == 0.0 {
            Err("Nothing can be divided by zero.".to_owned())
        } else {
            Ok((a / b).to_string())
        }
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        if let Ok(service) = Calculator.serve((Input(0), Output)).await {
            let _ = service.waiting().await;
        }
    });
}

/// Standard input. WASI 0.2 has no other thread that could wait for it, so everything else has its
/// turns first.
struct Input(u32);

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.0 < TURNS {
            self.0 += 1;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.0 = 0;
        let read = std::io::stdin().lock().read(buffer.initialize_unfilled())?;
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }
}

/// Standard output.
struct Output;

impl AsyncWrite for Output {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Poll::Ready(std::io::stdout().lock().write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(std::io::stdout().lock().flush())
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
