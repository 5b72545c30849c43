//! Tests that verification detects every way to change a log.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::SystemTime;

use proptest::prelude::*;
use proptest::sample::Index;
use tempfile::TempDir;

use super::*;
use crate::chain;
use crate::event::{AuditEvent, CallSubject};
use crate::folder::{file_name, list_files};
use crate::part_writer::tests::{open, open_both, record};

/// A log of several files that was ended cleanly: its files by name, including `head` and
/// `public-key`.
static LOG: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let [mut journal, mut rejected] = open_both(dir.path());
        for n in 0..30 {
            let denied = AuditEvent::Denied {
                subject: CallSubject::default(),
                message: "y".repeat(n * 9),
                remedy: None,
            };
            rejected
                .append(&[(SystemTime::now(), denied), record("z")])
                .unwrap();
            journal.set_rejected_anchor(rejected.newest_line());
            journal
                .append(&[
                    record(format!("{n} {}", "x".repeat(n * 7))),
                    record("\n{\"seq\":1}\n"),
                ])
                .unwrap();
            if n % 10 == 0 {
                journal.checkpoint().unwrap();
            }
        }
        rejected.checkpoint().unwrap();
        rejected.end().unwrap();
        journal.set_rejected_anchor(rejected.newest_line());
        journal.end().unwrap();
    }
    let part_files = |part| {
        list_files(dir.path(), part)
            .unwrap()
            .into_iter()
            .map(move |first| file_name(part, first))
    };
    let logs = LogPart::ALL.into_iter().flat_map(part_files);
    let names = logs
        .chain(LogPart::ALL.map(|part| part.head_file_name().to_owned()))
        .chain([PUBLIC_KEY_FILE_NAME.to_owned()]);
    let log: Vec<_> = names
        .map(|name| (name.clone(), fs::read(dir.path().join(name)).unwrap()))
        .collect();
    assert!(log.len() >= 4, "two files or more");
    log
});

/// A log that a test can change.
struct Log {
    dir: TempDir,
    /// The files with lines.
    files: Vec<(PathBuf, Vec<Vec<u8>>)>,
}

impl Log {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut files = Vec::new();
        for (name, content) in LOG.iter() {
            let path = dir.path().join(name);
            fs::write(&path, content).unwrap();
            if Path::new(&name)
                .extension()
                .is_some_and(|extension| extension == "jsonl")
            {
                files.push((
                    path,
                    content
                        .split_inclusive(|byte| *byte == b'\n')
                        .map(<[u8]>::to_vec)
                        .collect(),
                ));
            }
        }
        Self { dir, files }
    }

    /// Picks a line: returns the index of its file and its index in the file.
    fn pick(&self, index: Index) -> (usize, usize) {
        let mut at = index.index(self.files.iter().map(|(_, lines)| lines.len()).sum());
        for (file, (_, lines)) in self.files.iter().enumerate() {
            if at < lines.len() {
                return (file, at);
            }
            at -= lines.len();
        }
        unreachable!("the sum of all")
    }

    fn line(&mut self, (file, line): (usize, usize)) -> &mut Vec<u8> {
        &mut self.files[file].1[line]
    }

    /// Recomputes the hashes of the line at `from` and all later lines, which is the most that an
    /// attacker without the key can do.
    fn chain_again(&mut self, from: (usize, usize)) {
        let mut prev = None;
        for (file, (_, lines)) in self.files.iter_mut().enumerate() {
            for (number, line) in lines.iter_mut().enumerate() {
                if (file, number) < from {
                    continue;
                }
                let mut value: serde_json::Value = serde_json::from_slice(line).unwrap();
                value.as_object_mut().unwrap().shift_remove("hash");
                if let Some(prev) = prev {
                    value["prev"] = format!("{prev}").into();
                }
                let mut text = value.to_string().into_bytes();
                text.pop();
                let hash = chain::hash(&text);
                text.extend_from_slice(format!(",\"hash\":\"{hash}\"}}\n").as_bytes());
                assert_eq!(
                    chain::parse_line(&text[..text.len() - 1]).unwrap().hash,
                    hash
                );
                *line = text;
                prev = Some(hash);
            }
        }
    }

    fn verify(&self) -> VerifyReport {
        for (path, lines) in &self.files {
            fs::write(path, lines.concat()).unwrap();
        }
        verify(self.dir.path(), None, None).unwrap()
    }
}

