//! The time from the cancellation of a guest until the guest has ended.
//!
//! Two effects are visible from outside. In a plugin that may run one call at a time, a second call
//! waits for the end of the first, so its response shows that the first has ended. The server also
//! uses no more CPU time.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use toolbay_testkit::latency::LatencyHistogram;
use toolbay_testkit::process_usage::vitals;
use toolbay_testkit::{CallerMailbox, SharedConnection};

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
pub(crate) fn measure(connection: &SharedConnection, rounds: u32) -> Result<Vec<Row>> {
    let mailbox = connection.open_mailbox();
    let mut idle = LatencyHistogram::new()?;
    for _ in 0..rounds * TIMES {
        let began = Instant::now();
        idle.add(mailbox.call_and_wait(NEXT, &json!({}))?.received_at - began);
    }
    let mut rows = Vec::new();
    let guests = [
        ("spin", "computing"),
        ("clock", "asking for the time"),
        ("random", "asking for random bytes"),
        ("sleep", "sleeping"),
    ];
    for (tool, words) in guests {
        let mut gone = LatencyHistogram::new()?;
        let mut cpu = LatencyHistogram::new()?;
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
        let what = format!(
            "{words}, cancelled: processor time in the next {} ms",
            AFTERWARDS.as_millis()
        );
        rows.push(Row::new(
            what,
            cpu,
            None,
            Target::Within(Duration::from_millis(10)),
        ));
    }
    Ok(rows)
}

/// Returns the time from the cancellation of a running guest to the response of the call that waits
/// for its end.
fn cancelled(
    connection: &SharedConnection,
    mailbox: &CallerMailbox<'_>,
    tool: &str,
    n: u32,
) -> Result<Duration> {
    let first = mailbox.call_with_progress(&format!("alone.{tool}"), &json!({}))?;
    mailbox.wait_until_started(first)?;
    let next = mailbox.call(NEXT, &json!({}))?;
    // The delay ensures that the guest is running, at a different point each time, and that the
    // next call has arrived.
    pause(Duration::from_millis(10) + Duration::from_micros(u64::from(n) * 317 % 5000));
    ensure!(
        mailbox.next_event(Instant::now()).is_none(),
        "two calls ran at once, or a guest ended by itself"
    );
    let began = Instant::now();
    connection.cancel(first)?;
    let answer = mailbox.wait_for_response(next)?;
    ensure!(
        answer
            .message
            .is_ok_and(|result| result.get("isError").is_none()),
        "the next call failed"
    );
    Ok(answer.received_at - began)
}
