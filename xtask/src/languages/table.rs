//! The measurements of plugins, and the table that shows them.

use std::time::{Duration, Instant};

use anyhow::Result;
use toolbay_testkit::{build, process_usage};

/// The elapsed time and the CPU time of an operation.
#[derive(Clone, Copy)]
pub(super) struct OperationTime {
    /// The elapsed time, which depends on the load of the machine.
    wall: Duration,
    /// The CPU time, which does not depend on the load. `None` if the system does not report it.
    cpu: Option<Duration>,
}

impl OperationTime {
    /// Runs `work` and measures it. The CPU time is that of child processes.
    pub(super) fn measure(work: impl FnOnce() -> Result<()>) -> Result<Self> {
        let began = Instant::now();
        let before = process_usage::cpu_of_children().ok();
        work()?;
        let cpu = process_usage::cpu_of_children()
            .ok()
            .zip(before)
            .map(|(now, before)| now.saturating_sub(before));
        Ok(Self {
            wall: began.elapsed(),
            cpu,
        })
    }

    /// Formats the elapsed time and the CPU time in seconds, as two cells of the table.
    fn format_seconds(self) -> String {
        let cpu = self
            .cpu
            .map_or_else(|| "-".to_owned(), |cpu| format!("{:.1}", cpu.as_secs_f64()));
        format!("{:>5.1} | {cpu:>5}", self.wall.as_secs_f64())
    }
}

/// The measurements of a plugin.
pub(super) struct PluginMeasurement {
    /// The id of the plugin.
    pub(super) plugin: String,
    /// The size of the plugin file, in bytes.
    pub(super) size: u64,
    /// The time to set up the project.
    pub(super) setup: OperationTime,
    /// The time to build the project.
    pub(super) build: OperationTime,
    /// The time in which the server compiles the plugin.
    pub(super) compile: OperationTime,
    /// The time of a call in a new instance, measured by the client.
    pub(super) call: Option<Duration>,
}

impl PluginMeasurement {
    /// Formats the measurements in one line, to show progress.
    pub(super) fn format_line(&self) -> String {
        let [setup, build, compile] =
            [self.setup, self.build, self.compile].map(|took| took.wall.as_secs_f64());
        format!(
            "{}: {}, set up in {setup:.1} s, built in {build:.1} s, compiled in {compile:.1} s",
            self.plugin,
            build::format_kib(self.size)
        )
    }
}

/// Parses a line of the client: `call PLUGIN MILLISECONDS`.
pub(super) fn parse_call_time(line: &str) -> Option<(&str, Duration)> {
    let (plugin, time) = line.strip_prefix("call ")?.split_once(' ')?;
    let time: f64 = time.parse().ok()?;
    Some((plugin, Duration::try_from_secs_f64(time / 1000.0).ok()?))
}

/// Formats the rows as a Markdown table.
pub(super) fn of(rows: &[PluginMeasurement]) -> String {
    let mut lines = vec![
        "| plugin            |      size | setup |   CPU | build |   CPU | compile |   CPU | call ms |".to_owned(),
        "| ----------------- | --------: | ----: | ----: | ----: | ----: | ------: | ----: | ------: |".to_owned(),
    ];
    lines.extend(rows.iter().map(|row| {
        let call = row.call.map_or_else(
            || "-".to_owned(),
            |call| format!("{:.2}", call.as_secs_f64() * 1000.0),
        );
        let [setup, build, compile] =
            [row.setup, row.build, row.compile].map(OperationTime::format_seconds);
        let size = build::format_kib(row.size);
        format!(
            "| {:<17} | {size:>9} | {setup} | {build} | {compile:>15} | {call:>7} |",
            row.plugin
        )
    }));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_children_counts_when_they_have_ended() {
        let before = process_usage::cpu_of_children().unwrap();
        let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        assert!(
            std::process::Command::new("sh")
                .args(["-c", script])
                .status()
                .unwrap()
                .success()
        );
        assert!(process_usage::cpu_of_children().unwrap() > before);
    }

    #[test]
    fn the_table_has_what_was_measured() {
        let took = |wall, cpu: Option<u64>| OperationTime {
            wall: Duration::from_millis(wall),
            cpu: cpu.map(Duration::from_millis),
        };
        let mut row = PluginMeasurement {
            plugin: "sample-c".to_owned(),
            size: 2048,
            setup: took(100, None),
            build: took(1500, Some(2900)),
            compile: took(80, Some(70)),
            call: None,
        };
        let table = of(std::slice::from_ref(&row));
        let [title, rule, line] = table.lines().collect::<Vec<_>>()[..] else {
            panic!("{table}")
        };
        assert!(
            title.len() == line.len() && rule.len() == line.len(),
            "{table}"
        );
        assert!(
            line.ends_with(
                "|     2 KiB |   0.1 |     - |   1.5 |   2.9 |     0.1 |   0.1 |       - |"
            ),
            "{table}"
        );
        row.call = parse_call_time("call sample-c 0.25")
            .filter(|(plugin, _)| *plugin == row.plugin)
            .map(|(_, call)| call);
        assert!(of(&[row]).ends_with("|    0.25 |"));
        assert_eq!(parse_call_time("ok      call it"), None);
    }
}
