//! The time from the end of a budget until the response for a guest that never ends.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use toolbay_testkit::latency::LatencyHistogram;
use toolbay_testkit::{CallerMailbox, RequestResult, SharedConnection, message};

use crate::row::{Row, Target};
use crate::stage::{DEADLINE_MS, FUEL};

/// Maximum time of an error response after the budget is exhausted.
const TARGET: Duration = Duration::from_millis(5);

/// Number of measurements of each kind in a round.
const TIMES: u32 = 10;

/// Measures fuel, and the deadline for several kinds of guests.
pub(crate) fn measure(connection: &SharedConnection, rounds: u32) -> Result<Vec<Row>> {
    let mailbox = connection.open_mailbox();
    let mut rows = vec![fuel(&mailbox, rounds)?];
    for (tool, words) in [
        ("spin", "computing"),
        ("random", "asking for random bytes"),
        ("sleep", "sleeping"),
    ] {
        let mut past = LatencyHistogram::new()?;
        for _ in 0..rounds * TIMES {
            let (answer, took) = timed(&mailbox, &format!("late.{tool}"), &json!({}))?;
            ends_by("deadline", &answer)?;
            let deadline = Duration::from_millis(DEADLINE_MS);
            past.add(
                took.checked_sub(deadline)
                    .context("an answer came before the deadline")?,
            );
        }
        rows.push(Row::new(
            format!("{words}, past its deadline → error"),
            past,
            None,
            Target::Within(TARGET),
        ));
    }
    Ok(rows)
}

/// Compares a loop that uses all the fuel and ends with one that never ends. Measures how much
/// later the second response arrives.
fn fuel(mailbox: &CallerMailbox<'_>, rounds: u32) -> Result<Row> {
    let enough = rounds_of(mailbox)?;
    let mut whole = LatencyHistogram::new()?;
    let mut past = LatencyHistogram::new()?;
    let mut ended = Vec::new();
    for _ in 0..rounds * TIMES {
        let (answer, took) = timed(mailbox, "budget.rounds", &json!({"n": enough}))?;
        ensure!(
            fuel_of(&answer)?.abs_diff(FUEL) < FUEL / 100,
            "the loop did not take the fuel that it should"
        );
        whole.add(took);
        let (answer, took) = timed(mailbox, "budget.spin", &json!({}))?;
        ends_by("fuel", &answer)?;
        ended.push(took);
    }
    // A response before the other median counts as not late.
    for took in ended {
        past.add(took.saturating_sub(whole.median()));
    }
    Ok(Row::new(
        "computing, past its fuel → error",
        past,
        None,
        Target::Within(TARGET),
    ))
}

/// Returns the number of loop rounds that the fuel allows, extrapolated from two shorter loops.
fn rounds_of(mailbox: &CallerMailbox<'_>) -> Result<u64> {
    const SHORT: u64 = 100_000;
    let fuel = |n: u64| fuel_of(&timed(mailbox, "budget.rounds", &json!({"n": n}))?.0);
    let one = fuel(SHORT)?;
    let two = fuel(2 * SHORT)?;
    let each = two
        .checked_sub(one)
        .filter(|each| *each > 0)
        .context("a longer loop took no more fuel")?;
    Ok((FUEL - (one - each.min(one))) * SHORT / each)
}

fn timed(
    mailbox: &CallerMailbox<'_>,
    tool: &str,
    arguments: &Value,
) -> Result<(RequestResult, Duration)> {
    let began = Instant::now();
    let answer = mailbox.call_and_wait(tool, arguments)?;
    Ok((answer.message, answer.received_at - began))
}

/// Returns the fuel that a successful call used.
fn fuel_of(answer: &RequestResult) -> Result<u64> {
    let result = answer
        .as_ref()
        .ok()
        .filter(|result| result.get("isError").is_none());
    let usage = result.and_then(|result| {
        result
            .get("_meta")?
            .get("dev.toolbay/usage")?
            .get("fuel")?
            .as_u64()
    });
    usage.with_context(|| format!("a loop that ends did not end well: {answer:?}"))
}

fn ends_by(kind: &str, answer: &RequestResult) -> Result<()> {
    let ended = answer.as_ref().ok().and_then(message::error_kind);
    ensure!(ended == Some(kind), "expected an end by {kind}: {answer:?}");
    Ok(())
}
