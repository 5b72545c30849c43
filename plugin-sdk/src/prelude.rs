//! The items that most plugins need: `use toolbay_plugin::prelude::*;`.
//!
//! It contains the crate `schemars`, which `#[derive(JsonSchema)]` requires, so that your
//! `Cargo.toml` need not list it.

pub use crate::log::{Level, alert, critical, debug, emergency, error, info, notice, warning};
pub use crate::{
    Argument, AskError, Audio, Completions, Content, Contents, Context, Elicited, Error, Form,
    Given, Image, IntoOutput, Json, JsonSchema, Message, Messages, Output, Resource, ResourceLink,
    Result, Roots, Sampling, Visit, WithContext, bail, completion, ensure, export, invalid, prompt,
    resource, schemars, tool,
};
