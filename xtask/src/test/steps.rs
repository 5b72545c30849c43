//! The steps of `cargo xtask test`, in order. To add a step, add a row here. If the step is more
//! than a single call, also add a file in this folder.

use anyhow::Result;

use super::context::Context;
use super::{book, clippy, deny, doc, features, fmt, hostcalls, it, rustdoc, soak, unit};
use crate::{apps, clients, conformance, console, dist, languages, toolchains};

/// A test step.
pub(super) struct Step {
    /// The name on the command line and in the summary.
    pub(super) name: &'static str,
    /// The description of the check, for `--help`.
    pub(super) about: &'static str,
    /// If set, the step runs when no step is selected.
    pub(super) is_usual: bool,
    /// If set, the step uses the server, the sample plugins or the guests that `cargo xtask build`
    /// builds.
    pub(super) needs_build: bool,
    pub(super) run: fn(&mut Context<'_>) -> Result<()>,
}

/// The template of a default step that does not require the build.
const SOURCES: Step = Step { name: "", about: "", is_usual: true, needs_build: false, run: |_| Ok(()) };

/// The template of a default step that requires the build. Such steps run concurrently.
const BUILT: Step = Step { needs_build: true, ..SOURCES };

/// All steps, in order.
pub(super) const STEPS: &[Step] = &[
    Step { name: "fmt", about: "The code is formatted", run: fmt::run, ..SOURCES },
    Step { name: "features", about: "No dependency is compiled twice", run: features::run, ..SOURCES },
    Step { name: "clippy", about: "Clippy has nothing to say", run: clippy::run, ..SOURCES },
    Step {
        name: "deny",
        about: "Licences, versions and origins of dependencies are allowed",
        run: deny::run,
        ..SOURCES
    },
    Step {
        name: "rustdoc",
        about: "The reference of every crate is made without a warning",
        run: rustdoc::run,
        ..SOURCES
    },
    Step { name: "book", about: "The book is built, and every link leads somewhere", run: book::run, ..SOURCES },
    Step { name: "unit", about: "The tests of every crate, plugins included", run: unit::run, ..SOURCES },
    Step { name: "doc", about: "The examples in the documentation", run: doc::run, ..SOURCES },
    Step { name: "it", about: "The server as a whole, with sample and hostile plugins", run: it::run, ..SOURCES },
    Step {
        name: "clients",
        about: "The official clients against the real server",
        run: |context| clients::run(context.workspace, context.built()?, context.tally),
        ..BUILT
    },
    Step {
        name: "apps",
        about: "Views of plugins in a browser, with the official bridge",
        run: |context| apps::run(context.workspace, context.built()?, context.tally),
        ..BUILT
    },
    Step {
        name: "console",
        about: "The console in a browser: pages, actions, keyboard, accessibility",
        run: |context| console::run(context.workspace, context.built()?, context.tally),
        ..BUILT
    },
    Step {
        name: "dashboard",
        about: "Prometheus and promtool take the metrics, and answer the queries of the dashboard",
        run: |context| console::dashboard(context.workspace, context.built()?, context.tally),
        ..BUILT
    },
    Step {
        name: "languages",
        about: "Plugins in every language, built from their templates and called",
        run: |context| languages::test(context.workspace, &context.built()?.server, context.tally),
        ..BUILT
    },
    Step {
        name: "toolchains",
        about: "What other compilers make by default, through an official client",
        run: |context| toolchains::test(context.workspace, &context.built()?.server, context.tally),
        ..BUILT
    },
    Step {
        name: "conformance",
        about: "The official conformance suite against the real server",
        run: |context| conformance::check(context.workspace, context.built()?, context.tally),
        ..BUILT
    },
    Step {
        name: "dist",
        about: "The packages, made of the server of the tests, installed and used",
        run: |context| dist::test(context.workspace, &context.built()?.server, context.tally),
        ..BUILT
    },
    Step {
        name: "hostcalls",
        about: "Some guests that call the host at random; only when named",
        is_usual: false,
        run: hostcalls::run,
        ..BUILT
    },
    Step { name: "soak", about: "A soak of some seconds; only when named", is_usual: false, run: soak::run, ..BUILT },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_apart() {
        for step in STEPS {
            assert!(!step.name.is_empty() && !step.about.is_empty(), "{}", step.name);
            assert_eq!(STEPS.iter().filter(|other| other.name == step.name).count(), 1, "{}", step.name);
        }
    }
}
