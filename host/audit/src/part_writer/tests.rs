//! Tests of `part_writer`.

use super::previous_end::find_last_line;
use super::*;
use crate::plugin_record::PluginRecord;
use crate::verify::{VerifyReport, verify};

/// Creates an event with this text.
pub(crate) fn record(text: impl Into<String>) -> TimedEvent {
    let plugin = PluginRecord {
        plugin: "p".into(),
        ..PluginRecord::default()
    };
    (
        SystemTime::now(),
        AuditEvent::Refused {
            plugin,
            reason: text.into(),
        },
    )
}

/// Opens a log with small files.
pub(crate) fn open_both(path: &Path) -> [PartWriter; 2] {
    PartWriter::open(path, 16 << 10, [3, 3]).unwrap()
}

/// Opens the main part of a log with small files. Ends the other part; the lock is held by the
/// main part.
pub(crate) fn open(path: &Path) -> PartWriter {
    let [main, mut rejected] = open_both(path);
    rejected.end().unwrap();
    main
}

/// Verifies an intact log and returns the report.
fn intact(path: &Path) -> VerifyReport {
    let report = verify(path, None, None).unwrap();
    assert_eq!(report.findings, [], "{report:?}");
    report
}

fn notices(report: &VerifyReport) -> Vec<String> {
    report.notices.iter().map(ToString::to_string).collect()
}

#[test]
fn chain_continues_across_servers_and_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut lines = 0;
    for _ in 0..3 {
        let mut writer = open(dir.path());
        for n in 0..40 {
            writer
                .append(&[record(format!("{n}")), record("x".repeat(100))])
                .unwrap();
            lines += 2;
        }
        writer.checkpoint().unwrap();
        writer.checkpoint().unwrap();
        writer.end().unwrap();
    }
    let report = intact(dir.path());
    // The file lines of the main part and the one of the other part.
    assert_eq!((report.files, notices(&report)), (3 + 1, vec![]));
    // Three starts and stops, checkpoints, and the first and last lines of files.
    let (newest, _) = report.newest.unwrap();
    assert!(
        newest > lines + 3 * 3 && report.lines < newest,
        "{report:?}"
    );
    for file in list_files(dir.path(), LogPart::Main).unwrap() {
        assert!(
            dir.path()
                .join(file_name(LogPart::Main, file))
                .metadata()
                .unwrap()
                .len()
                <= 16 << 10
        );
    }
}

#[test]
fn a_server_that_is_killed_leaves_a_log_that_another_one_continues() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(dir.path());
    writer.append(&[record("one")]).unwrap();
    // Written but not signed.
    writer.stage(SystemTime::now(), &record("two").1);
    writer.flush().unwrap();
    // An incomplete line.
    writer.file.write_all(b"{\"seq\":4,\"ti").unwrap();
    drop(writer);
    let file = file_name(LogPart::Main, 1);
    let report = intact(dir.path());
    let torn = format!(
        "{file}:4: is torn: the server was killed while it wrote this line, or is writing it"
    );
    assert_eq!(
        notices(&report),
        [torn, "the last 1 line is not signed yet".to_owned()]
    );
    open(dir.path()).end().unwrap();
    let report = intact(dir.path());
    let expected_notices = [
        format!("{file}:4: is torn: the server was killed while it wrote this line"),
        format!("{file}:5: 1 line before this one was not signed: the server was killed"),
    ];
    assert_eq!(notices(&report), expected_notices);
    assert_eq!(
        report.newest.unwrap().0,
        6,
        "two lines, the start before and after, the end and its signature"
    );
}

#[test]
fn bytes_at_the_end_that_no_server_left_are_found() {
    type Tail = fn(u64, &str) -> String;
    let forged = "\"event\":\"approval\",\"caller\":\"token:admin\",\"decision\":\"approved\"";
    let cases: [(bool, bool, Tail); 7] = [
        (false, false, |seq, says| {
            format!("{{\"seq\":{seq},\"time\":\"2026-11-28T09:40:00.000000Z\",{says}}}")
        }),
        (true, false, |seq, says| {
            format!("{{\"seq\":{seq},\"time\":\"2026-11-28T09:40:00.000000Z\",{says}}}")
        }),
        // What is cut off in a log that continues can be a line of the server.
        (false, true, |seq, says| {
            format!("{{\"seq\":{seq},\"time\":\"2026-11-28T09:40:00.000000Z\",{says}")
        }),
        (true, false, |seq, says| {
            format!("{{\"seq\":{seq},\"time\":\"2026-11-28T09:40:00.000000Z\",{says}")
        }),
        (true, true, |seq, _| {
            format!("{{\"seq\":{seq},\"time\":\"2026-11-28T09:40:00.000000Z\",\"event\":\"sta")
        }),
        (false, false, |_, _| "\0\0\0".to_owned()),
        (false, false, |seq, _| format!("{{\"seq\":{}", seq + 1)),
    ];
    for (stops, is_intact, tail) in cases {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = open(dir.path());
        writer.append(&[record("one")]).unwrap();
        if stops {
            writer.end().unwrap();
        }
        let next = writer.written_end.next_seq;
        let tail = tail(next, forged);
        writer.file.write_all(tail.as_bytes()).unwrap();
        drop(writer);
        for round in 0..2 {
            let report = verify(dir.path(), None, None).unwrap();
            let found: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
            let file = file_name(LogPart::Main, 1);
            let expected = format!("{file}:{next}: is not a line of an audit log");
            let expected = if is_intact { vec![] } else { vec![expected] };
            assert_eq!(found, expected, "{tail} {round}");
            open(dir.path()).end().unwrap();
        }
    }
}

