//! A short run with a few thousand operations, which takes seconds.

use std::process::Command;

#[test]
fn what_is_acknowledged_survives_being_killed() {
    let program = env!("CARGO_BIN_EXE_toolbay-durability");
    let outcome = Command::new(program)
        .args(["--operations", "6000", "--kills", "8"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&outcome.stdout);
    assert!(
        outcome.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&outcome.stderr)
    );
    assert!(
        said.contains(" 8 kills: all that was acknowledged is there, and quotas hold"),
        "{said}"
    );
}
