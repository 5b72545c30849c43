//! The static files that pages load: a style sheet and scripts, all embedded in the program.

use std::sync::LazyLock;

use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use crate::paths::PATH;
use crate::secret::hash_secret;

/// A static file.
pub(crate) struct StaticAsset {
    text: &'static str,
    content_type: &'static str,
    /// URL path of the file, which contains a digest of the text.
    pub(crate) path: LazyLock<String>,
}

pub(crate) static STYLE: StaticAsset = StaticAsset {
    text: include_str!("assets/style.css"),
    content_type: "text/css; charset=utf-8",
    path: LazyLock::new(|| asset_path("style.css", include_str!("assets/style.css"))),
};

pub(crate) static SCRIPT: StaticAsset = StaticAsset {
    text: include_str!("assets/script.js"),
    content_type: "text/javascript; charset=utf-8",
    path: LazyLock::new(|| asset_path("script.js", include_str!("assets/script.js"))),
};

pub(crate) static NOTICES: StaticAsset = StaticAsset {
    text: include_str!("assets/notices.js"),
    content_type: "text/javascript; charset=utf-8",
    path: LazyLock::new(|| asset_path("notices.js", include_str!("assets/notices.js"))),
};

impl StaticAsset {
    /// Returns a response with the file, which is public.
    pub(crate) fn response(&self) -> Response {
        let headers = [
            (CONTENT_TYPE, self.content_type),
            (CACHE_CONTROL, "public, max-age=86400"),
        ];
        (headers, self.text).into_response()
    }
}

fn asset_path(name: &str, text: &str) -> String {
    let digest = hex::encode(hash_secret(text));
    format!("{PATH}/{name}?{}", digest.get(..16).unwrap_or_default())
}
