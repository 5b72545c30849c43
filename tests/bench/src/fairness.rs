//! Latencies of light calls and pings, on an idle server and next to CPU-bound guests.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::json;
use toolbay_testkit::latency::LatencyHistogram;
use toolbay_testkit::process_usage::vitals;
use toolbay_testkit::{CallerEvent, CallerMailbox, DEADLINE, SharedConnection};

use crate::row::{Row, Target};

/// The CPU-bound tools, with a description and the maximum latency of a light call next to them.
const BURNERS: [(&str, &str, Duration); 3] = [
    ("spin", "computing", Duration::from_millis(10)),
    ("clock", "asking for the time", Duration::from_millis(25)),
    (
        "random",
        "asking for random bytes",
        Duration::from_millis(25),
    ),
];

/// Numbers of concurrent CPU-bound guests.
const CROWDS: [usize; 2] = [2, 8];

/// Maximum ratio of a light call's latency to that on an idle server.
const TIMES: f64 = 3.0;

/// Interval between requests. Light calls and pings alternate, so each is sent every two
/// milliseconds.
const EVERY: Duration = Duration::from_millis(1);

/// The text that the light call echoes.
const TEXT: &str = "sixty-four bytes of text, which is about what many a tool says..";

/// Latencies of light calls and pings.
struct Light {
    echo: LatencyHistogram,
    ping: LatencyHistogram,
}

/// Latencies next to a number of guests of one kind.
struct Case {
    what: Option<(&'static str, &'static str, Duration)>,
    crowd: usize,
    light: Light,
}

/// Measures all cases `rounds` times. The cases alternate, so that other work on the machine
/// affects all of them.
pub(crate) fn measure(
    connection: &SharedConnection,
    rounds: u32,
    time: Duration,
) -> Result<Vec<Row>> {
    let mut cases = vec![Case {
        what: None,
        crowd: 0,
        light: Light::new()?,
    }];
    for burner in BURNERS {
        for crowd in CROWDS {
            cases.push(Case {
                what: Some(burner),
                crowd,
                light: Light::new()?,
            });
        }
    }
    for _ in 0..rounds {
        for case in &mut cases {
            let burning = Burning::begin(
                connection,
                case.what.map_or("", |(tool, ..)| tool),
                case.crowd,
            )?;
            case.light.measure(connection, time)?;
            burning.end()?;
        }
    }
    rows(cases)
}

fn rows(cases: Vec<Case>) -> Result<Vec<Row>> {
    let mut cases = cases.into_iter();
    let Some(Case { light: idle, .. }) = cases.next() else {
        bail!("nothing was measured")
    };
    let mut rows = vec![
        Row::new("echo, idle", idle.echo.clone(), None, Target::None),
        Row::new("ping, idle", idle.ping.clone(), None, Target::None),
    ];
    for Case { what, crowd, light } in cases {
        let Some((_, words, most)) = what else {
            continue;
        };
        let target = Target::Beside(TIMES, most);
        rows.push(Row::new(
            format!("echo beside {crowd} guests {words}"),
            light.echo,
            Some(&idle.echo),
            target,
        ));
        rows.push(Row::new(
            format!("ping beside {crowd} guests {words}"),
            light.ping,
            Some(&idle.ping),
            Target::None,
        ));
    }
    Ok(rows)
}

impl Light {
    fn new() -> Result<Self> {
        Ok(Self {
            echo: LatencyHistogram::new()?,
            ping: LatencyHistogram::new()?,
        })
    }

    /// Sends at fixed times, even if the previous request has no response yet. Otherwise, a slow
    /// response would reduce the load.
    fn measure(&mut self, connection: &SharedConnection, time: Duration) -> Result<()> {
        let mailbox = connection.open_mailbox();
        let end = Instant::now() + time;
        let mut due = Instant::now();
        let mut turn = true;
        let mut open = HashMap::new();
        while due < end || !open.is_empty() {
            let now = Instant::now();
            if now >= due && due < end {
                let sent = Instant::now();
                let id = if turn {
                    mailbox.call("light.echo", &json!({"text": TEXT}))?
                } else {
                    mailbox.request("ping", &json!({}))?
                };
                open.insert(id, (turn, sent));
                turn = !turn;
                due += EVERY;
                continue;
            }
            let wait = if due < end { due } else { now + DEADLINE };
            match mailbox.next_event(wait) {
                Some(CallerEvent::Response(id, answer)) => {
                    let Some((echo, sent)) = open.remove(&id) else {
                        continue;
                    };
                    let latencies = if echo { &mut self.echo } else { &mut self.ping };
                    latencies.add(answer.received_at - sent);
                    let well = answer
                        .message
                        .is_ok_and(|result| result.get("isError").is_none());
                    ensure!(well, "a light call failed");
                }
                Some(CallerEvent::ServerExited) => bail!("the server exited"),
                Some(CallerEvent::Progress(_)) => {}
                None => ensure!(
                    due < end,
                    "light calls were not answered within {} s",
                    DEADLINE.as_secs()
                ),
            }
        }
        Ok(())
    }
}

/// CPU-bound guests that run until they are cancelled.
struct Burning<'a> {
    connection: &'a SharedConnection,
    calls: Vec<u64>,
    /// The mailbox for their responses.
    mailbox: CallerMailbox<'a>,
}

impl<'a> Burning<'a> {
    fn begin(connection: &'a SharedConnection, tool: &str, crowd: usize) -> Result<Self> {
        let mailbox = connection.open_mailbox();
        let mut calls = Vec::new();
        for _ in 0..crowd {
            let call = mailbox.call_with_progress(&format!("burner.{tool}"), &json!({}))?;
            mailbox.wait_until_started(call)?;
            calls.push(call);
        }
        Ok(Self {
            connection,
            calls,
            mailbox,
        })
    }

    /// Cancels the guests and waits until the server is idle, for the next case.
    fn end(self) -> Result<()> {
        ensure!(
            self.mailbox.next_event(Instant::now()).is_none(),
            "a guest that should burn was answered"
        );
        for call in self.calls {
            self.connection.cancel(call)?;
        }
        let cpu = || Ok::<_, anyhow::Error>(vitals(self.connection.pid())?.cpu);
        let deadline = Instant::now() + DEADLINE;
        let mut before = cpu()?;
        loop {
            pause(Duration::from_millis(100));
            let now = cpu()?;
            if now.saturating_sub(before) <= Duration::from_millis(10) {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "guests that were cancelled go on burning"
            );
            before = now;
        }
    }
}

/// Sleeps, to measure activity or its absence during an interval.
#[expect(
    clippy::disallowed_methods,
    reason = "what is measured is what happens in a stretch of time"
)]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
