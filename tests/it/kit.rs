//! What the kit takes for granted of the server.

use toolbay_testkit::{Client, revision};

use crate::support::Folder;

#[test]
fn the_newest_session_is_the_one_that_tests_begin() {
    let mut client = Client::start(&Folder::new()).unwrap();
    assert_eq!(client.newest_session().unwrap(), revision::SESSION);
    // The server goes on with a session after a request that needed none.
    let hello = client.initialize(revision::SESSION).unwrap().what;
    assert_eq!(hello["protocolVersion"], revision::SESSION);
    let (_, status) = client.end().unwrap();
    assert!(status.success());
}
