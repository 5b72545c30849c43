//! The actions of one hostile client, generated from a seed.

use std::fmt;

use serde_json::Value;

use crate::message::Writer;
use crate::request::{Request, honest};
use crate::text::Text;

/// Number of steps of a client over HTTP.
const STEPS: std::ops::RangeInclusive<usize> = 1..=6;

/// Number of lines of a client over standard input and output.
const LINES: std::ops::RangeInclusive<usize> = 1..=12;

/// Number of characters that are shown of the start and of the end of a text.
const SHOWN: usize = 700;

/// The behaviour of a client on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Reads the reply to each request before it sends the next.
    Polite,
    /// Sends all requests at once, and then reads.
    Pipelined,
    /// Sends the first bytes one by one.
    Bytewise,
    /// Like `Bytewise`, with a pause before each byte, until the server closes the connection.
    Slow,
    /// Sends this percentage of the bytes, and waits for the server.
    Part(u8),
    /// Closes its sending side after the request, and reads.
    HalfClosed,
    /// Sends the same request repeatedly, and reads nothing.
    Deaf,
    /// Sends this percentage of the bytes, and resets the connection.
    Reset(u8),
    /// Sends everything, and closes the connection.
    Leaves,
    /// Sends everything, and keeps the connection open during later steps.
    Kept,
    /// Opens this number of connections, and sends this percentage of the bytes on each before it
    /// reads.
    Crowd(u8, u8),
}

/// The actions of a client on one connection.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) manner: Manner,
    pub(crate) requests: Vec<Request>,
}

/// A client over HTTP.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub(crate) seed: u64,
    pub(crate) steps: Vec<Step>,
}

/// A line of a client over standard input and output.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) text: Text,
    /// Number of bytes that are sent before the rest.
    pub(crate) first: usize,
    /// The ID of the request, if it must get a response, provided that it is valid JSON.
    pub(crate) id: Option<Value>,
}

/// A client over standard input and output.
#[derive(Clone, Debug)]
pub(crate) struct Talk {
    pub(crate) seed: u64,
    pub(crate) lines: Vec<Line>,
}

impl Visit {
    /// Generates the visit of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut writer = Writer::new(seed);
        let mut steps = Vec::new();
        // Without this, most clients would have no session.
        if writer.chance(60) {
            let hello = writer.initialize();
            let requests = vec![honest(hello)];
            steps.push(Step {
                manner: Manner::Polite,
                requests,
            });
        }
        for _ in 0..writer.random.usize(STEPS) {
            let manner = manner(&mut writer);
            let count = match manner {
                Manner::Polite | Manner::Pipelined => writer.random.usize(1..=4),
                _ => 1,
            };
            let requests = (0..count).map(|_| request(&mut writer, manner)).collect();
            steps.push(Step { manner, requests });
        }
        Self { seed, steps }
    }
}

fn request(writer: &mut Writer, manner: Manner) -> Request {
    // A client that never reads should mostly request large responses.
    if manner == Manner::Deaf && writer.chance(70) {
        let mut message = writer.message(true);
        while message.method != "tools/list" || !message.is_stateless || message.id.is_none() {
            message = writer.message(true);
        }
        return honest(message);
    }
    if writer.chance(4) {
        return writer.noise();
    }
    if writer.chance(25) {
        let message = writer.message(true);
        return honest(message);
    }
    writer.request()
}

fn manner(writer: &mut Writer) -> Manner {
    let part = writer.random.u8(1..=99);
    match writer.random.u8(..40) {
        0..14 => Manner::Polite,
        14..18 => Manner::Pipelined,
        18..20 => Manner::Bytewise,
        20 => Manner::Slow,
        21..24 => Manner::Part(part),
        24..26 => Manner::HalfClosed,
        26..28 => Manner::Deaf,
        28..31 => Manner::Reset(if writer.random.bool() { 100 } else { part }),
        31..34 => Manner::Leaves,
        34..38 => Manner::Kept,
        _ => Manner::Crowd(
            writer.random.u8(5..90),
            if writer.random.bool() { 100 } else { part },
        ),
    }
}

impl Talk {
    /// Generates the talk of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut writer = Writer::new(seed);
        let count = writer.random.usize(LINES);
        let mut lines: Vec<Line> = (0..count)
            .map(|_| {
                let message = if writer.chance(8) {
                    writer.batch()
                } else {
                    writer.message(true)
                };
                let first = if writer.chance(15) {
                    writer.random.usize(1..200)
                } else {
                    0
                };
                Line {
                    text: message.text,
                    first,
                    id: message.id,
                }
            })
            .collect();
        for line in &mut lines {
            line.id = line.id.take().filter(|id| writer.is_single(id));
        }
        Self { seed, lines }
    }
}

impl fmt::Display for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the client of seed {}, over HTTP:", self.seed)?;
        for (n, step) in self.steps.iter().enumerate() {
            writeln!(f, "  {}. {:?}", n + 1, step.manner)?;
            for request in &step.requests {
                writeln!(f, "     {}", shown(&request.text))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Talk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "the client of seed {}, over standard input and output:",
            self.seed
        )?;
        for line in &self.lines {
            writeln!(f, "  {}", shown(&line.text))?;
        }
        Ok(())
    }
}

/// Returns a text, or its start and its end.
fn shown(text: &Text) -> String {
    let text = text.to_string();
    let all = text.chars().count();
    if all <= 2 * SHOWN {
        return text;
    }
    let [begin, end]: [String; 2] = [
        text.chars().take(SHOWN).collect(),
        text.chars().skip(all.saturating_sub(SHOWN)).collect(),
    ];
    format!("{begin} […] {end}")
}

/// Formats the command that repeats these clients, for failures that any of them may have caused.
pub(crate) fn repeated<T: fmt::Display>(clients: &[T], first: u64) -> String {
    let shown: String = clients.iter().map(ToString::to_string).collect();
    format!(
        "repeat it with --seed {first} --clients {}: {shown}",
        clients.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_client() {
        for seed in 0..50 {
            assert_eq!(Visit::new(seed).to_string(), Visit::new(seed).to_string());
            assert_eq!(Talk::new(seed).to_string(), Talk::new(seed).to_string());
        }
        assert_ne!(Visit::new(1).to_string(), Visit::new(2).to_string());
    }

    #[test]
    fn every_manner_is_met() {
        let mut met: Vec<String> = (0..400)
            .flat_map(|seed| Visit::new(seed).steps)
            .map(|step| {
                format!("{:?}", step.manner)
                    .chars()
                    .take_while(|c| *c != '(')
                    .collect()
            })
            .collect();
        met.sort_unstable();
        met.dedup();
        assert_eq!(met.len(), 11, "{met:?}");
    }

    #[test]
    fn a_line_that_must_be_answered_has_an_id_of_its_own() {
        for seed in 0..200 {
            let talk = Talk::new(seed);
            let ids: Vec<_> = talk
                .lines
                .iter()
                .filter_map(|line| line.id.as_ref())
                .collect();
            assert!(
                ids.iter()
                    .all(|id| ids.iter().filter(|other| other == &id).count() == 1),
                "{talk}"
            );
        }
    }
}
