//! The time from the cancellation of a guest until the guest has ended.
//!
//! Two effects are visible from outside. In a plugin that may run one call at a time, a second call
//! waits for the end of the first, so its response shows that the first has ended. The server also
//! uses no more CPU time.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use toolbay_testkit::latency::Latencies;
use toolbay_testkit::vitals::vitals;
use toolbay_testkit::{Connection, Mailbox};

use crate::fairness::pause;
use crate::row::{Row, Target};

/// Maximum time until a guest has ended.
const TARGET: Duration = Duration::from_millis(5);

/// Number of measurements of each kind in a round.
const TIMES: u32 = 10;

/// Duration of the CPU time measurement after the end.
const AFTERWARDS: Duration = Duration::from_millis(200);

/// The call that waits in the queue.
const NEXT: &str = "alone.edition";

/// Measures guests that are cancelled in different states.
pub(crate) fn measure(connection: &Connection, rounds: u32) -> Result<Vec<Row>> {
    let mailbox = connection.mailbox();
    let mut idle = Latencies::new()?;
    for _ in 0..rounds * TIMES {
        let began = Instant::now();
        idle.add(mailbox.ask(NEXT, &json!({}))?.at - began);
    }
    let mut rows = Vec::new();
    let guests = [
        ("spin", "computing"),
        ("clock", "asking for the time"),
        ("random", "asking for random bytes"),
        ("sleep", "sleeping"),
    ];
    for (tool, words) in guests {
        let (mut gone, mut cpu) = (Latencies::new()?, Latencies::new()?);
        for n in 0..rounds * TIMES {
            gone.add(cancelled(connection, &mailbox, tool, n)?);
            let before = vitals(connection.pid())?.cpu;
            pause(AFTERWARDS);
            cpu.add(vitals(connection.pid())?.cpu.saturating_sub(before));
        }
        rows.push(Row::new(
            format!("{words}, cancelled → the next call is answered"),
            gone,
            Some(&idle),
            Target::Over(TARGET),
        ));
        let what = format!("{words}, cancelled: processor time in the next {} ms", AFTERWARDS.as_millis());
        rows.push(Row::new(what, cpu, None, Target::Within(Duration::from_millis(10))));
    }
    Ok(rows)
}

/// Returns the time from the cancellation of a running guest to the response of the call that waits
/// for its end.
fn cancelled(connection: &Connection, mailbox: &Mailbox<'_>, tool: &str, n: u32) -> Result<Duration> {
    let first = mailbox.call_with_progress(&format!("alone.{tool}"), &json!({}))?;
    mailbox.begun(first)?;
    let next = mailbox.call(NEXT, &json!({}))?;
    // The delay ensures that the guest is running, at a different point each time, and that the
    // next call has arrived.
    pause(Duration::from_millis(10) + Duration::from_micros(u64::from(n) * 317 % 5000));
    ensure!(mailbox.next(Instant::now()).is_none(), "two calls ran at once, or a guest ended by itself");
    let began = Instant::now();
    connection.cancel(first)?;
    let answer = mailbox.answer(next)?;
    ensure!(answer.what.is_ok_and(|result| result.get("isError").is_none()), "the next call failed");
    Ok(answer.at - began)
}
