//! What was measured of each plugin.

use std::time::{Duration, Instant};

use anyhow::Result;
use toolbay_testkit::{build, vitals};

/// How long something took.
#[derive(Clone, Copy)]
pub(super) struct Took {
    /// By the clock, which depends on what else the machine does.
    wall: Duration,
    /// Of the processors, which does not; where the system tells.
    cpu: Option<Duration>,
}

impl Took {
    /// Measures what other programs do.
    pub(super) fn of(work: impl FnOnce() -> Result<()>) -> Result<Self> {
        let (began, before) = (Instant::now(), vitals::cpu_of_children().ok());
        work()?;
        let cpu = vitals::cpu_of_children().ok().zip(before).map(|(now, before)| now.saturating_sub(before));
        Ok(Self { wall: began.elapsed(), cpu })
    }

    /// In seconds: by the clock, and of the processors.
    fn seconds(self) -> String {
        let cpu = self.cpu.map_or_else(|| "-".to_owned(), |cpu| format!("{:.1}", cpu.as_secs_f64()));
        format!("{:>5.1} | {cpu:>5}", self.wall.as_secs_f64())
    }
}

/// A plugin's numbers.
pub(super) struct Row {
    /// Its id.
    pub(super) plugin: String,
    /// The size of its file.
    pub(super) size: u64,
    /// Setting it up.
    pub(super) setup: Took,
    /// Building it.
    pub(super) build: Took,
    /// Compiling it, in the server.
    pub(super) compile: Took,
    /// What a call takes in a fresh instance, seen from the client.
    pub(super) call: Option<Duration>,
}

impl Row {
    /// For one who waits.
    pub(super) fn line(&self) -> String {
        let [setup, build, compile] = [self.setup, self.build, self.compile].map(|took| took.wall.as_secs_f64());
        format!(
            "{}: {}, set up in {setup:.1} s, built in {build:.1} s, compiled in {compile:.1} s",
            self.plugin,
            build::kib(self.size)
        )
    }
}

/// What a line of the client's measures: `call PLUGIN MILLISECONDS`.
pub(super) fn call_time(line: &str) -> Option<(&str, Duration)> {
    let (plugin, time) = line.strip_prefix("call ")?.split_once(' ')?;
    let time: f64 = time.parse().ok()?;
    Some((plugin, Duration::try_from_secs_f64(time / 1000.0).ok()?))
}

/// The rows as a table in Markdown.
pub(super) fn of(rows: &[Row]) -> String {
    let mut lines = vec![
        "| plugin            |      size | setup |   CPU | build |   CPU | compile |   CPU | call ms |".to_owned(),
        "| ----------------- | --------: | ----: | ----: | ----: | ----: | ------: | ----: | ------: |".to_owned(),
    ];
    lines.extend(rows.iter().map(|row| {
        let call = row.call.map_or_else(|| "-".to_owned(), |call| format!("{:.2}", call.as_secs_f64() * 1000.0));
        let [setup, build, compile] = [row.setup, row.build, row.compile].map(Took::seconds);
        let size = build::kib(row.size);
        format!("| {:<17} | {size:>9} | {setup} | {build} | {compile:>15} | {call:>7} |", row.plugin)
    }));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_children_counts_when_they_have_ended() {
        let before = vitals::cpu_of_children().unwrap();
        let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", script]).status().unwrap().success());
        assert!(vitals::cpu_of_children().unwrap() > before);
    }

    #[test]
    fn the_table_has_what_was_measured() {
        let took =
            |wall, cpu: Option<u64>| Took { wall: Duration::from_millis(wall), cpu: cpu.map(Duration::from_millis) };
        let mut row = Row {
            plugin: "sample-c".to_owned(),
            size: 2048,
            setup: took(100, None),
            build: took(1500, Some(2900)),
            compile: took(80, Some(70)),
            call: None,
        };
        let table = of(std::slice::from_ref(&row));
        let [title, rule, line] = table.lines().collect::<Vec<_>>()[..] else { panic!("{table}") };
        assert!(title.len() == line.len() && rule.len() == line.len(), "{table}");
        assert!(line.ends_with("|     2 KiB |   0.1 |     - |   1.5 |   2.9 |     0.1 |   0.1 |       - |"), "{table}");
        row.call = call_time("call sample-c 0.25").filter(|(plugin, _)| *plugin == row.plugin).map(|(_, call)| call);
        assert!(of(&[row]).ends_with("|    0.25 |"));
        assert_eq!(call_time("ok      call it"), None);
    }
}
