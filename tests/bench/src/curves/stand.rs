//! The common parts of all curves: the server, a plugin, and the duration of each measurement.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use toolbay_testkit::TestFolder;

use crate::serving;
use toolbay_load::{Driven, Group, Server, Until, Via, Work};
use toolbay_report::{Sample, Series};

/// Number of calls before the measurement.
const WARM: u64 = 200;

/// The setup of a measurement.
pub(super) struct Stand {
    pub(super) server: PathBuf,
    /// The plugin that contains `echo`.
    pub(super) plugin: PathBuf,
    pub(super) rounds: u32,
    pub(super) quick: bool,
}

impl Stand {
    pub(super) fn new(server: PathBuf, plugin: PathBuf, rounds: u32, quick: bool) -> Self {
        Self {
            server,
            plugin,
            rounds,
            quick,
        }
    }

    /// Returns the duration of each point in each round.
    pub(super) fn each(&self) -> Duration {
        if self.quick {
            Duration::from_millis(200)
        } else {
            Duration::from_secs(2)
        }
    }

    /// Returns these values, in quick mode only up to `most`.
    pub(super) fn points(&self, values: &[u32], most: u32) -> Vec<u32> {
        values
            .iter()
            .copied()
            .filter(|value| !self.quick || *value <= most)
            .collect()
    }

    /// Creates a folder with the plugin.
    pub(super) fn folder(&self) -> Result<TestFolder> {
        serving::with_plugin(&self.server, &self.plugin)
    }

    /// Returns all points for every round, in reverse order in every second round.
    pub(super) fn turns<'a, T>(&self, points: &'a [T]) -> Vec<&'a T> {
        let turn = |round| -> Vec<&'a T> {
            if round % 2 == 0 {
                points.iter().collect()
            } else {
                points.iter().rev().collect()
            }
        };
        (0..self.rounds).flat_map(turn).collect()
    }
}

/// Starts a server for a folder.
pub(super) fn start(folder: &TestFolder, via: Via) -> Result<Server> {
    Server::start(
        &|address: Option<SocketAddr>| -> Command { serving::start(folder, address) },
        via,
    )
}

/// Starts a server for a folder with the plugin, and waits until the plugin is loaded.
pub(super) fn with_echo(folder: &TestFolder, via: Via) -> Result<Server> {
    let mut server = start(folder, via)?;
    server.until_listed(|tools| tools.iter().any(|tool| tool == "echo"))?;
    Ok(server)
}

/// Runs this number of callers, after a warm-up.
pub(super) fn drive(
    server: &mut Server,
    callers: u32,
    work: &Work,
    time: Duration,
) -> Result<Driven> {
    let group = || Group::of(callers as usize, work);
    server.drive(&[group()], Until::Calls(WARM.max(2 * u64::from(callers))))?;
    server.drive(&[group()], Until::Time(time))
}

/// The curves of a chart under measurement.
pub(super) struct Growing {
    series: Vec<Series>,
}

impl Growing {
    pub(super) fn new(names: &[&str]) -> Self {
        Self {
            series: names
                .iter()
                .map(|name| Series {
                    name: (*name).to_owned(),
                    points: Vec::new(),
                })
                .collect(),
        }
    }

    /// Adds a value to each curve.
    pub(super) fn add(&mut self, x: u32, values: &[f64]) {
        for (series, value) in self.series.iter_mut().zip(values) {
            let x = f64::from(x);
            let at = match series
                .points
                .binary_search_by(|(known, _)| known.total_cmp(&x))
            {
                Ok(at) => at,
                Err(at) => {
                    series.points.insert(at, (x, Sample::default()));
                    at
                }
            };
            if let Some((_, sample)) = series.points.get_mut(at) {
                sample.add(*value);
            }
        }
    }

    pub(super) fn done(self) -> Vec<Series> {
        self.series
    }
}

/// Returns a duration in milliseconds.
pub(super) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
