//! The files that pages load: one style sheet and one script, both part of the program.

use std::sync::LazyLock;

use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use crate::paths::PATH;
use crate::secret::hash;

/// A file.
pub(crate) struct StaticAsset {
    text: &'static str,
    kind: &'static str,
    /// Where pages find it: the address changes with the text.
    pub(crate) address: LazyLock<String>,
}

pub(crate) static STYLE: StaticAsset = StaticAsset {
    text: include_str!("assets/style.css"),
    kind: "text/css; charset=utf-8",
    address: LazyLock::new(|| address("style.css", include_str!("assets/style.css"))),
};

pub(crate) static SCRIPT: StaticAsset = StaticAsset {
    text: include_str!("assets/script.js"),
    kind: "text/javascript; charset=utf-8",
    address: LazyLock::new(|| address("script.js", include_str!("assets/script.js"))),
};

impl StaticAsset {
    /// The response with the file. Nothing in it is anybody's secret.
    pub(crate) fn response(&self) -> Response {
        let headers = [(CONTENT_TYPE, self.kind), (CACHE_CONTROL, "public, max-age=86400")];
        (headers, self.text).into_response()
    }
}

fn address(name: &str, text: &str) -> String {
    let digest = hex::encode(hash(text));
    format!("{PATH}/{name}?{}", digest.get(..16).unwrap_or_default())
}
