//! One measurement of one server.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::figure::Figure;
use super::list::Peer;
use toolbay_load::pause;
use toolbay_load::{Driven, Group, Launch, Server, Until, Via, Work};

/// Size of a small message, in bytes.
const SMALL: usize = 64;

/// Duration of a computation that runs concurrently with other calls.
const BURN: Duration = Duration::from_millis(50);

/// Idle time before the memory is read.
const REST: Duration = Duration::from_millis(200);

/// The time between two light calls.
const LIGHT: Duration = Duration::from_millis(2);

/// The duration of each part.
pub(super) struct Plan {
    each: Duration,
    beside: Duration,
    warm: u64,
}

impl Plan {
    pub(super) const QUICK: Self = Self {
        each: Duration::from_millis(200),
        beside: Duration::from_millis(400),
        warm: 100,
    };
    pub(super) const FULL: Self = Self {
        each: Duration::from_secs(2),
        beside: Duration::from_secs(3),
        warm: 500,
    };

    /// Describes the plan.
    pub(super) fn words(&self) -> String {
        format!(
            "{} ms for each figure, {} ms beside calls that compute",
            self.each.as_millis(),
            self.beside.as_millis()
        )
    }
}

/// The results and the failures. A failure of one part does not stop the others.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) figures: Vec<(Figure, f64)>,
    pub(super) failures: Vec<String>,
}

/// Measures a server once.
pub(super) fn measure(peer: &Peer, plan: &Plan) -> Measured {
    let mut measured = Measured::default();
    let mut note = |part: &str, result: Result<()>| {
        if let Err(error) = result {
            measured
                .failures
                .push(format!("{}, {part}: {error:#}", peer.name));
        }
    };
    let mut figures = Vec::new();
    note("stdio", stdio(peer, plan, &mut figures));
    note("HTTP", http(peer, plan, &mut figures));
    measured.figures = figures;
    measured
}

fn stdio(peer: &Peer, plan: &Plan, figures: &mut Vec<(Figure, f64)>) -> Result<()> {
    let echo = Work::echo(SMALL);
    let mut server = listed(&*peer.launch, Via::Stdio)?;
    server.drive(&[Group::of(1, &echo)], Until::Calls(1))?;
    figures.push((Figure::Cold, ms(server.started.elapsed())));
    pause(REST);
    let memory = server.memory()?;
    for (figure, kib) in [(Figure::Idle, memory.resident), (Figure::Own, memory.own)] {
        #[expect(clippy::cast_precision_loss, reason = "no server takes so much memory")]
        figures.push((figure, kib as f64 / 1024.0));
    }
    server.drive(&[Group::of(1, &echo)], Until::Calls(plan.warm))?;
    let alone = server.drive(&[Group::of(1, &echo)], Until::Time(plan.each))?;
    figures.push((Figure::AloneMedian, alone.percentile_us(50.0)));
    figures.push((Figure::AloneTail, alone.percentile_us(99.0)));
    figures.push((Figure::AloneCpu, alone.cpu_us()));
    for (callers, rate, cpu) in [
        (8, Figure::Eight, Figure::EightCpu),
        (64, Figure::SixtyFour, Figure::SixtyFourCpu),
    ] {
        let driven = driven(&mut server, callers, &echo, plan)?;
        figures.push((rate, driven.rate()));
        figures.push((cpu, driven.cpu_us()));
    }
    let large = Work::echo(1 << 20);
    server.drive(&[Group::of(1, &large)], Until::Calls(2))?;
    let large = server.drive(&[Group::of(1, &large)], Until::Time(plan.each))?;
    figures.push((Figure::Mebibyte, large.percentile_us(50.0) / 1e3));
    let burn = peer
        .burn
        .as_ref()
        .context("nobody knows how long it computes")?;
    for (burners, figure) in [(2, Figure::BesideTwo), (8, Figure::BesideEight)] {
        let light = Group {
            callers: 1,
            work: &echo,
            pause: LIGHT,
        };
        let beside = server.drive(&[light, Group::of(burners, burn)], Until::Time(plan.beside))?;
        figures.push((figure, beside.percentile_us(99.0) / 1e3));
    }
    Ok(())
}

fn http(peer: &Peer, plan: &Plan, figures: &mut Vec<(Figure, f64)>) -> Result<()> {
    let echo = Work::echo(SMALL);
    let mut server = listed(&*peer.launch, Via::Session)?;
    let session = [
        Figure::SessionAlone,
        Figure::SessionEight,
        Figure::SessionSixtyFour,
        Figure::SessionCpu,
    ];
    let stateless = [
        Figure::StatelessAlone,
        Figure::StatelessEight,
        Figure::StatelessSixtyFour,
        Figure::StatelessCpu,
    ];
    for (via, [alone, eight, sixty_four, cpu]) in
        [(Via::Session, session), (Via::Stateless, stateless)]
    {
        server.change(via, 1).with_context(|| format!("{via:?}"))?;
        server.drive(&[Group::of(1, &echo)], Until::Calls(plan.warm))?;
        let one = server.drive(&[Group::of(1, &echo)], Until::Time(plan.each))?;
        figures.push((alone, one.percentile_us(50.0)));
        server.connect(8)?;
        figures.push((eight, driven(&mut server, 8, &echo, plan)?.rate()));
        server.connect(64)?;
        let many = driven(&mut server, 64, &echo, plan)?;
        figures.push((sixty_four, many.rate()));
        figures.push((cpu, many.cpu_us()));
    }
    Ok(())
}

/// Runs callers after a warm-up.
fn driven(server: &mut Server, callers: usize, work: &Work, plan: &Plan) -> Result<Driven> {
    server.drive(&[Group::of(callers, work)], Until::Calls(plan.warm))?;
    server.drive(&[Group::of(callers, work)], Until::Time(plan.each))
}

/// Starts a server and waits until its tools are available.
fn listed(launch: &Launch<'_>, via: Via) -> Result<Server> {
    let mut server = Server::start(launch, via)?;
    server.until_listed(|tools| {
        ["echo", "burn"]
            .iter()
            .all(|wanted| tools.iter().any(|tool| tool == wanted))
    })?;
    Ok(server)
}

/// Returns the work that takes this server about 50 ms.
pub(super) fn calibrate(launch: &Launch<'_>) -> Result<Work> {
    let mut server = listed(launch, Via::Stdio)?;
    let mut rounds: u32 = 50_000;
    loop {
        let work = Work::burn(rounds);
        let driven = server.drive(&[Group::of(1, &work)], Until::Calls(3))?;
        let took = driven.percentile_us(1.0) / 1e6;
        if took >= BURN.as_secs_f64() / 3.0 {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "at most three times as many"
            )]
            let wanted = (f64::from(rounds) * BURN.as_secs_f64() / took) as u32;
            return Ok(Work::burn(wanted));
        }
        ensure!(rounds < 1 << 30, "it computes too fast to be true");
        rounds *= 2;
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
