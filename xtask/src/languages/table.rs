//! What was measured of each plugin.

use std::time::Duration;

use crate::build;

/// A plugin's numbers.
pub(super) struct Row {
    /// Its id.
    pub(super) plugin: String,
    /// The size of its file.
    pub(super) size: u64,
    /// How long its setup took.
    pub(super) setup: Duration,
    /// How long its build took.
    pub(super) build: Duration,
    /// How long the server took to compile it.
    pub(super) compile: Duration,
    /// What a call takes in a fresh instance, seen from the client.
    pub(super) call: Option<Duration>,
}

impl Row {
    /// For one who waits.
    pub(super) fn line(&self) -> String {
        let [setup, build, compile] = [self.setup, self.build, self.compile].map(|time| time.as_secs_f64());
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
        "| plugin           |      size | setup s | build s | compile ms | call ms |".to_owned(),
        "| ---------------- | --------: | ------: | ------: | ---------: | ------: |".to_owned(),
    ];
    lines.extend(rows.iter().map(|row| {
        let call = row.call.map_or_else(|| "-".to_owned(), |call| format!("{:.2}", call.as_secs_f64() * 1000.0));
        let [setup, build] = [row.setup, row.build].map(|time| format!("{:.1}", time.as_secs_f64()));
        let (size, compile) = (build::kib(row.size), row.compile.as_millis());
        format!("| {:<16} | {size:>9} | {setup:>7} | {build:>7} | {compile:>10} | {call:>7} |", row.plugin)
    }));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_what_was_measured() {
        let time = Duration::from_millis;
        let mut row = Row {
            plugin: "sample-c".to_owned(),
            size: 2048,
            setup: time(100),
            build: time(1500),
            compile: time(80),
            call: None,
        };
        assert!(of(std::slice::from_ref(&row)).ends_with("|     2 KiB |     0.1 |     1.5 |         80 |       - |"));
        row.call = call_time("call sample-c 0.25").filter(|(plugin, _)| *plugin == row.plugin).map(|(_, call)| call);
        assert!(of(&[row]).ends_with("|         80 |    0.25 |"));
        assert_eq!(call_time("ok      call it"), None);
    }
}
