//! nginx and HAProxy in front of the server, with the configurations of the book.

use anyhow::Result;
use toolbay_testkit::build::Built;
use toolbay_testkit::workspace::Workspace;

use super::folders::Folders;
use crate::tally::Tally;

pub(super) fn run(_: &Folders, _: &Workspace, _: &Built, _: &dyn Fn(&str) -> bool, _: &mut Tally) -> Result<()> {
    Ok(())
}
