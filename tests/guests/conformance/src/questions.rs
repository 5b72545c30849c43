//! Tools, a prompt and a resource that ask: what the suite calls over a connection, where the
//! server sends requests, and from 2026-07-28 on, where a call is repeated with the answers.

use serde::{Deserialize, Serialize};
use toolbay_plugin::prelude::*;
use toolbay_plugin::serde_json;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Prompt {
    /// What to ask the client's model.
    prompt: String,
}

/// Asks the client's model.
#[tool(read_only)]
pub(crate) fn test_sampling(args: Prompt, ctx: &Context) -> Result<String> {
    let sampled = ctx.ask("answer", Sampling::new(100).user(args.prompt))?;
    Ok(format!("LLM response: {}", sampled.text()))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Message {
    /// What to say to the user.
    message: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct User {
    /// User's response
    username: String,
    /// User's email address
    email: String,
}

/// Asks the user who they are.
#[tool(read_only)]
pub(crate) fn test_elicitation(args: Message, ctx: &Context) -> Result<String> {
    let user = ctx.ask("user", Form::<User>::new(args.message))?;
    Ok(format!("User response: {}", said(&user)?))
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Defaults {
    #[schemars(extend("default" = "John Doe"))]
    name: String,
    #[schemars(extend("default" = 30))]
    age: i64,
    #[schemars(extend("default" = 95.5))]
    score: f64,
    #[schemars(extend("default" = "active"))]
    status: Status,
    #[schemars(extend("default" = true))]
    verified: bool,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    Active,
    Inactive,
    Pending,
}

/// Asks for every kind of value that has a default.
#[tool(read_only)]
pub(crate) fn test_elicitation_sep1034_defaults(ctx: &Context) -> Result<String> {
    completed(&ctx.ask(
        "defaults",
        Form::<Defaults>::new("Please review these values."),
    )?)
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Choices {
    untitled_single: Untitled,
    titled_single: Titled,
    // A way to give choices titles that no Rust type stands for: MCP keeps it for old clients.
    #[schemars(extend("enum" = ["opt1", "opt2", "opt3"], "enumNames" = ["Option One", "Option Two", "Option Three"]))]
    legacy_enum: String,
    untitled_multi: Vec<Untitled>,
    titled_multi: Vec<Titled>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Untitled {
    Option1,
    Option2,
    Option3,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Titled {
    /// First Option
    Value1,
    /// Second Option
    Value2,
    /// Third Option
    Value3,
}

/// Asks for choices, in every form that they have.
#[tool(read_only)]
pub(crate) fn test_elicitation_sep1330_enums(ctx: &Context) -> Result<String> {
    completed(&ctx.ask("choices", Form::<Choices>::new("Please choose."))?)
}

/// Asks the user to open a page.
#[tool(read_only)]
pub(crate) fn test_elicitation_url(ctx: &Context) -> Result<String> {
    completed(&ctx.ask(
        "page",
        Visit::new("Please sign in.", "https://example.com/sign-in"),
    )?)
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Name {
    name: String,
}

/// A form that asks the user for a name.
fn who(message: &str) -> Form<Name> {
    Form::new(message)
}

/// Reports progress and asks: the question must not come as a request on the stream of the call.
#[tool(read_only)]
pub(crate) fn test_streaming_elicitation(ctx: &Context) -> Result<String> {
    ctx.progress(1.0, 1.0);
    completed(&ctx.ask("user_name", who("What is your name?"))?)
}

/// Greets the user by name.
#[tool(read_only)]
pub(crate) fn test_input_required_result_elicitation(ctx: &Context) -> Result<String> {
    Ok(match ctx.ask("user_name", who("What is your name?"))? {
        Elicited::Accepted(Name { name }) => format!("Hello, {name}!"),
        _ => "Hello, whoever you are!".to_owned(),
    })
}

/// Asks the client's model for the capital of France.
#[tool(read_only)]
pub(crate) fn test_input_required_result_sampling(ctx: &Context) -> Result<String> {
    let question = Sampling::new(100).user("What is the capital of France?");
    Ok(ctx.ask("capital_question", question)?.text())
}

/// Says in which folders the user works.
#[tool(read_only)]
pub(crate) fn test_input_required_result_list_roots(ctx: &Context) -> Result<String> {
    let roots = ctx.ask("client_roots", Roots::new())?;
    Ok(format!(
        "Roots: {}",
        roots
            .into_iter()
            .map(|root| root.uri)
            .collect::<Vec<_>>()
            .join(" ")
    ))
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Confirmation {
    ok: bool,
}

fn confirm() -> Form<Confirmation> {
    Form::new("Please confirm")
}

/// Asks for a confirmation. That there is a result means that the host has found the state of the
/// request good.
#[tool(read_only)]
pub(crate) fn test_input_required_result_request_state(ctx: &Context) -> Result<String> {
    Ok(format!(
        "state-ok: {}",
        said(&ctx.ask("confirm", confirm())?)?
    ))
}

/// Asks for a confirmation. There is no result if the state of the request was tampered with.
#[tool(read_only)]
pub(crate) fn test_input_required_result_tampered_state(ctx: &Context) -> Result<String> {
    completed(&ctx.ask("confirm", confirm())?)
}

/// Asks the user, the model and the client at once.
#[tool(read_only)]
pub(crate) fn test_input_required_result_multiple_inputs(ctx: &Context) -> Result<String> {
    let greeting = Sampling::new(50).user("Generate a greeting");
    let (user, greeting, roots) = ctx.ask_all((
        ("user_name", who("What is your name?")),
        ("greeting", greeting),
        ("client_roots", Roots::new()),
    ))?;
    Ok(format!(
        "{} {} {} roots",
        greeting.text(),
        said(&user)?,
        roots.len()
    ))
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Color {
    color: String,
}

/// Asks the user twice.
#[tool(read_only)]
pub(crate) fn test_input_required_result_multi_round(ctx: &Context) -> Result<String> {
    let name = ctx.ask("step1", who("Step 1: What is your name?"))?;
    let color = ctx.ask(
        "step2",
        Form::<Color>::new("Step 2: What is your favorite color?"),
    )?;
    Ok(format!("{} {}", said(&name)?, said(&color)?))
}

/// Asks whomever the client says can be asked.
#[tool(read_only)]
pub(crate) fn test_input_required_result_capabilities(ctx: &Context) -> Result<String> {
    let user = match ctx.ask("user_name", who("What is your name?").optional()) {
        Ok(user) => said(&user)?,
        Err(AskError::Unsupported(_)) => "nobody".to_owned(),
        Err(error) => return Err(error.into()),
    };
    let greeting = match ctx.ask(
        "greeting",
        Sampling::new(50).user("Generate a greeting").optional(),
    ) {
        Ok(greeting) => greeting.text(),
        Err(AskError::Unsupported(_)) => "nothing".to_owned(),
        Err(error) => return Err(error.into()),
    };
    Ok(format!("{user} was asked, and {greeting} was written."))
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Background {
    context: String,
}

/// A prompt that asks what it is about.
#[prompt]
pub(crate) fn test_input_required_result_prompt(ctx: &Context) -> Result<String> {
    let context = ctx.ask(
        "user_context",
        Form::<Background>::new("What context should the prompt use?"),
    )?;
    Ok(match context {
        Elicited::Accepted(Background { context }) => format!("Use this context: {context}"),
        _ => "Use no context.".to_owned(),
    })
}

/// A greeting of whoever the user says that they are.
#[resource("test://greeting/{word}", mime_type = "text/plain")]
pub(crate) fn greeting(word: String, ctx: &Context) -> Result<String> {
    Ok(match ctx.ask("user_name", who("What is your name?"))? {
        Elicited::Accepted(Name { name }) => format!("{word}, {name}!"),
        _ => format!("{word}, whoever you are!"),
    })
}

fn completed<T: Serialize>(elicited: &Elicited<T>) -> Result<String> {
    Ok(format!("Elicitation completed: {}", said(elicited)?))
}

/// What the user did, in the words of the suite.
fn said<T: Serialize>(elicited: &Elicited<T>) -> Result<String> {
    Ok(match elicited {
        Elicited::Accepted(content) => {
            format!("action=accept, content={}", serde_json::to_string(content)?)
        }
        Elicited::Declined => "action=decline".to_owned(),
        Elicited::Cancelled => "action=cancel".to_owned(),
    })
}
