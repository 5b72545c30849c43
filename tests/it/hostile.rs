//! A corpus of plugins that attack: the action of each, the stage of the attack, and the outcome.
//!
//! Every case is copied into the folder of a server that has another plugin. Afterwards, that
//! plugin must respond, and the server's memory must be what it was before.
//!
//! The cases are one table, in files by topic. `docs/src/hostile.md` is generated from it.

mod book;
mod run;
mod wasi;

pub(crate) use self::bombs::{doubling, exports, nested_blocks};
pub(crate) use self::concurrency::{EXIT, YIELD, tasks};
pub(crate) use self::wasi::calls;
use crate::support::Folder;

/// How much more memory the server may hold after an attack than before, in KiB.
const MAX_GROWTH: u64 = 5 << 10;

/// One attack.
pub(crate) struct Case {
    /// What the attack does, as the book describes it.
    what: &'static str,
    stage: AttackStage,
    /// Writes the plugin into the folder, as the plugin `hostile` unless it is something else.
    put: fn(&Folder),
    tool: &'static str,
    arguments: &'static str,
    /// Its grant, in addition to the prefix, which all cases have.
    grant: &'static str,
    config: &'static str,
    expected: Expected,
    /// Further lines that the log must contain.
    also: fn(&mut run::Run),
    /// How much more memory the server may hold afterwards, in KiB.
    growth: u64,
}

/// The stage at which an attack happens.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum AttackStage {
    Folder,
    Compile,
    Load,
    ListTools,
    Call,
    HostCall,
}

/// The required outcome of an attack. `…` in a text stands for any text.
#[derive(Clone, Copy)]
pub(crate) enum Expected {
    /// It is not a plugin, and this note says why.
    Noted(&'static str),
    /// It is refused for this reason.
    Refused(&'static str),
    /// It is loaded; its tool fails with this error kind and text.
    Fails(&'static str, &'static str),
    /// It is loaded; its tool returns this.
    Answers(&'static str),
}

impl Case {
    const fn new(stage: AttackStage, what: &'static str, put: fn(&Folder)) -> Self {
        Self {
            what,
            stage,
            put,
            tool: "a",
            arguments: "{}",
            grant: "",
            config: "",
            expected: Expected::Noted(""),
            also: |_| {},
            growth: MAX_GROWTH,
        }
    }

    /// Sets the name of the tool and its arguments.
    const fn tool(mut self, tool: &'static str, arguments: &'static str) -> Self {
        self.tool = tool;
        self.arguments = arguments;
        self
    }

    const fn grant(mut self, grant: &'static str) -> Self {
        self.grant = grant;
        self
    }

    const fn config(mut self, config: &'static str) -> Self {
        self.config = config;
        self
    }

    const fn noted(mut self, why: &'static str) -> Self {
        self.expected = Expected::Noted(why);
        self
    }

    const fn refused(mut self, why: &'static str) -> Self {
        self.expected = Expected::Refused(why);
        self
    }

    const fn fails(mut self, kind: &'static str, text: &'static str) -> Self {
        self.expected = Expected::Fails(kind, text);
        self
    }

    const fn answers(mut self, text: &'static str) -> Self {
        self.expected = Expected::Answers(text);
        self
    }

    /// Sets the permitted growth, for attacks that leave small pieces behind, which the allocator
    /// reuses.
    const fn may_leave(mut self, mebibytes: u64) -> Self {
        self.growth = mebibytes << 10;
        self
    }

    const fn also(mut self, check: fn(&mut run::Run)) -> Self {
        self.also = check;
        self
    }
}

/// Returns the attempts to leave a mounted folder: a description of each, and the arguments of the
/// tool `file_steps`.
pub(crate) fn escapes() -> impl Iterator<Item = (&'static str, &'static str)> {
    self::escapes::CASES
        .iter()
        .map(|case| (case.what, case.arguments))
}

/// Writes a component into the folder as the plugin `hostile`.
fn put(folder: &Folder, component: impl AsRef<[u8]>) {
    folder.put("hostile.wasm", component);
}

/// Returns code that writes a JSON text to this address, in a function that has a local `$at`: the
/// bytes of `start`, this many empty lists, and the bytes of `end`. Also returns the length of the
/// text.
fn lists_at(address: usize, start: &[u8], lists: usize, end: &[u8]) -> (String, usize) {
    let byte = |at: usize, byte: &u8| format!("(i32.store8 (i32.const {at}) (i32.const {byte}))");
    let bytes = |at: usize, all: &[u8]| {
        all.iter()
            .enumerate()
            .map(|(n, value)| byte(at + n, value))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let first = address + start.len();
    // Each store writes three lists, the last of them without its comma.
    let last = first + 3 * (lists - 3);
    let code = format!(
        "{} (local.set $at (i32.const {first}))
         (loop $more
           (i64.store (local.get $at) (i64.const 0x5d5b2c5d5b2c5d5b))
           (local.set $at (i32.add (local.get $at) (i32.const 3)))
           (br_if $more (i32.le_u (local.get $at) (i32.const {last}))))
         {}",
        bytes(address, start),
        bytes(last + 8, end)
    );
    (code, last + 10 - address)
}

/// Creates rows of the table, and a test for each of them.
macro_rules! rows {
    ($($name:ident: $stage:ident, $what:literal, $put:expr $(=> $with:ident $arguments:tt)*;)*) => {
        pub(super) const CASES: &[crate::hostile::Case] = &[$(
            crate::hostile::Case::new(crate::hostile::AttackStage::$stage, $what, $put)
                $(.$with $arguments)*
        ),*];

        #[expect(non_camel_case_types, reason = "the names of tests")]
        #[derive(Clone, Copy)]
        enum Name { $($name),* }

        mod tests {
            $(#[test]
            fn $name() {
                crate::hostile::run::run(&super::CASES[super::Name::$name as usize]);
            })*
        }
    };
}

/// Creates rows of the table, and two tests for each plugin that can run: one for each engine.
macro_rules! cases {
    ($($name:ident: $stage:ident, $what:literal, $put:expr $(=> $with:ident $arguments:tt)*;)*) => {
        rows! { $($name: $stage, $what, $put $(=> $with $arguments)*;)* }

        mod with_async {
            $(again! { $stage $name })*
        }
    };
}

/// Creates the test of a case in the engine for components with async functions, unless the case
/// ends before that engine is used.
macro_rules! again {
    (Folder $name:ident) => {};
    (Compile $name:ident) => {};
    ($stage:ident $name:ident) => {
        #[test]
        fn $name() {
            crate::hostile::run::run_with_async(&super::CASES[super::Name::$name as usize]);
        }
    };
}

/// The files of the table, with their titles in the book.
macro_rules! themes {
    ($($file:ident: $title:literal,)*) => {
        $(mod $file;)*

        const THEMES: &[(&str, &[Case])] = &[$(($title, $file::CASES)),*];
    };
}

themes! {
    compute: "Computing",
    memory: "Memory and shape",
    gc: "Garbage collection and exceptions",
    concurrency: "Async functions",
    wasi3: "WASI 0.3",
    waiting: "Calling the host",
    holding: "Filling the host",
    results: "Results",
    listing: "Lists of tools",
    schemas: "Schemas",
    reach: "Reaching out",
    escapes: "Leaving a mounted folder",
    bombs: "Compiling",
    files: "Files",
    servers: "MCP servers as plugins",
}
