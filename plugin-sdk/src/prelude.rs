//! The items that most plugins need: `use toolbay_plugin::prelude::*;`.
//!
//! It contains the crate `schemars`, which `#[derive(JsonSchema)]` requires, so that your `Cargo.toml` need not list
//! it.

pub use crate::log::{Level, alert, critical, debug, emergency, error, info, notice, warning};
pub use crate::{
    Audio, Content, Context, Error, Image, IntoOutput, Json, JsonSchema, Output, Resource, ResourceLink, Result, bail,
    ensure, export, invalid, schemars, tool,
};
