//! What most plugins need: `use toolbay_plugin::prelude::*;`.
//!
//! It has the crate `schemars` in it, by which `#[derive(JsonSchema)]` finds
//! what it needs without another line in your `Cargo.toml`.

pub use crate::log::{Level, alert, critical, debug, emergency, error, info, notice, warning};
pub use crate::{
    Audio, Content, Context, Error, Image, IntoOutput, Json, JsonSchema, Output, Resource, ResourceLink, Result, bail,
    ensure, export, invalid, schemars, tool,
};
