//! Callers that make one call after the other, all on this thread.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use toolbay_testkit::latency::LatencyHistogram;

use super::answer;
use super::server::{Server, Via};
use super::work::Work;

/// Maximum time until a response.
const PATIENCE: Duration = Duration::from_secs(30);

/// Callers with the same behaviour.
pub struct Group<'a> {
    /// Number of callers.
    pub callers: usize,
    /// Their requests.
    pub work: &'a Work,
    /// The time between a response and the next call.
    pub pause: Duration,
}

impl<'a> Group<'a> {
    /// Creates callers without a pause.
    pub fn of(callers: usize, work: &'a Work) -> Self {
        Self {
            callers,
            work,
            pause: Duration::ZERO,
        }
    }
}

/// The condition after which no further call starts.
#[derive(Clone, Copy)]
pub enum Until {
    /// After this time.
    Time(Duration),
    /// After this number of calls of all callers together.
    Calls(u64),
}

/// The result of a measurement.
pub struct Driven {
    /// The latencies of each group.
    pub groups: Vec<LatencyHistogram>,
    /// Time from the first request to the last response.
    pub took: Duration,
    /// Number of calls of all groups.
    pub calls: u64,
    /// The server's CPU time.
    pub cpu: Duration,
}

impl Driven {
    /// Returns the number of calls per second.
    pub fn rate(&self) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "no measurement has so many calls"
        )]
        let calls = self.calls as f64;
        calls / self.took.as_secs_f64().max(f64::EPSILON)
    }

    /// Returns the server's CPU time per call, in microseconds.
    pub fn cpu_us(&self) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "no measurement has so many calls"
        )]
        let calls = self.calls as f64;
        self.cpu.as_secs_f64() * 1e6 / calls.max(1.0)
    }

    /// Returns a percentile of the first group's latencies, in microseconds.
    pub fn percentile_us(&self, percentile: f64) -> f64 {
        self.groups.first().map_or(0.0, |first| {
            first.percentile(percentile).as_secs_f64() * 1e6
        })
    }
}

/// One caller.
struct Caller {
    group: usize,
    /// The ID and the start of its open request.
    open: Option<(u64, Instant)>,
    /// The start of its next call.
    due: Option<Instant>,
}

/// All callers of a measurement.
struct Crowd<'a> {
    groups: &'a [Group<'a>],
    callers: Vec<Caller>,
    until: Until,
    began: Instant,
    begun: u64,
    last: u64,
}

