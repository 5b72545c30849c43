//! Downloads a plugin, with the HTTP client that plugins use and its checks.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use http::header::LOCATION;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use tokio::time::Instant;
use toolbay_bundle::check_url;
use toolbay_outgoing::{
    HttpConnector, PluginClient, RequestMeter, RequestTimeouts, SystemResolver,
};
use toolbay_policy::{HttpRule, OriginPattern};
use toolbay_registry::private_networks;
use url::Url;

use crate::config::Config;

/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 5;

/// Time in which the whole file must arrive.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_mins(10);

/// Maximum time without progress.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Size that the heads of all responses can have, in addition to the file, in bytes.
const HEAD_BYTES: u64 = 1 << 20;

/// Returns the file at a URL, of at most `limit` bytes. Follows redirects to https, and from
/// loopback to loopback.
pub(in crate::cli) async fn get(url: &Url, config: &Config, limit: u64) -> anyhow::Result<Vec<u8>> {
    let connector = HttpConnector::new(&config.http_client.options(), Arc::new(SystemResolver), 1)
        .map_err(anyhow::Error::msg)?;
    let meter = Arc::new(RequestMeter::new(
        MAX_REDIRECTS as u64 + 1,
        limit.saturating_add(HEAD_BYTES),
    ));
    let deadline = Instant::now() + DOWNLOAD_TIMEOUT;
    let mut target = url.clone();
    for _ in 0..=MAX_REDIRECTS {
        let is_named = target.host() == url.host() && target.port() == url.port();
        let response = send(&connector, &target, is_named, deadline, &meter)
            .await
            .with_context(|| format!("failed to download {target}"))?;
        let (head, mut body) = response.into_parts();
        if head.status.is_redirection() {
            let location = head
                .headers
                .get(LOCATION)
                .and_then(|value| value.to_str().ok());
            let next = location.and_then(|location| target.join(location).ok());
            let next = next.with_context(|| format!("{target} redirects to no URL"))?;
            check_url(&next).map_err(|why| anyhow!("{target} redirects: {why}"))?;
            if target.scheme() == "https" && next.scheme() != "https" {
                bail!("{target} redirects to {next}, which is not https");
            }
            target = next;
            continue;
        }
        if head.status != StatusCode::OK {
            bail!("{target} answered with status {}", head.status.as_u16());
        }
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|why| anyhow!("failed to download {target}: {why}"))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if (bytes.len() + data.len()) as u64 > limit {
                bail!("{target} is larger than {limit} bytes");
            }
            bytes.extend_from_slice(&data);
        }
        return Ok(bytes);
    }
    bail!("{url} redirects more than {MAX_REDIRECTS} times")
}

/// Sends one request. Only a URL that a person named can be in a private network.
async fn send(
    connector: &Arc<HttpConnector>,
    url: &Url,
    is_named: bool,
    deadline: Instant,
    meter: &Arc<RequestMeter>,
) -> anyhow::Result<http::Response<toolbay_outgoing::ResponseBody>> {
    let origin =
        OriginPattern::parse(&url.origin().ascii_serialization()).map_err(anyhow::Error::msg)?;
    let networks = if is_named {
        private_networks()
    } else {
        Vec::new()
    };
    let client = Arc::new(PluginClient::new(
        Arc::clone(connector),
        vec![HttpRule::new(origin)],
        networks,
        1,
    ));
    let request = Request::get(url.as_str())
        .header("accept", "application/octet-stream, */*")
        .header("user-agent", concat!("toolbay/", env!("CARGO_PKG_VERSION")))
        .body(Empty::<Bytes>::new())?;
    let timeouts = RequestTimeouts {
        connect: IDLE_TIMEOUT,
        first_byte: IDLE_TIMEOUT,
        between_bytes: IDLE_TIMEOUT,
    };
    let request = client.authorize(request).map_err(|why| anyhow!("{why}"))?;
    let response = request.send(timeouts, deadline, meter).await;
    response.map_err(|why| anyhow!("{why}"))
}
