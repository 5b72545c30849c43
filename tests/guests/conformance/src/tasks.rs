//! Tools that take long: what the suite calls as tasks.

use std::thread::sleep;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolbay_plugin::prelude::*;

/// Long enough for a call to become a task.
const LONG: Duration = Duration::from_secs(1);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Greeted {
    /// Whom to greet.
    name: String,
}

/// Greets at once.
#[tool(read_only)]
pub(crate) fn greet(args: Greeted) -> String {
    format!("Hello, {}!", args.name)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Work {
    /// How long it takes, in seconds.
    seconds: f64,
    /// What it is for.
    #[serde(default)]
    label: String,
}

/// Takes a while.
#[tool(read_only, task)]
pub(crate) fn slow_compute(args: Work, ctx: &Context) -> Result<String> {
    let Work { seconds, label } = args;
    let whole = Duration::try_from_secs_f64(seconds)?;
    let steps = 10;
    for step in 0..steps {
        ctx.progress(f64::from(step), f64::from(steps));
        sleep(whole / steps);
    }
    Ok(format!("{label}: computed for {seconds} s"))
}

/// Fails after a while.
#[tool(read_only, task = "required")]
pub(crate) fn failing_job() -> Result<()> {
    sleep(LONG);
    Err(Error::msg("The job failed."))
}

/// Needs after a while what the client does not have, which is an error of the protocol.
#[tool(read_only, task)]
pub(crate) fn protocol_error_job(ctx: &Context) -> Result<String> {
    sleep(LONG);
    let roots = ctx.ask("roots", Roots::new())?;
    Ok(format!("{} roots", roots.len()))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct File {
    /// The file.
    filename: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Confirmation {
    confirm: bool,
}

/// Asks before it deletes nothing.
#[tool(task)]
pub(crate) fn confirm_delete(args: File, ctx: &Context) -> Result<String> {
    sleep(LONG);
    let question = Form::<Confirmation>::new(format!("Delete {}?", args.filename));
    Ok(match ctx.ask("confirmation", question)? {
        Elicited::Accepted(Confirmation { confirm: true }) => {
            format!("{} was deleted.", args.filename)
        }
        _ => format!("{} was kept.", args.filename),
    })
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Name {
    name: String,
}

/// Asks two questions at once.
#[tool(read_only, task)]
pub(crate) fn multi_input(ctx: &Context) -> Result<String> {
    sleep(LONG);
    let who = |message: &str| Form::<Name>::new(message);
    let (first, second) = ctx.ask_all((
        ("first", who("Who is first?")),
        ("second", who("Who is second?")),
    ))?;
    let name = |answer| match answer {
        Elicited::Accepted(Name { name }) => name,
        _ => "nobody".to_owned(),
    };
    Ok(format!("{}, then {}", name(first), name(second)))
}

/// Asks at once, and then takes a while.
#[tool(read_only, task = "required")]
pub(crate) fn test_tool_with_task(ctx: &Context) -> Result<String> {
    let user = ctx.ask("user_name", Form::<Name>::new("What is your name?"))?;
    sleep(LONG);
    Ok(match user {
        Elicited::Accepted(Name { name }) => format!("Worked for {name}."),
        _ => "Worked for nobody.".to_owned(),
    })
}
