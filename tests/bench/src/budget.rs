//! How long after its budget a guest that never ends is answered for.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use toolbay_testkit::latency::Latencies;
use toolbay_testkit::{Answer, Connection, Mailbox, message};

use crate::row::{Row, Target};
use crate::stage::{DEADLINE_MS, FUEL};

/// What an error may take beyond the budget.
const TARGET: Duration = Duration::from_millis(5);

/// How often each is measured in a round.
const TIMES: u32 = 10;

/// Measures fuel, and the deadline in several ways of spending the time.
pub(crate) fn measure(connection: &Connection, rounds: u32) -> Result<Vec<Row>> {
    let mailbox = connection.mailbox();
    let mut rows = vec![fuel(&mailbox, rounds)?];
    for (tool, words) in [("spin", "computing"), ("random", "asking for random bytes"), ("sleep", "sleeping")] {
        let mut past = Latencies::new()?;
        for _ in 0..rounds * TIMES {
            let (answer, took) = timed(&mailbox, &format!("late.{tool}"), &json!({}))?;
            ends_by("deadline", &answer)?;
            let deadline = Duration::from_millis(DEADLINE_MS);
            past.add(took.checked_sub(deadline).context("an answer came before the deadline")?);
        }
        rows.push(Row::new(format!("{words}, past its deadline → error"), past, None, Target::Within(TARGET)));
    }
    Ok(rows)
}

/// The same loop, once for as many rounds as there is fuel for, and once for ever: how much later the second is answered.
fn fuel(mailbox: &Mailbox<'_>, rounds: u32) -> Result<Row> {
    let enough = rounds_of(mailbox)?;
    let (mut whole, mut past) = (Latencies::new()?, Latencies::new()?);
    let mut ended = Vec::new();
    for _ in 0..rounds * TIMES {
        let (answer, took) = timed(mailbox, "budget.rounds", &json!({"n": enough}))?;
        ensure!(fuel_of(&answer)?.abs_diff(FUEL) < FUEL / 100, "the loop did not take the fuel that it should");
        whole.add(took);
        let (answer, took) = timed(mailbox, "budget.spin", &json!({}))?;
        ends_by("fuel", &answer)?;
        ended.push(took);
    }
    // What is earlier than the other's median is not late at all.
    for took in ended {
        past.add(took.saturating_sub(whole.median()));
    }
    Ok(Row::new("computing, past its fuel → error", past, None, Target::Within(TARGET)))
}

/// For how many rounds of the loop the fuel is enough, by what two shorter loops take.
fn rounds_of(mailbox: &Mailbox<'_>) -> Result<u64> {
    const SHORT: u64 = 100_000;
    let fuel = |n: u64| fuel_of(&timed(mailbox, "budget.rounds", &json!({"n": n}))?.0);
    let (one, two) = (fuel(SHORT)?, fuel(2 * SHORT)?);
    let each = two.checked_sub(one).filter(|each| *each > 0).context("a longer loop took no more fuel")?;
    Ok((FUEL - (one - each.min(one))) * SHORT / each)
}

fn timed(mailbox: &Mailbox<'_>, tool: &str, arguments: &Value) -> Result<(Answer, Duration)> {
    let began = Instant::now();
    let answer = mailbox.ask(tool, arguments)?;
    Ok((answer.what, answer.at - began))
}

/// What a call that went well burnt.
fn fuel_of(answer: &Answer) -> Result<u64> {
    let result = answer.as_ref().ok().filter(|result| result.get("isError").is_none());
    let usage = result.and_then(|result| result.get("_meta")?.get("dev.toolbay/usage")?.get("fuel")?.as_u64());
    usage.with_context(|| format!("a loop that ends did not end well: {answer:?}"))
}

fn ends_by(kind: &str, answer: &Answer) -> Result<()> {
    let ended = answer.as_ref().ok().and_then(message::error_kind);
    ensure!(ended == Some(kind), "expected an end by {kind}: {answer:?}");
    Ok(())
}
