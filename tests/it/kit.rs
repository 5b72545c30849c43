//! What the test kit assumes about the server.

use toolbay_testkit::guests::{example, guest, sample};
use toolbay_testkit::workspace::Workspace;
use toolbay_testkit::{Client, revision, workspace};

use crate::support::Folder;

#[test]
fn the_newest_session_is_the_one_that_tests_begin() {
    let mut client = Client::start(&Folder::new()).unwrap();
    assert_eq!(client.with_sessions().unwrap().pop().unwrap(), revision::SESSION);
    // The server continues the session after a stateless request.
    let hello = client.initialize(revision::SESSION).unwrap().what;
    assert_eq!(hello["protocolVersion"], revision::SESSION);
    let (_, status) = client.end().unwrap();
    assert!(status.success());
}

#[test]
fn plugins_name_no_folder_of_the_machine_that_built_them() {
    let home = std::env::home_dir().unwrap();
    let cargo = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), Into::into);
    let folders = [workspace::root().to_owned(), cargo].map(|folder| folder.to_str().unwrap().to_owned());
    let all = Workspace::load().unwrap();
    let samples = all.plugins().map(|plugin| (plugin.id(), sample(&plugin.id()).unwrap()));
    let examples = all.examples().map(|plugin| (plugin.id(), example(&plugin.id()).unwrap()));
    let guests = all.guests().map(|plugin| (plugin.id(), guest(&plugin.id()).unwrap()));
    let mut mapped = 0;
    for (id, bytes) in samples.chain(examples).chain(guests) {
        let text = String::from_utf8_lossy(&bytes);
        for folder in &folders {
            assert!(!text.contains(folder), "{id} names {folder}");
        }
        mapped += usize::from(text.contains("cargo/registry/"));
    }
    assert!(mapped > 0, "no plugin names any source: the test looks for the wrong thing");
}
