//! An HTTP client like that of a typical native program: hyper with a connection pool, on tokio's
//! multi-threaded runtime.
//!
//! For each line of standard input, it requests a page and writes the time until the body was read,
//! in nanoseconds.

use std::error::Error;
use std::io::{BufRead as _, Write as _};
use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::Uri;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;

type Pooled = Client<HttpConnector, Empty<Bytes>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let address = std::env::args().nth(1).ok_or("usage: native-client URL")?;
    let uri: Uri = address.parse()?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Pooled = Client::builder(TokioExecutor::new()).build(connector);
    for line in std::io::stdin().lock().lines() {
        line?;
        let took = tokio::spawn(get(client.clone(), uri.clone())).await??;
        let mut output = std::io::stdout().lock();
        writeln!(output, "{took}")?;
        output.flush()?;
    }
    Ok(())
}

async fn get(client: Pooled, uri: Uri) -> Result<u128, Box<dyn Error + Send + Sync>> {
    let began = Instant::now();
    let response = client.get(uri).await?;
    if response.status() != 200 {
        return Err(format!("the site answered {}", response.status()).into());
    }
    response.into_body().collect().await?;
    Ok(began.elapsed().as_nanos())
}
