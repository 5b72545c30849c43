//! A plugin that does not use the prelude.

use serde::{Deserialize, Serialize};
use toolbay_plugin::log::info;
use toolbay_plugin::{Context, Json, JsonSchema, Result, export, schemars, tool};

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// Text to count.
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Count {
    words: usize,
}

/// Counts the words of a text.
#[tool(read_only)]
fn count_words(args: Args, ctx: &Context) -> Result<Json<Count>> {
    info!("{} bytes", args.text.len());
    ctx.progress(1.0, 1.0);
    Ok(Json(Count {
        words: args.text.split_whitespace().count(),
    }))
}

export!(count_words);

fn main() {}
