//! Quotas of mounted folders.

use std::fs;

use serde_json::json;

use super::{FULL, folder_usage, is_full, run_steps, steps};
use crate::support::{Folder, StdioServer, hostile};

/// Returns a folder with the plugin, and `data` mounted for writing with more keys.
fn with_data(more: &str) -> Folder {
    let folder = Folder::with("hostile.wasm", hostile());
    fs::create_dir(folder.sibling_path("data")).unwrap();
    folder.put("hostile.toml", mount("data", more));
    folder
}

fn mount(host: &str, more: &str) -> String {
    format!(
        "[[permissions.mounts]]\nhost = \"../{host}\"\nguest = \"/{host}\"\naccess = \"read-write\"\n{more}\n"
    )
}

#[test]
fn a_folder_without_a_quota_is_unlimited() {
    let mut server = StdioServer::start(&with_data(""));
    run_steps(
        &mut server,
        &[
            ("fill /data/a 3000000", "ok"),
            ("size /data/b 1000000000", "ok"),
        ],
    );
}

#[test]
fn a_quota_bounds_the_lengths_of_all_files_together() {
    let folder = with_data("quota = \"100KiB\"");
    // Files that existed before count, also those in subfolders.
    fs::create_dir(folder.sibling_path("data/old")).unwrap();
    fs::write(folder.sibling_path("data/old/file"), vec![0; 2400]).unwrap();
    let mut server = StdioServer::start(&folder);
    run_steps(
        &mut server,
        &[
            ("fill /data/a 60000", "ok"),
            ("size /data/b 50000", FULL),
            ("length /data/b", "0"),
            ("size /data/b 40000", "ok"),
            ("append /data/b x", FULL),
            ("seek /data/b 40000 x", FULL),
            ("seek /data/b 9000000000000 x", FULL),
            ("write /data/new x", FULL),
            // Operations that do not add bytes are allowed.
            ("seek /data/a 100 instead", "ok"),
            ("size /data/a 60000", "ok"),
            ("rename /data/a /data/c", "ok"),
            ("append /data/b x", FULL),
            // Truncating, removing and replacing files frees space.
            ("write /data/b 1234567890", "ok"),
            ("fill /data/d 39990", "ok"),
            ("append /data/d x", FULL),
            ("rename /data/d /data/c", "ok"),
            ("fill /data/d 60000", "ok"),
            ("append /data/d x", FULL),
            ("remove /data/d", "ok"),
            ("size /data/c 0", "ok"),
            ("remove-all /data/old", "ok"),
            ("size /data/c 102390", "ok"),
            ("append /data/c x", FULL),
        ],
    );
    assert_eq!(folder_usage(&folder.sibling_path("data")).0, 100 << 10);
    let expected = "The tool needed more than 100.0 KiB in a mounted folder (to allow more, raise permissions.mounts.quota).";
    let refused = server.failure("write_file", json!({"path": "/data/e", "text": "x"}));
    assert_eq!(refused, ("limit".to_owned(), expected.to_owned()));
    // Reading still works.
    assert_eq!(
        server.text("read_file", json!({"path": "/data/b"})),
        "1234567890"
    );
}

#[test]
fn a_file_without_a_name_counts_until_it_is_closed() {
    let mut server = StdioServer::start(&with_data("quota = \"100KiB\""));
    run_steps(
        &mut server,
        &[
            ("open h /data/a", "ok"),
            ("put h 60000", "ok"),
            ("remove /data/a", "ok"),
            ("fill /data/b 60000", FULL),
            ("remove /data/b", "ok"),
            ("put h 40000", "ok"),
            ("put h 10000", FULL),
            ("close h", "ok"),
            ("fill /data/b 100000", "ok"),
            // Replaced while it is open.
            ("open h /data/b", "ok"),
            ("write /data/c 1", "ok"),
            ("rename /data/c /data/b", "ok"),
            ("fill /data/c 60000", FULL),
            ("remove /data/c", "ok"),
        ],
    );
    // Its handle was not closed, and was released with the call.
    run_steps(&mut server, &[("fill /data/c 60000", "ok")]);
}

#[test]
fn the_names_of_a_file_count_once_by_length_and_each_as_an_entry() {
    let mut server = StdioServer::start(&with_data("quota = \"100KiB\"\nentries = 3"));
    run_steps(
        &mut server,
        &[
            ("fill /data/a 60000", "ok"),
            ("link /data/a /data/b", "ok"),
            ("rename /data/a /data/b", "ok"),
            ("remove /data/a", "ok"),
            // The file has another name, so this frees no space.
            ("fill /data/c 60000", FULL),
            ("link /data/b /data/d", "ok"),
            ("link /data/b /data/e", FULL),
            ("remove /data/b", "ok"),
            ("remove /data/d", "ok"),
            ("fill /data/c 100000", "ok"),
        ],
    );
}

