//! Assumptions of the test kit about the server.

use toolbay_testkit::guests::{example, guest, sample};
use toolbay_testkit::workspace::CargoWorkspace;
use toolbay_testkit::{StdioClient, revision, workspace};

use crate::support::Folder;

#[test]
fn the_session_revision_of_tests_is_the_newest_of_the_server() {
    let mut client = StdioClient::start(&Folder::new()).unwrap();
    assert_eq!(
        client.session_revisions().unwrap().pop().unwrap(),
        revision::NEWEST_SESSION_REVISION
    );
    // The server continues the session after a stateless request.
    let hello = client
        .initialize(revision::NEWEST_SESSION_REVISION)
        .unwrap()
        .message;
    assert_eq!(hello["protocolVersion"], revision::NEWEST_SESSION_REVISION);
    let (_, status) = client.stop().unwrap();
    assert!(status.success());
}

#[test]
fn plugins_contain_no_path_of_the_build_machine() {
    let home = std::env::home_dir().unwrap();
    let cargo = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), Into::into);
    let folders =
        [workspace::root().to_owned(), cargo].map(|folder| folder.to_str().unwrap().to_owned());
    let all = CargoWorkspace::load().unwrap();
    let samples = all
        .plugins()
        .map(|plugin| (plugin.plugin_id(), sample(&plugin.plugin_id()).unwrap()));
    let examples = all
        .examples()
        .map(|plugin| (plugin.plugin_id(), example(&plugin.plugin_id()).unwrap()));
    let guests = all
        .guests()
        .map(|plugin| (plugin.plugin_id(), guest(&plugin.plugin_id()).unwrap()));
    let mut mapped = 0;
    for (id, bytes) in samples.chain(examples).chain(guests) {
        let text = String::from_utf8_lossy(&bytes);
        for folder in &folders {
            assert!(!text.contains(folder), "{id} names {folder}");
        }
        mapped += usize::from(text.contains("cargo/registry/"));
    }
    assert!(
        mapped > 0,
        "no plugin names any source: the test looks for the wrong thing"
    );
}