impl Server {
    /// Runs the groups. Over HTTP, each caller has its own connection.
    ///
    /// # Errors
    ///
    /// A response was wrong or missing.
    pub fn drive(&mut self, groups: &[Group<'_>], until: Until) -> Result<Driven> {
        let result = self.driven(groups, until);
        result.map_err(|error| self.explained(error))
    }

    fn driven(&mut self, groups: &[Group<'_>], until: Until) -> Result<Driven> {
        let members = groups
            .iter()
            .enumerate()
            .flat_map(|(group, of)| std::iter::repeat_n(group, of.callers));
        let callers: Vec<Caller> = members
            .map(|group| Caller {
                group,
                open: None,
                due: None,
            })
            .collect();
        if self.via != Via::Stdio {
            self.connect(callers.len())?;
            self.reconnect()?;
        }
        let mut latencies = groups
            .iter()
            .map(|_| LatencyHistogram::new())
            .collect::<Result<Vec<_>>>()?;
        let cpu = self.cpu()?;
        let began = Instant::now();
        let mut crowd = Crowd {
            groups,
            callers,
            until,
            began,
            begun: 0,
            last: 0,
        };
        for index in 0..crowd.callers.len() {
            self.begin(&mut crowd, index)?;
        }
        self.flush()?;
        while crowd.goes_on() {
            let events = self.poll.wait(crowd.next_due())?;
            let now = Instant::now();
            for event in &events {
                if event.can_read {
                    self.take_in(event.place, &mut crowd, &mut latencies, now)?;
                }
            }
            crowd.is_patient(now)?;
            for index in crowd.due(now) {
                self.begin(&mut crowd, index)?;
            }
            self.flush()?;
        }
        let took = began.elapsed();
        let calls = latencies.iter().map(LatencyHistogram::len).sum();
        Ok(Driven {
            groups: latencies,
            took,
            calls,
            cpu: self.cpu()?.saturating_sub(cpu),
        })
    }

    /// Starts the next call of a caller, if there is one.
    fn begin(&mut self, crowd: &mut Crowd<'_>, index: usize) -> Result<()> {
        let Some((id, work)) = crowd.begin(index)? else {
            return Ok(());
        };
        let place = if self.via == Via::Stdio { 0 } else { index };
        let text = work.request(id, self.via == Via::Stateless);
        self.queue(place, &text, "tools/call", Some(work.tool()))
    }

    /// Processes the responses of a connection.
    fn take_in(
        &mut self,
        place: usize,
        crowd: &mut Crowd<'_>,
        latencies: &mut [LatencyHistogram],
        now: Instant,
    ) -> Result<()> {
        let mut ended = Vec::new();
        let wire = self.wires.get_mut(place).context("no connection")?;
        wire.fill()?;
        if wire.is_socket() {
            while let Some(response) = wire.response()? {
                ended.extend(crowd.end(&response.message, latencies, now)?);
            }
        } else {
            while let Some(line) = wire.line() {
                ended.extend(crowd.end(line, latencies, now)?);
            }
        }
        for index in ended {
            self.begin(crowd, index)?;
        }
        Ok(())
    }

    /// Sends queued bytes.
    fn flush(&mut self) -> Result<()> {
        for (place, wire) in self.wires.iter_mut().enumerate() {
            let all_sent = wire.flush()?;
            self.poll.wants_to_write(wire, place, !all_sent)?;
        }
        Ok(())
    }
}

impl<'a> Crowd<'a> {
    /// Starts the next call of a caller. Returns its ID and its work.
    fn begin(&mut self, index: usize) -> Result<Option<(u64, &'a Work)>> {
        let is_over = match self.until {
            Until::Time(time) => self.began.elapsed() >= time,
            Until::Calls(calls) => self.begun >= calls,
        };
        let callers = self.callers.len() as u64;
        let caller = self.callers.get_mut(index).context("no such caller")?;
        caller.due = None;
        if is_over {
            return Ok(None);
        }
        self.begun += 1;
        self.last += 1;
        // The ID identifies the caller.
        let id = self.last * callers + index as u64;
        caller.open = Some((id, Instant::now()));
        Ok(Some((
            id,
            self.groups.get(caller.group).context("no such group")?.work,
        )))
    }

    /// Processes a response. Returns the caller, if its next call starts at once.
    fn end(
        &mut self,
        message: &[u8],
        latencies: &mut [LatencyHistogram],
        now: Instant,
    ) -> Result<Option<usize>> {
        // Servers may also send notifications.
        let Some(id) = answer::id(message)? else {
            return Ok(None);
        };
        let index = usize::try_from(id % self.callers.len() as u64)?;
        let caller = self.callers.get_mut(index).context("no such caller")?;
        let (open, since) = caller
            .open
            .take()
            .with_context(|| format!("nobody waits for an answer to {id}"))?;
        ensure!(open == id, "an answer to {id} instead of {open}");
        let group = self.groups.get(caller.group).context("no such group")?;
        answer::check(message, group.work)?;
        latencies
            .get_mut(caller.group)
            .context("no such group")?
            .add(now.saturating_duration_since(since));
        if group.pause.is_zero() {
            return Ok(Some(index));
        }
        caller.due = Some(now + group.pause);
        Ok(None)
    }

    fn goes_on(&self) -> bool {
        self.callers
            .iter()
            .any(|caller| caller.open.is_some() || caller.due.is_some())
    }

    fn next_due(&self) -> Option<Instant> {
        let patience = self
            .callers
            .iter()
            .filter_map(|caller| caller.open.map(|(_, since)| since + PATIENCE))
            .min();
        self.callers
            .iter()
            .filter_map(|caller| caller.due)
            .chain(patience)
            .min()
    }

    /// Returns the callers whose next call is due.
    fn due(&self, now: Instant) -> Vec<usize> {
        let is_due = |caller: &Caller| caller.due.is_some_and(|due| due <= now);
        self.callers
            .iter()
            .enumerate()
            .filter(|(_, caller)| is_due(caller))
            .map(|(index, _)| index)
            .collect()
    }

    fn is_patient(&self, now: Instant) -> Result<()> {
        let mut open = self.callers.iter().filter_map(|caller| caller.open);
        let late = open.find(|(_, since)| now.saturating_duration_since(*since) > PATIENCE);
        ensure!(
            late.is_none(),
            "request {late:?} was not answered within {} s",
            PATIENCE.as_secs()
        );
        Ok(())
    }
}
