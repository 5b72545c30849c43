//! Attempts to leave a mounted folder: none reads or changes anything outside the folder.

use super::put;
use super::run::Run;
use crate::files::escapes::{inside, is_refused, outside, unchanged};
use crate::support::{Folder, hostile, result_text};

/// The mount of every attempt.
const MOUNT: &str =
    "[[permissions.mounts]]\nhost = \"../data\"\nguest = \"/data\"\naccess = \"read-write\"\n";

/// Creates the folder `data` with links that others put there, next to files that no call may read.
fn with_links(folder: &Folder) {
    outside(folder);
    inside(folder);
    put(folder, hostile());
}

fn nothing_left(run: &mut Run) {
    let said = result_text(&run.result);
    assert!(is_refused(&said), "{said}");
    unchanged(&run.folder);
}

cases! {
    goes_up: HostCall, "goes up", with_links
        => tool("file_steps", r#"{"steps": [["read", "/data/../secret"], ["write", "/data/../secret", "x"], ["append", "/data/../secret", "x"]]}"#)
        => grant(MOUNT) => answers("PermissionDenied: …\nPermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    goes_up_twice_from_a_folder: HostCall, "goes up twice, from a folder", with_links
        => tool("file_steps", r#"{"steps": [["folder", "/data/a"], ["read", "/data/a/../../secret"], ["write", "/data/a/../../new", "x"]]}"#)
        => grant(MOUNT) => answers("ok\nPermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    goes_up_from_a_folder_that_does_not_exist: HostCall, "goes up from a folder that does not exist", with_links
        => tool("file_steps", r#"{"steps": [["read", "/data/none/../../secret"], ["write", "/data/none/../../new", "x"]]}"#)
        => grant(MOUNT) => answers("NotFound: …\nNotFound: …") => also(nothing_left);

    goes_up_past_the_root: HostCall, "goes up past the root", with_links
        => tool("file_steps", r#"{"steps": [["read", "/data/../../../../../../../../etc/passwd"], ["list", "/data/../.."]]}"#)
        => grant(MOUNT) => answers("PermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    uses_no_mount: HostCall, "uses no mount", with_links
        => tool("file_steps", r#"{"steps": [["read", "secret"], ["read", "../secret"], ["write", "new", "x"], ["list", "."], ["list", "/"], ["list", ".."]]}"#)
        => grant(MOUNT) => answers("NotFound: …\nNotFound: …\nNotFound: …\nNotFound: …\nNotFound: …\nNotFound: …") => also(nothing_left);

    names_files_of_the_system: HostCall, "names files of the system", with_links
        => tool("file_steps", r#"{"steps": [["read", "/etc/passwd"], ["read", "/proc/self/environ"], ["read", "/proc/1/root/etc/passwd"]]}"#)
        => grant(MOUNT) => answers("NotFound: …\nNotFound: …\nNotFound: …") => also(nothing_left);

    names_an_absolute_path_below_its_own: HostCall, "names an absolute path below its own", with_links
        => tool("file_steps", r#"{"steps": [["read", "/data//etc/passwd"], ["read", "/data/./../secret"]]}"#)
        => grant(MOUNT) => answers("NotFound: …\nPermissionDenied: …") => also(nothing_left);

    lists_what_is_above: HostCall, "lists folders above", with_links
        => tool("file_steps", r#"{"steps": [["list", "/data/.."], ["list", "/data/../"], ["list", "/data/../outside"], ["list", "/data/../outside/."]]}"#)
        => grant(MOUNT) => answers("PermissionDenied: …\nPermissionDenied: …\nPermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    makes_folders_above: HostCall, "makes folders above", with_links
        => tool("file_steps", r#"{"steps": [["folder", "/data/../new"], ["folders", "/data/../new/deep"], ["folder", "/data/../outside/new"]]}"#)
        => grant(MOUNT) => answers("PermissionDenied: …\nPermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    removes_what_is_above: HostCall, "removes files and folders above", with_links
        => tool("file_steps", r#"{"steps": [["remove", "/data/../secret"], ["remove-all", "/data/../outside"], ["remove-folder", "/data/.."]]}"#)
        => grant(MOUNT) => answers("PermissionDenied: …\nPermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    moves_files_out: HostCall, "moves files out", with_links
        => tool("file_steps", r#"{"steps": [["write", "/data/a", "1"], ["rename", "/data/a", "/data/../new"], ["rename", "/data/a", "/data/../outside/file"]]}"#)
        => grant(MOUNT) => answers("ok\nPermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    moves_files_in: HostCall, "moves files in", with_links
        => tool("file_steps", r#"{"steps": [["rename", "/data/../secret", "/data/a"], ["read", "/data/a"], ["rename", "/data/../outside", "/data/b"], ["list", "/data/b"]]}"#)
        => grant(MOUNT) => answers("PermissionDenied: …\nNotFound: …\nPermissionDenied: …\nNotFound: …") => also(nothing_left);

    moves_its_own_folder: HostCall, "moves its own folder", with_links
        => tool("file_steps", r#"{"steps": [["rename", "/data", "/data/a"], ["rename", "/data/.", "/data/../new"], ["rename", "/data/../data", "/data/../new"]]}"#)
        => grant(MOUNT) => answers("ResourceBusy: …\nPermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    links_files_in: HostCall, "links files in", with_links
        => tool("file_steps", r#"{"steps": [["link", "/data/../secret", "/data/a"], ["read", "/data/a"], ["link", "/data/absolute", "/data/b"], ["read", "/data/b"]]}"#)
        => grant(MOUNT) => answers("PermissionDenied: …\nNotFound: …\nok\nPermissionDenied: …") => also(nothing_left);

    links_files_out: HostCall, "links files out", with_links
        => tool("file_steps", r#"{"steps": [["write", "/data/a", "1"], ["link", "/data/a", "/data/../new"], ["link", "/data/a", "/data/../outside/new"]]}"#)
        => grant(MOUNT) => answers("ok\nPermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    makes_an_absolute_link: HostCall, "makes an absolute link", with_links
        => tool("file_steps", r#"{"steps": [["symlink", "/etc/passwd", "/data/a"], ["read", "/data/a"], ["append", "/data/a", "x"]]}"#)
        => grant(MOUNT) => answers("PermissionDenied: …\nNotFound: …\nok") => also(nothing_left);

    makes_a_link_upwards: HostCall, "makes a link upwards", with_links
        => tool("file_steps", r#"{"steps": [["symlink", "../secret", "/data/a"], ["read", "/data/a"], ["write", "/data/a", "x"], ["size", "/data/a", "0"]]}"#)
        => grant(MOUNT) => answers("ok\nPermissionDenied: …\nPermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    makes_a_link_to_what_does_not_exist_yet: HostCall, "makes a link to a file that does not exist yet", with_links
        => tool("file_steps", r#"{"steps": [["symlink", "../new", "/data/a"], ["write", "/data/a", "x"], ["open", "h", "/data/a"], ["put", "h", "10"], ["folders", "/data/a/b"]]}"#)
        => grant(MOUNT) => answers("ok\nPermissionDenied: …\nPermissionDenied: …\nNotFound: …\nPermissionDenied: …") => also(nothing_left);

    makes_a_link_to_a_folder_above: HostCall, "makes a link to a folder above", with_links
        => tool("file_steps", r#"{"steps": [["symlink", "..", "/data/a"], ["read", "/data/a/secret"], ["list", "/data/a"], ["write", "/data/a/new", "x"], ["remove", "/data/a/secret"]]}"#)
        => grant(MOUNT) => answers("ok\nPermissionDenied: …\nPermissionDenied: …\nPermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    makes_a_chain_of_links: HostCall, "makes a chain of links", with_links
        => tool("file_steps", r#"{"steps": [["symlink", "b", "/data/a"], ["symlink", "c", "/data/b"], ["symlink", "../secret", "/data/c"], ["read", "/data/a"], ["write", "/data/a", "x"]]}"#)
        => grant(MOUNT) => answers("ok\nok\nok\nPermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    makes_links_that_go_up_step_by_step: HostCall, "makes links that go up step by step", with_links
        => tool("file_steps", r#"{"steps": [["folders", "/data/a/b"], ["symlink", "..", "/data/a/b/up"], ["symlink", "b/up/..", "/data/a/over"], ["read", "/data/a/over/../secret"]]}"#)
        => grant(MOUNT) => answers("ok\nok\nok\nPermissionDenied: …") => also(nothing_left);

    makes_a_link_with_a_trailing_slash: HostCall, "makes a link with a trailing slash", with_links
        => tool("file_steps", r#"{"steps": [["symlink", "../outside/", "/data/a"], ["list", "/data/a/"], ["write", "/data/a/new", "x"]]}"#)
        => grant(MOUNT) => answers("ok\nPermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    follows_links_of_others: HostCall, "follows existing links", with_links
        => tool("file_steps", r#"{"steps": [["read", "/data/relative"], ["read", "/data/absolute"], ["write", "/data/absolute", "x"]]}"#)
        => grant(MOUNT) => answers("PermissionDenied: …\nPermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    follows_folders_of_others: HostCall, "follows existing links to folders", with_links
        => tool("file_steps", r#"{"steps": [["list", "/data/folder"], ["read", "/data/folder/file"], ["write", "/data/folder/new", "x"], ["remove-all", "/data/folder"]]}"#)
        => grant(MOUNT) => answers("PermissionDenied: …\nPermissionDenied: …\nPermissionDenied: …\nok") => also(nothing_left);

    moves_a_link_of_others_to_where_it_fits: HostCall, "moves an existing link to a folder where its target is inside the mount", with_links
        => tool("file_steps", r#"{"steps": [["folder", "/data/a"], ["rename", "/data/relative", "/data/a/l"], ["read", "/data/a/l"]]}"#)
        => grant(MOUNT) => answers("ok\nok\nNotFound: …") => also(nothing_left);

    replaces_through_a_link: HostCall, "replaces through a link", with_links
        => tool("file_steps", r#"{"steps": [["write", "/data/a", "1"], ["rename", "/data/a", "/data/folder/file"], ["rename", "/data/folder/file", "/data/b"], ["read", "/data/b"]]}"#)
        => grant(MOUNT) => answers("ok\nPermissionDenied: …\nPermissionDenied: …\nNotFound: …") => also(nothing_left);

    links_through_a_link: HostCall, "links through a link", with_links
        => tool("file_steps", r#"{"steps": [["link", "/data/folder/file", "/data/a"], ["read", "/data/a"], ["write", "/data/a", "x"]]}"#)
        => grant(MOUNT) => answers("PermissionDenied: …\nNotFound: …\nok") => also(nothing_left);

    follows_a_link_to_the_process: HostCall, "follows a link to the process", with_links
        => tool("file_steps", r#"{"steps": [["read", "/data/process/environ"], ["read", "/data/process/root/etc/passwd"], ["list", "/data/process/fd"]]}"#)
        => grant(MOUNT) => answers("PermissionDenied: …\nPermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    opens_a_fifo: HostCall, "opens a FIFO", with_links
        => tool("file_steps", r#"{"steps": [["read", "/data/fifo"], ["append", "/data/fifo", "x"], ["open", "h", "/data/fifo"]]}"#)
        => grant(MOUNT) => answers("PermissionDenied: …\nPermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    opens_a_device_through_a_link: HostCall, "opens a device through a link", with_links
        => tool("file_steps", r#"{"steps": [["read", "/data/device"], ["append", "/data/device", "x"]]}"#)
        => grant(MOUNT) => answers("PermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    moves_the_folder_that_a_path_is_in: HostCall, "moves the folder that a path is in", with_links
        => tool("file_steps", r#"{"steps": [["folders", "/data/a/b/c"], ["open", "h", "/data/a/b/c/f"], ["rename", "/data/a/b", "/data/b"], ["put", "h", "10"], ["read", "/data/b/c/../../../secret"]]}"#)
        => grant(MOUNT) => answers("ok\nok\nok\nok\nPermissionDenied: …") => also(nothing_left);

    replaces_a_folder_on_the_way_by_a_link: HostCall, "replaces a folder of the path by a link", with_links
        => tool("file_steps", r#"{"steps": [["folder", "/data/a"], ["write", "/data/a/secret", "1"], ["rename", "/data/a", "/data/b"], ["symlink", "..", "/data/a"], ["read", "/data/a/secret"], ["write", "/data/a/secret", "x"]]}"#)
        => grant(MOUNT) => answers("ok\nok\nok\nok\nPermissionDenied: …\nPermissionDenied: …") => also(nothing_left);

    uses_backslashes_and_dots: HostCall, "uses backslashes and dots", with_links
        => tool("file_steps", r#"{"steps": [["read", "/data/..\\secret"], ["read", "/data/..."], ["read", "/data/..../secret"], ["read", "/data/%2e%2e/secret"]]}"#)
        => grant(MOUNT) => answers("NotFound: …\nNotFound: …\nNotFound: …\nNotFound: …") => also(nothing_left);

    follows_a_link_to_itself: HostCall, "follows a link to itself", with_links
        => tool("file_steps", r#"{"steps": [["symlink", "a", "/data/a"], ["read", "/data/a"], ["write", "/data/a", "x"], ["list", "/data/a/a"]]}"#)
        => grant(MOUNT) => answers("ok\nFilesystemLoop: …\nFilesystemLoop: …\nFilesystemLoop: …") => also(nothing_left);
}