#[test]
fn last_line_without_a_line_end_is_valid() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(dir.path());
    writer.append(&[record("one")]).unwrap();
    let length = writer.written_end.length;
    writer.file.set_len(length - 1).unwrap();
    drop(writer);
    assert_eq!(notices(&intact(dir.path())), [""; 0]);
    open(dir.path()).end().unwrap();
    assert_eq!(notices(&intact(dir.path())), [""; 0]);
}

#[test]
fn full_disk_leaves_no_partial_line() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    journal.append(&[record("one")]).unwrap();
    let good = journal.redirect(File::options().write(true).open("/dev/full").unwrap());
    for _ in 0..3 {
        let (count, error) = journal
            .append(&[record("two"), record("three")])
            .unwrap_err();
        assert_eq!(count, 2, "{error}");
    }
    journal.redirect(good);
    // As if a part of the line had been written.
    (&journal.file).write_all(b"{\"seq\":3,").unwrap();
    journal.append(&[record("four")]).unwrap();
    journal.end().unwrap();
    assert_eq!(intact(dir.path()).newest.unwrap().0, 5);
}

#[test]
fn a_new_file_that_cannot_be_signed_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    journal.append(&[record("one")]).unwrap();
    let good = journal.head.redirect(File::open("/dev/null").unwrap());
    for _ in 0..3 {
        journal.rotate().unwrap_err();
        assert_eq!(list_files(dir.path(), LogPart::Main).unwrap(), [1]);
    }
    journal.head.redirect(good);
    journal.append(&[record("two")]).unwrap();
    journal.rotate().unwrap();
    journal.append(&[record("three")]).unwrap();
    journal.end().unwrap();
    assert_eq!(notices(&intact(dir.path())), [""; 0]);
}

#[test]
fn file_deleted_during_writing_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    journal.append(&[record("one")]).unwrap();
    journal.replace_if_deleted().unwrap();
    std::fs::remove_file(dir.path().join(file_name(LogPart::Main, 1))).unwrap();
    journal.replace_if_deleted().unwrap();
    journal.append(&[record("two")]).unwrap();
    journal.end().unwrap();
    let report = verify(dir.path(), None, None).unwrap();
    let found: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        ["lines 1 to 2 are missing at the beginning of the log"]
    );
}

#[test]
fn changes_before_a_start_are_still_found() {
    type Change = fn(&Path);
    let log = |dir: &Path| dir.join(file_name(LogPart::Main, 1));
    let changes: [(Change, &str); 5] = [
        (
            |dir| {
                let text = std::fs::read_to_string(dir.join(file_name(LogPart::Main, 1))).unwrap();
                let cut: Vec<&str> = text.lines().take(3).collect();
                std::fs::write(dir.join(file_name(LogPart::Main, 1)), cut.join("\n") + "\n")
                    .unwrap();
            },
            ":4: 3 lines before this one were signed, and were missing when the server started",
        ),
        (
            |dir| std::fs::remove_file(dir.join("head")).unwrap(),
            ":7: when the server started, it found the log changed: its head is missing",
        ),
        (
            |dir| std::fs::write(dir.join("head"), "{}").unwrap(),
            ":7: when the server started, it found the log changed: the signature of its head does not match its key",
        ),
        (
            |dir| {
                let text = std::fs::read(dir.join(file_name(LogPart::Main, 1))).unwrap();
                let last = find_last_line(&text).0.unwrap();
                let (line, _) = chain::serialize_line(
                    last.seq + 1,
                    SystemTime::now(),
                    &record("forged").1,
                    last.hash,
                );
                std::fs::write(dir.join(file_name(LogPart::Main, 1)), [text, line].concat())
                    .unwrap();
            },
            ":8: when the server started, it found the log changed: lines were added after the server had ended",
        ),
        (
            |dir| {
                let text = std::fs::read_to_string(dir.join(file_name(LogPart::Main, 1))).unwrap();
                let kept: Vec<&str> = text.lines().take(5).collect();
                let before = chain::parse_line(kept[4].as_bytes()).unwrap();
                let (line, _) =
                    chain::serialize_line(6, SystemTime::now(), &record("forged").1, before.hash);
                let line = String::from_utf8(line).unwrap();
                std::fs::write(
                    dir.join(file_name(LogPart::Main, 1)),
                    kept.join("\n") + "\n" + &line,
                )
                .unwrap();
            },
            ":7: when the server started, it found the log changed: the newest signed line was replaced",
        ),
    ];
    for (change, said) in changes {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = open(dir.path());
        journal
            .append(&[record("one"), record("two"), record("three")])
            .unwrap();
        journal.end().unwrap();
        drop(journal);
        change(dir.path());
        assert!(
            !verify(dir.path(), None, None).unwrap().is_intact(),
            "{said}"
        );
        open(dir.path()).end().unwrap();
        let report = verify(dir.path(), None, None).unwrap();
        let found: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
        assert_eq!(found, [format!("{}{said}", file_name(LogPart::Main, 1))]);
        assert!(log(dir.path()).exists());
    }
}

