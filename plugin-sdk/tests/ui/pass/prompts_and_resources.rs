//! Every shape that a prompt, a resource and a completion can have.

use serde::Serialize;
use toolbay_plugin::prelude::*;
use toolbay_plugin::{PromptDefinition, ResourceDefinition};

/// Says hello.
#[prompt]
fn hello() -> &'static str {
    "Say hello."
}

/// Reviews code.
#[prompt(name = "review-code", title = "Review", icon = "data:,", define = with_meta)]
fn review(
    /// The code.
    code: String,
    #[doc = "How many remarks."] most: Option<u8>,
    ctx: &Context,
) -> Result<Vec<Message>> {
    info!("{}", ctx.cancelled());
    ensure!(!code.is_empty(), "there is no code");
    Ok(vec![
        Message::user(format!("{code} {most:?}")),
        Message::assistant("Well."),
    ])
}

fn with_meta(definition: PromptDefinition) -> PromptDefinition {
    definition.meta("example.com/a", 1)
}

/// The rules.
#[resource("game://rules")]
fn rules() -> String {
    "none".to_owned()
}

#[derive(Serialize)]
struct Player {
    name: String,
    level: u8,
}

/// A player.
#[resource("game://players/{type}/{+path}", title = "A player", mime_type = "application/json", define = for_model)]
fn player(r#type: u8, path: String, ctx: &Context) -> Result<Option<Json<Player>>> {
    ctx.resource_updated("game://rules");
    Ok((path != "nobody").then_some(Json(Player {
        name: path,
        level: r#type,
    })))
}

fn for_model(definition: ResourceDefinition) -> ResourceDefinition {
    definition.for_model()
}

#[completion(review, most)]
fn numbers(typed: &str) -> Vec<String> {
    vec![format!("{typed}0")]
}

#[completion(player, path)]
fn paths(typed: &str, given: &Given, ctx: &Context) -> Result<Completions> {
    ensure!(!ctx.cancelled(), "late");
    Ok(Completions::beginning_with(
        typed,
        given.get("type").into_iter(),
    ))
}

#[cfg(any())]
#[prompt]
fn disabled() -> Missing {}

export!(hello, review, rules, player, numbers, paths);

fn main() {
    assert_eq!(__toolbay_entries().len(), 6);
    let ctx = Context::test();
    assert!(toolbay_plugin::test::prompt::<review>([("code", "")], &ctx).is_err());
    let read = toolbay_plugin::test::read::<player>("game://players/3/a/b", &ctx).unwrap();
    assert_eq!(read[0].as_text(), Some(r#"{"name":"a/b","level":3}"#));
    assert_eq!(ctx.updated_resources(), ["game://rules"]);
}
