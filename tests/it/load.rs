//! The load generator of the benchmarks with a few calls: it receives every response, over each way
//! to reach the server.

use std::time::Duration;

use toolbay_load::{Group, Server, Until, Via, Work};
use toolbay_testkit::guests::guest;

use crate::support::{Folder, ToolbayCommand};

/// Sends calls without a pause, and calls with a pause next to calls that compute.
fn run_calls(server: &mut Server) {
    let (echo, large, burn) = (Work::echo(64), Work::echo(100_000), Work::burn(1_000));
    for callers in [1, 8] {
        let driven = server
            .drive(&[Group::of(callers, &echo)], Until::Calls(20))
            .unwrap();
        assert_eq!((driven.calls, driven.groups.len()), (20, 1));
    }
    assert_eq!(
        server
            .drive(&[Group::of(2, &large)], Until::Calls(4))
            .unwrap()
            .calls,
        4
    );
    let light = Group {
        callers: 1,
        work: &echo,
        pause: Duration::from_millis(1),
    };
    let driven = server
        .drive(&[light, Group::of(2, &burn)], Until::Calls(12))
        .unwrap();
    assert_eq!(driven.calls, 12);
    assert!(
        driven.groups.iter().all(|group| !group.is_empty()),
        "a group was not served"
    );
    assert!(server.memory().unwrap().resident > 0 && driven.rate() > 0.0);
}

#[test]
fn the_load_generator_receives_every_response_over_every_transport() {
    let folder = Folder::with("echo.wasm", guest("echo").unwrap());
    // Over HTTP, the default rate is 120 calls per minute.
    folder.write_config("[rate_limit]\ncalls = 10_000\nper = \"1s\"\n");
    let launch = |address: Option<std::net::SocketAddr>| {
        let arguments = address.map(|address| ["--http".to_owned(), address.to_string()]);
        ToolbayCommand::new(&folder)
            .args(["serve"])
            .args(arguments.into_iter().flatten())
            .into_parts()
            .0
    };
    let listed = |tools: &[String]| tools.iter().any(|tool| tool == "echo");
    let mut server = Server::start(&launch, Via::Stdio).unwrap();
    server.until_listed(listed).unwrap();
    run_calls(&mut server);
    drop(server);
    let mut server = Server::start(&launch, Via::Session).unwrap();
    server.until_listed(listed).unwrap();
    run_calls(&mut server);
    server.change(Via::Stateless, 1).unwrap();
    run_calls(&mut server);
}

#[test]
fn a_wrong_answer_ends_a_measurement() {
    let folder = Folder::with("echo.wasm", guest("echo").unwrap());
    let launch = |_: Option<std::net::SocketAddr>| {
        ToolbayCommand::new(&folder).args(["serve"]).into_parts().0
    };
    let mut server = Server::start(&launch, Via::Stdio).unwrap();
    server.until_listed(|tools| !tools.is_empty()).unwrap();
    let nobody = Work::echo_of("nobody", 64);
    let error = server
        .drive(&[Group::of(1, &nobody)], Until::Calls(1))
        .err()
        .unwrap();
    assert!(
        format!("{error:#}").contains("a call of nobody"),
        "{error:#}"
    );
}