fn describe_findings(report: &VerifyReport) -> Vec<String> {
    report.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn the_log_is_intact_before_it_is_changed() {
    let report = Log::new().verify();
    assert_eq!(
        (describe_findings(&report), report.notices.len()),
        (vec![], 0)
    );
}

#[test]
fn each_finding_names_the_line() {
    // The oldest files were deleted.
    let file = &LOG[0].0;
    let first = Log::new().verify().parts[0].first.unwrap() - 1;
    // Returns the number of a line of that file.
    let seq = |line: u64| first + line;
    let findings_after = |change: &dyn Fn(&mut Log)| {
        let mut log = Log::new();
        change(&mut log);
        describe_findings(&log.verify()).join("; ")
    };
    let edited = findings_after(&|log| {
        let line = log.line((0, 4));
        let at = line.iter().position(|byte| *byte == b'p').unwrap();
        line[at] = b'q';
    });
    assert_eq!(
        edited,
        format!("{file}:5: was changed: its contents do not match its recorded hash")
    );
    let cut = findings_after(&|log| drop(log.files[0].1.remove(4)));
    assert_eq!(
        cut,
        format!("{file}:5: line {} is missing before this line", seq(5))
    );
    let cut = findings_after(&|log| drop(log.files[0].1.drain(4..7)));
    assert_eq!(
        cut,
        format!(
            "{file}:5: lines {} to {} are missing before this line",
            seq(5),
            seq(7)
        )
    );
    let swapped = findings_after(&|log| log.files[0].1.swap(4, 5));
    let fifth = seq(5);
    let sixth = seq(6);
    let expected = format!(
        "{file}:5: line {fifth} is missing before this line; {file}:6: line {fifth} follows line {sixth}: it was inserted, \
         repeated or moved"
    );
    assert_eq!(swapped, expected);
    let repeated = findings_after(&|log| {
        let line = log.line((0, 4)).clone();
        log.files[0].1.insert(7, line);
    });
    assert_eq!(
        repeated,
        format!(
            "{file}:8: line {fifth} follows line {}: it was inserted, repeated or moved",
            seq(7)
        )
    );
    let foreign = findings_after(&|log| log.files[0].1.insert(7, b"hello\n".to_vec()));
    assert_eq!(foreign, format!("{file}:8: is not a line of an audit log"));
    let replaced = findings_after(&|log| {
        let last = chain::parse_line(log.line((0, 3)).trim_ascii_end()).unwrap();
        *log.line((0, 4)) =
            chain::serialize_line(fifth, SystemTime::now(), &record("forged").1, last.hash).0;
    });
    let expected = format!(
        "{file}:6: line {sixth} does not follow the line {fifth} that is before it: one of the two was replaced"
    );
    assert_eq!(replaced, expected);
    let is_main = |path: &Path| {
        path.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("audit-")
    };
    let (files, last) = {
        let files = Log::new().files;
        let main = files.iter().rposition(|(path, _)| is_main(path)).unwrap();
        (main, files[main].1.len())
    };
    let newest = Log::new().verify().newest.unwrap().0;
    let truncated = findings_after(&|log| log.files[files].1.truncate(last - 1));
    assert_eq!(
        truncated,
        format!("line {newest} is missing at the end of the log")
    );
    let beginning = findings_after(&|log| {
        let (path, _) = log.files.remove(0);
        fs::remove_file(path).unwrap();
    });
    assert!(
        beginning.starts_with(&format!("lines {} to ", seq(1)))
            && beginning.ends_with(" are missing at the beginning of the log")
    );
    let chained = findings_after(&|log| {
        log.files[0].1.remove(4);
        log.chain_again((0, 4));
    });
    assert!(chained.contains(": line "), "{chained}");
}

#[test]
fn expected_line_must_exist() {
    let log = Log::new();
    let report = log.verify();
    let newest = report.newest.unwrap();
    let check = |expected| {
        describe_findings(&verify(log.dir.path(), None, Some(expected)).unwrap()).join("; ")
    };
    assert_eq!(check(newest), "");
    assert_eq!(
        check((newest.0 + 1, newest.1)),
        format!(
            "line {}, which is expected, is not in the log",
            newest.0 + 1
        )
    );
    let before = newest.0 - 1;
    let expected = format!("line {before} is not the expected one: it has another hash");
    assert_eq!(check((before, newest.1)), expected);
    assert_eq!(
        check((1, newest.1)),
        "line 1, which is expected, is in a file that was removed"
    );
}

#[test]
fn another_key_does_not_verify_the_log() {
    let log = Log::new();
    log.verify();
    let other = tempfile::tempdir().unwrap();
    open(other.path()).end().unwrap();
    let key =
        PublicKey::parse(&fs::read_to_string(other.path().join(PUBLIC_KEY_FILE_NAME)).unwrap());
    let report = verify(log.dir.path(), key, None).unwrap();
    assert!(
        describe_findings(&report)
            .join("\n")
            .contains("the signature does not match the lines before it"),
        "{report:?}"
    );
    fs::write(log.dir.path().join(PUBLIC_KEY_FILE_NAME), "x").unwrap();
    assert!(
        verify(log.dir.path(), None, None)
            .unwrap_err()
            .to_string()
            .ends_with("is not a public key")
    );
}

/// A way to change a log.
#[derive(Clone, Debug)]
enum Change {
    Byte(Index, Index, u8),
    Cut(Index),
    CutMany(Index, usize),
    Swap(Index, Index),
    Repeat(Index, Index),
    Insert(Index, Vec<u8>),
    Truncate(Index, Index),
    Forge(Index),
    RemoveFile(Index),
    HeadByte(Index, u8),
    RemoveHead,
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    prop_oneof![
        4 => (at(), at(), any::<u8>()).prop_map(|(line, byte, with)| Change::Byte(line, byte, with)),
        2 => at().prop_map(Change::Cut),
        1 => (at(), 1_usize..20).prop_map(|(line, count)| Change::CutMany(line, count)),
        2 => (at(), at()).prop_map(|(one, two)| Change::Swap(one, two)),
        1 => (at(), at()).prop_map(|(line, to)| Change::Repeat(line, to)),
        1 => (at(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(line, what)| Change::Insert(line, what)),
        2 => (at(), at()).prop_map(|(line, byte)| Change::Truncate(line, byte)),
        3 => at().prop_map(Change::Forge),
        1 => at().prop_map(Change::RemoveFile),
        1 => (at(), any::<u8>()).prop_map(|(byte, with)| Change::HeadByte(byte, with)),
        1 => Just(Change::RemoveHead),
    ]
}

impl Change {
    fn make(self, log: &mut Log) {
        let head = log.dir.path().join("head");
        match self {
            Self::Byte(line, byte, with) => {
                let at = log.pick(line);
                let line = log.line(at);
                let byte = byte.index(line.len());
                line[byte] = with;
            }
            Self::Cut(line) => {
                let (file, line) = log.pick(line);
                log.files[file].1.remove(line);
            }
            Self::CutMany(line, count) => {
                let (file, line) = log.pick(line);
                let end = (line + count).min(log.files[file].1.len());
                log.files[file].1.drain(line..end);
            }
            Self::Swap(one, two) => {
                let one = log.pick(one);
                let two = log.pick(two);
                let line = log.line(one).clone();
                let other = std::mem::replace(log.line(two), line);
                *log.line(one) = other;
            }
            Self::Repeat(line, to) => {
                let from = log.pick(line);
                let (file, line) = log.pick(to);
                let repeated = log.line(from).clone();
                log.files[file].1.insert(line, repeated);
            }
            Self::Insert(line, mut what) => {
                let (file, line) = log.pick(line);
                what.push(b'\n');
                log.files[file].1.insert(line, what);
            }
            Self::Truncate(line, byte) => {
                let (file, number) = log.pick(line);
                let line = log.line((file, number));
                let length = line.len() - 1;
                line.truncate(byte.index(length));
                log.files[file].1.truncate(number + 1);
                for (path, _) in log.files.drain(file + 1..) {
                    fs::remove_file(path).unwrap();
                }
            }
            Self::Forge(line) => {
                let at = log.pick(line);
                let mut value: serde_json::Value = serde_json::from_slice(log.line(at)).unwrap();
                value["time"] = "2000-01-01T00:00:00.000000Z".into();
                *log.line(at) = (value.to_string() + "\n").into_bytes();
                log.chain_again(at);
            }
            Self::RemoveFile(file) => {
                let (path, _) = log.files.remove(file.index(log.files.len()));
                fs::remove_file(path).unwrap();
            }
            Self::HeadByte(byte, with) => {
                let mut text = fs::read(&head).unwrap();
                let byte = byte.index(text.len() - 1);
                text[byte] = with;
                fs::write(head, text).unwrap();
            }
            Self::RemoveHead => fs::remove_file(head).unwrap(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_change_is_found(changes in prop::collection::vec(change(), 1..3)) {
        let mut log = Log::new();
        for change in changes.clone() {
            if !log.files.iter().all(|(_, lines)| lines.iter().all(|line| chain::parse_line(line.trim_ascii_end()).is_ok())) {
                break;
            }
            if log.files.iter().any(|(_, lines)| lines.is_empty()) || log.files.is_empty() {
                break;
            }
            if matches!(change, Change::HeadByte(..) | Change::RemoveHead) && !log.dir.path().join("head").exists() {
                break;
            }
            change.make(&mut log);
            // Some changes have no effect, such as replacing a byte or a line with itself.
        }
        let same = LOG.iter().all(|(name, content)| {
            let path = log.dir.path().join(name);
            match log.files.iter().find(|(file, _)| *file == path) {
                Some((_, lines)) => lines.concat() == *content,
                None => fs::read(path).ok().as_ref() == Some(content),
            }
        });
        prop_assert_eq!(log.verify().is_intact(), same);
    }

    #[test]
    fn arbitrary_file_contents_are_not_an_error(bytes in prop::collection::vec(any::<u8>(), 0..2_000), file in any::<Index>()) {
        let log = Log::new();
        log.verify();
        let (name, _) = &LOG[file.index(LOG.len() - 1)];
        fs::write(log.dir.path().join(name), &bytes).unwrap();
        prop_assert!(!verify(log.dir.path(), None, None).unwrap().is_intact());
    }
}
