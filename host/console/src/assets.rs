//! The static files that pages load: a style sheet and a script, both embedded in the program.

use std::sync::LazyLock;

use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use crate::paths::PATH;
use crate::secret::hash;

/// A static file.
pub(crate) struct StaticAsset {
    text: &'static str,
    kind: &'static str,
    /// URL path of the file, which contains a digest of the text.
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
    /// Returns a response with the file, which is public.
    pub(crate) fn response(&self) -> Response {
        let headers = [(CONTENT_TYPE, self.kind), (CACHE_CONTROL, "public, max-age=86400")];
        (headers, self.text).into_response()
    }
}

fn address(name: &str, text: &str) -> String {
    let digest = hex::encode(hash(text));
    format!("{PATH}/{name}?{}", digest.get(..16).unwrap_or_default())
}
