//! The prompts that the suite gets.

use toolbay_plugin::prelude::*;

use crate::media::PNG;

/// A prompt without arguments.
#[prompt]
pub(crate) fn test_simple_prompt() -> &'static str {
    "This is a simple prompt for testing."
}

/// A prompt that repeats its arguments.
#[prompt]
pub(crate) fn test_prompt_with_arguments(
    /// Anything.
    arg1: String,
    /// Anything else.
    arg2: String,
) -> String {
    format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
}

/// What the first argument could be. The suite types `test`.
#[completion(test_prompt_with_arguments, arg1)]
pub(crate) fn first_arguments(typed: &str) -> Completions {
    Completions::beginning_with(typed, ["paris", "park", "party", "test", "testing"])
}

/// A prompt with a resource in it.
#[prompt]
#[allow(non_snake_case, reason = "the suite says what the argument is called")]
pub(crate) fn test_prompt_with_embedded_resource(
    /// The URI that the resource gets.
    resourceUri: String,
) -> Vec<Message> {
    let resource = Resource::text(resourceUri, "Embedded resource content for testing.")
        .mime_type("text/plain");
    vec![
        Message::user(resource),
        Message::user("Please process the embedded resource above."),
    ]
}

/// A prompt with a picture in it.
#[prompt]
pub(crate) fn test_prompt_with_image() -> Vec<Message> {
    vec![
        Message::user(Image::png(PNG)),
        Message::user("Please analyze the image above."),
    ]
}
