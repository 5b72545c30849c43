//! The steps of `cargo xtask test`, in order. To add a step, add a row here. If the step is more
//! than a single call, also add a file in this folder.

use anyhow::Result;

use super::context::StepContext;
use super::{
    book, clippy, deny, doc, features, fmt, hostcalls, it, prose, registry, rustdoc, soak, unit,
};
use crate::{apps, authors, clients, conformance, console, dist, languages, packages, toolchains};

/// A test step.
pub(super) struct TestStep {
    /// The name on the command line and in the summary.
    pub(super) name: &'static str,
    /// The description of the check, for `--help`.
    pub(super) about: &'static str,
    /// If set, the step runs when no step is selected.
    pub(super) runs_by_default: bool,
    /// If set, the step uses the server, the sample plugins or the guests that `cargo xtask build`
    /// builds.
    pub(super) needs_build: bool,
    pub(super) run: fn(&mut StepContext<'_>) -> Result<()>,
}

/// The template of a default step that does not require the build.
const SOURCE_STEP: TestStep = TestStep {
    name: "",
    about: "",
    runs_by_default: true,
    needs_build: false,
    run: |_| Ok(()),
};

/// The template of a default step that requires the build. Such steps run concurrently.
const BUILD_STEP: TestStep = TestStep {
    needs_build: true,
    ..SOURCE_STEP
};

/// All steps, in order.
pub(super) const STEPS: &[TestStep] = &[
    TestStep {
        name: "fmt",
        about: "The code is formatted",
        run: fmt::run,
        ..SOURCE_STEP
    },
    TestStep {
        name: "features",
        about: "No dependency is compiled twice",
        run: features::run,
        ..SOURCE_STEP
    },
    TestStep {
        name: "clippy",
        about: "Clippy has nothing to say",
        run: clippy::run,
        ..SOURCE_STEP
    },
    TestStep {
        name: "deny",
        about: "Licences, versions and origins of dependencies are allowed",
        run: deny::run,
        ..SOURCE_STEP
    },
    TestStep {
        name: "rustdoc",
        about: "The reference of every crate is made without a warning",
        run: rustdoc::run,
        ..SOURCE_STEP
    },
    TestStep {
        name: "book",
        about: "The book is built, and every link leads somewhere",
        run: book::run,
        ..SOURCE_STEP
    },
    TestStep {
        name: "prose",
        about: "The wording of documentation, comments and messages follows docs/style",
        run: prose::run,
        ..SOURCE_STEP
    },
    TestStep {
        name: "unit",
        about: "The tests of every crate, plugins included",
        run: unit::run,
        ..SOURCE_STEP
    },
    TestStep {
        name: "doc",
        about: "The examples in the documentation",
        run: doc::run,
        ..SOURCE_STEP
    },
    TestStep {
        name: "it",
        about: "The server as a whole, with sample and hostile plugins",
        run: it::run,
        ..SOURCE_STEP
    },
    TestStep {
        name: "registry",
        about: "Plugins in a real registry with TLS and passwords, and another tool for it",
        run: registry::run,
        ..SOURCE_STEP
    },
    TestStep {
        name: "clients",
        about: "The official clients against the real server",
        run: |context| clients::run(context.workspace, context.built()?, context.tally),
        ..BUILD_STEP
    },
    TestStep {
        name: "apps",
        about: "Views of plugins in a browser, with the official bridge",
        run: |context| apps::run(context.workspace, context.built()?, context.tally),
        ..BUILD_STEP
    },
    TestStep {
        name: "console",
        about: "The console in a browser: pages, actions, keyboard, accessibility",
        run: |context| console::run(context.workspace, context.built()?, context.tally),
        ..BUILD_STEP
    },
    TestStep {
        name: "dashboard",
        about: "Prometheus and promtool take the metrics, and answer the queries of the dashboard",
        run: |context| console::run_dashboard(context.workspace, context.built()?, context.tally),
        ..BUILD_STEP
    },
    TestStep {
        name: "languages",
        about: "Plugins in every language, built from their templates and called",
        run: |context| languages::test(context.workspace, &context.built()?.server, context.tally),
        ..BUILD_STEP
    },
    TestStep {
        name: "five-tools",
        about: "The same five tools in five languages and on two SDKs have the same results",
        run: |context| authors::test(context.workspace, &context.built()?.server, context.tally),
        ..BUILD_STEP
    },
    TestStep {
        name: "packages",
        about: "Some packages of npm and PyPI, called in plugins and in Node and CPython",
        run: |context| packages::test(context.workspace, &context.built()?.server, context.tally),
        ..BUILD_STEP
    },
    TestStep {
        name: "toolchains",
        about: "What other compilers make by default, through an official client",
        run: |context| toolchains::test(context.workspace, &context.built()?.server, context.tally),
        ..BUILD_STEP
    },
    TestStep {
        name: "conformance",
        about: "The official conformance suite against the real server",
        run: |context| conformance::run_suites(context.workspace, context.built()?, context.tally),
        ..BUILD_STEP
    },
    TestStep {
        name: "dist",
        about: "The packages, made of the server of the tests, installed and used",
        run: |context| dist::test(context.workspace, &context.built()?.server, context.tally),
        ..BUILD_STEP
    },
    TestStep {
        name: "hostcalls",
        about: "Some guests that call the host at random; only when named",
        runs_by_default: false,
        run: hostcalls::run,
        ..BUILD_STEP
    },
    TestStep {
        name: "soak",
        about: "A soak of some seconds; only when named",
        runs_by_default: false,
        run: soak::run,
        ..BUILD_STEP
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_apart() {
        for step in STEPS {
            assert!(
                !step.name.is_empty() && !step.about.is_empty(),
                "{}",
                step.name
            );
            assert_eq!(
                STEPS.iter().filter(|other| other.name == step.name).count(),
                1,
                "{}",
                step.name
            );
        }
    }
}