/// Deletes all files whose names `is_removed` accepts.
fn remove(dir: &Path, is_removed: fn(&str) -> bool) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if is_removed(entry.file_name().to_str().unwrap()) {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}

#[test]
fn a_log_of_which_only_the_key_is_left_stays_changed() {
    type Evidence = fn(&str) -> bool;
    let changes: [(Evidence, &str); 4] = [
        (
            |name| name != "key" && name != "public-key",
            "its files and its head are missing, but its key exists",
        ),
        (
            |name| name != "key",
            "its files and its head are missing, but its key exists",
        ),
        (
            |name| name.starts_with("audit-") || name == "head",
            "its files are missing, but those with rejections exist",
        ),
        // Without the key, its head shows that there was a log.
        (
            |name| name != "head",
            "the signature of its head does not match its key",
        ),
    ];
    for (is_removed, why) in changes {
        let dir = tempfile::tempdir().unwrap();
        open(dir.path()).end().unwrap();
        remove(dir.path(), is_removed);
        for _ in 0..2 {
            let mut journal = open(dir.path());
            journal.append(&[record("one")]).unwrap();
            journal.end().unwrap();
        }
        let report = verify(dir.path(), None, None).unwrap();
        let found: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
        let file = file_name(LogPart::Main, 1);
        assert_eq!(
            found,
            [format!(
                "{file}:1: when the server started, it found the log changed: {why}"
            )]
        );
    }
}

#[test]
fn a_first_server_that_is_killed_at_any_point_of_its_start_leaves_an_unchanged_log() {
    type Change<'a> = &'a dyn Fn(&Path);
    let heads = ["head", "rejected-head"];
    let new = |dir: &Path| {
        let folder = LogFolder::open(dir).unwrap();
        LogKey::load_or_create(&folder, true).unwrap();
        heads.map(|name| std::fs::read(dir.join(name)).unwrap())
    };
    let start = |dir: &Path| {
        let empty = new(dir);
        drop(PartWriter::open(dir, 16 << 10, [3, 3]).unwrap());
        empty
    };
    let states: [(Change<'_>, usize); 6] = [
        // Before the key, with whole and with empty heads.
        (
            &|dir| {
                new(dir);
                remove(dir, |name| name.ends_with("key"));
            },
            0,
        ),
        (
            &|dir| {
                std::fs::write(dir.join("head"), "").unwrap();
            },
            0,
        ),
        // After the key.
        (
            &|dir| {
                new(dir);
            },
            0,
        ),
        // After the first line of the part with rejections, and after its head.
        (
            &|dir| {
                let [head, rejected] = start(dir);
                remove(dir, |name| name.starts_with("audit-"));
                std::fs::write(dir.join("head"), head).unwrap();
                std::fs::write(dir.join("rejected-head"), rejected).unwrap();
            },
            1,
        ),
        (
            &|dir| {
                let [head, _] = start(dir);
                remove(dir, |name| name.starts_with("audit-"));
                std::fs::write(dir.join("head"), head).unwrap();
            },
            0,
        ),
        // After the first line of the main part.
        (
            &|dir| {
                let [head, _] = start(dir);
                std::fs::write(dir.join("head"), head).unwrap();
            },
            1,
        ),
    ];
    for (change, unsigned) in states {
        let dir = tempfile::tempdir().unwrap();
        change(dir.path());
        if LogKey::exists(&LogFolder::open(dir.path()).unwrap()) {
            std::fs::write(dir.path().join("public-key"), public_key(dir.path())).unwrap();
            intact(dir.path());
        }
        open(dir.path()).end().unwrap();
        let report = intact(dir.path());
        let said = notices(&report);
        assert_eq!(said.len(), unsigned, "{said:?}");
        assert!(
            said.iter()
                .all(|notice| notice.ends_with("was not signed: the server was killed")),
            "{said:?}"
        );
    }
}

/// Returns the public key of a log as text.
fn public_key(dir: &Path) -> String {
    let folder = LogFolder::open(dir).unwrap();
    let key = LogKey::load_or_create(&folder, false).unwrap();
    key.public_key().to_string()
}

#[test]
fn files_of_another_kind_are_not_continued() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).end().unwrap();
    std::fs::write(
        dir.path().join(file_name(LogPart::Main, 9)),
        "what is this?\n".repeat(9),
    )
    .unwrap();
    std::fs::write(
        dir.path().join(file_name(LogPart::Main, 10)),
        "what is this?\n".repeat(9),
    )
    .unwrap();
    let error = PartWriter::open(dir.path(), 1 << 20, [2, 2])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("cannot be continued after its last line"),
        "{error}"
    );
}
