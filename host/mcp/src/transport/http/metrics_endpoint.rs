//! The `/metrics` endpoint, in the exposition format that the client prefers.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, VARY};
use http::{HeaderMap, StatusCode};
use mime::Mime;

use super::app_state::HttpState;
use super::peer::HttpPeer;
use crate::host::interface::MetricsForm;

impl MetricsForm {
    const fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

pub(super) async fn get(
    State(app): State<Arc<HttpState>>,
    Extension(peer): Extension<HttpPeer>,
    headers: HeaderMap,
) -> Response {
    if let Err(denied) = app.gate.check_operator(&headers) {
        if app
            .rejections
            .needs_line(&peer.source.network(), denied.reason())
        {
            tracing::info!(peer = %peer.source, "request of metrics rejected: {denied}");
        }
        return app.gate.challenge(&denied);
    }
    let form = preferred_form(&headers);
    let writing = Arc::clone(&app);
    let Some(text) = app
        .metrics_cache
        .get_or_render(form, move || render_metrics(writing, form))
        .await
    else {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            "the metrics are not available now; retry later\n",
        )
            .into_response();
    };
    let headers = [
        (CONTENT_TYPE, form.media_type()),
        (CACHE_CONTROL, "no-store"),
        (VARY, "Accept"),
    ];
    (headers, text).into_response()
}

async fn render_metrics(app: Arc<HttpState>, form: MetricsForm) -> Option<Bytes> {
    app.server
        .metrics(form, app.traffic())
        .await
        .map(Bytes::from)
}

/// Returns the format that a client prefers: OpenMetrics only if the client accepts it by name.
fn preferred_form(headers: &HeaderMap) -> MetricsForm {
    let values = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut open = 0.0;
    let mut plain = 0.0;
    for range in values
        .flat_map(|value| value.split(','))
        .filter_map(|range| range.trim().parse::<Mime>().ok())
    {
        let weight = range
            .get_param("q")
            .map_or(Ok(1.0), |weight| weight.as_str().parse::<f32>())
            .unwrap_or(0.0);
        let best: Option<&mut f32> = match range.essence_str() {
            "application/openmetrics-text" => Some(&mut open),
            "text/plain" => Some(&mut plain),
            _ => None,
        };
        if let Some(best) = best {
            *best = best.max(weight);
        }
    }
    if open > 0.0 && open >= plain {
        MetricsForm::OpenMetrics
    } else {
        MetricsForm::Prometheus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_prefers_openmetrics_gets_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                          application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;q=0.3,\
                          text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        for (accept, expected) in [
            (prometheus, MetricsForm::OpenMetrics),
            ("application/openmetrics-text", MetricsForm::OpenMetrics),
            (
                "text/plain, application/openmetrics-text",
                MetricsForm::OpenMetrics,
            ),
            (
                "text/plain, application/openmetrics-text;q=0.9",
                MetricsForm::Prometheus,
            ),
            ("application/openmetrics-text;q=0", MetricsForm::Prometheus),
            (
                "application/openmetrics-text;q=much",
                MetricsForm::Prometheus,
            ),
            ("text/plain;version=0.0.4", MetricsForm::Prometheus),
            ("*/*", MetricsForm::Prometheus),
            ("text/html, ;, q", MetricsForm::Prometheus),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            assert_eq!(preferred_form(&headers), expected, "{accept}");
        }
        assert_eq!(preferred_form(&HeaderMap::new()), MetricsForm::Prometheus);
    }
}