#[test]
fn the_entries_quota_counts_files_folders_and_links() {
    let folder = with_data("entries = 4");
    let mut server = StdioServer::start(&folder);
    run_steps(
        &mut server,
        &[
            ("write /data/a 1", "ok"),
            ("folder /data/b", "ok"),
            ("symlink a /data/c", "ok"),
            ("folder /data/b/d", "ok"),
            ("write /data/e 1", FULL),
            ("folder /data/e", FULL),
            ("symlink a /data/e", FULL),
            ("link /data/a /data/e", FULL),
            // For an existing entry, the error says so, even in a full folder.
            ("folder /data/b", "AlreadyExists"),
            ("folders /data/b/d", "ok"),
            ("symlink a /data/c", "AlreadyExists"),
            ("write /data/a 2", "ok"),
            ("write /data/c 3", "ok"),
            ("rename /data/a /data/b/a", "ok"),
            ("write /data/e 1", FULL),
            ("remove /data/c", "ok"),
            ("write /data/e 1", "ok"),
            ("remove-folder /data/b/d", "ok"),
            ("folder /data/f", "ok"),
            ("folder /data/b/d", FULL),
            ("rename /data/e /data/b/a", "ok"),
            ("folder /data/b/d", "ok"),
            // An empty folder is replaced by another.
            ("rename /data/f /data/b/d", "ok"),
            ("write /data/e 1", "ok"),
            ("write /data/g 1", FULL),
        ],
    );
    assert_eq!(folder_usage(&folder.sibling_path("data")).1, 4);
    let (kind, text) = server.failure("write_file", json!({"path": "/data/g", "text": ""}));
    let expected = "The tool needed more than 4 files and folders in a mounted folder (to allow more, raise \
        permissions.mounts.entries).";
    assert_eq!((kind.as_str(), text.as_str()), ("limit", expected));
}

#[test]
fn concurrent_calls_share_a_quota() {
    let folder = with_data("quota = \"1MiB\"\nentries = 40");
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("file_steps");
    // Each call would use a third of the quota, in its own files and in a file that all calls write
    // to.
    let calls: Vec<u64> = (0..8)
        .map(|n| {
            let own = format!("fill /data/own-{n} 300000");
            let entries: Vec<String> = (0..10).map(|m| format!("folder /data/{n}-{m}")).collect();
            let mut all = vec![
                "write /data/shared 1",
                own.as_str(),
                "extend /data/shared 50000",
            ];
            all.extend(entries.iter().map(String::as_str));
            server.start_call("file_steps", steps(&all))
        })
        .collect();
    let said: Vec<String> = calls
        .into_iter()
        .map(|call| crate::support::result_text(&server.finish_call(call)))
        .collect();
    let (bytes, entries) = folder_usage(&folder.sibling_path("data"));
    assert!(bytes <= 1 << 20, "{bytes} bytes");
    assert_eq!(entries, 40);
    assert!(
        said.iter().any(|said| said.lines().any(is_full)),
        "{said:?}"
    );
    // The recorded usage is exact: precisely the remaining bytes still fit.
    let rest = (1 << 20) - bytes;
    let fits = format!("extend /data/shared {rest}");
    let over = "append /data/shared x";
    run_steps(&mut server, &[(fits.as_str(), "ok"), (over, FULL)]);
    assert_eq!(folder_usage(&folder.sibling_path("data")).0, 1 << 20);
}

#[test]
fn mounts_and_plugins_share_the_usage_of_a_folder() {
    let folder = with_data("quota = \"100KiB\"");
    let two = mount("data", "quota = \"50KiB\"").replace("\"/data\"", "\"/again\"");
    folder.put("other.wasm", hostile());
    folder.put(
        "other.toml",
        format!("prefix = \"other\"\n{}{two}", mount("data", "")),
    );
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("other_file_steps");
    run_steps(&mut server, &[("fill /data/a 40000", "ok")]);
    let said = server.text(
        "other_file_steps",
        steps(&[
            "fill /again/b 20000",
            "remove /again/b",
            "fill /data/b 62400",
        ]),
    );
    let lines: Vec<&str> = said.lines().collect();
    assert!(is_full(lines[0]) && lines[1..] == ["ok", "ok"], "{said}");
    run_steps(
        &mut server,
        &[
            ("append /data/a x", FULL),
            ("remove /data/b", "ok"),
            ("append /data/a x", "ok"),
        ],
    );
}

#[test]
fn nothing_moves_between_folders_with_different_quotas() {
    let folder = with_data("quota = \"10KiB\"");
    for (name, more) in [("free", ""), ("small", "entries = 1")] {
        fs::create_dir(folder.sibling_path(name)).unwrap();
        let grant = fs::read_to_string(folder.plugin_path("hostile.toml")).unwrap();
        folder.put("hostile.toml", grant + &mount(name, more));
    }
    let mut server = StdioServer::start(&folder);
    run_steps(
        &mut server,
        &[
            ("fill /free/a 20000", "ok"),
            ("rename /free/a /data/a", "CrossesDevices"),
            ("link /free/a /data/a", "CrossesDevices"),
            ("write /data/b 1", "ok"),
            ("rename /data/b /small/b", "CrossesDevices"),
            ("rename /data/b /free/b", "CrossesDevices"),
            ("rename /free/a /free/b", "ok"),
        ],
    );
    assert_eq!(folder_usage(&folder.sibling_path("data")), (1, 1));
}

#[test]
fn space_that_another_process_freed_is_noticed() {
    let folder = with_data("quota = \"10KiB\"\nentries = 2");
    let mut server = StdioServer::start(&folder);
    run_steps(
        &mut server,
        &[("fill /data/a 10240", "ok"), ("append /data/a x", FULL)],
    );
    fs::remove_file(folder.sibling_path("data/a")).unwrap();
    server.wait_until("the folder is counted again", |server| {
        server.text("file_steps", steps(&["append /data/b x"])) == "ok"
    });
}
