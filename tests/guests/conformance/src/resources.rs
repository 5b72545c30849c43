//! The resources that the suite reads.

use serde::Serialize;
use toolbay_plugin::prelude::*;

use crate::media::PNG;

/// The resource that clients subscribe to.
const WATCHED: &str = "test://watched-resource";

/// A text.
#[resource("test://static-text", mime_type = "text/plain")]
pub(crate) fn static_text() -> &'static str {
    "This is the content of the static text resource."
}

/// A picture.
#[resource("test://static-binary", mime_type = "image/png")]
pub(crate) fn static_binary() -> Vec<u8> {
    PNG.to_vec()
}

/// A text that says of itself that it changes.
#[resource("test://watched-resource", mime_type = "text/plain")]
pub(crate) fn watched_resource() -> &'static str {
    "This is the content of the watched resource."
}

/// Says that the watched resource has changed.
#[tool]
pub(crate) fn test_trigger_resource_update(ctx: &Context) -> &'static str {
    ctx.resource_updated(WATCHED);
    "The watched resource has changed."
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Filled {
    id: String,
    template_test: bool,
    data: String,
}

/// The data of whatever the URI names.
#[resource("test://template/{id}/data", mime_type = "application/json")]
pub(crate) fn template_data(id: String) -> Json<Filled> {
    let data = format!("Data for ID: {id}");
    Json(Filled {
        id,
        template_test: true,
        data,
    })
}

/// What could be named.
#[completion(template_data, id)]
pub(crate) fn ids(typed: &str) -> Completions {
    Completions::beginning_with(typed, ["123", "124", "200"])
}
