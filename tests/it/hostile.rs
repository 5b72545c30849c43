//! A corpus of plugins that attack: what each does, where it strikes, and what becomes of it.
//!
//! Every case is dropped into the folder of a server that has another plugin.
//! Afterwards that one must answer, and the server's memory must be what it was.
//!
//! The cases are one table, in files by theme; `docs/src/hostile.md` is made from it.

mod book;
mod run;
mod wasi;

pub(crate) use self::bombs::{doubling, nested_blocks};
use crate::support::Folder;

/// How much more memory the server may hold after an attack than before, in KiB.
const GROWTH: u64 = 5 << 10;

/// One attack.
pub(crate) struct Case {
    /// What it does, in the words of the book.
    what: &'static str,
    strikes: Strikes,
    /// Puts it into the folder, as the plugin `hostile` unless it is something else altogether.
    put: fn(&Folder),
    tool: &'static str,
    arguments: &'static str,
    /// Beyond the prefix, which all have.
    grant: &'static str,
    config: &'static str,
    expected: Expected,
    /// What is to be seen besides.
    also: fn(&mut run::Run),
    /// How much more memory the server may hold afterwards, in KiB.
    growth: u64,
}

/// Where an attack strikes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Strikes {
    Folder,
    Compile,
    Load,
    ListTools,
    Call,
    HostCall,
}

/// What must become of an attack. `…` in a text stands for anything.
#[derive(Clone, Copy)]
pub(crate) enum Expected {
    /// It is no plugin, and this is noted about it.
    Noted(&'static str),
    /// It is not loaded, for this reason.
    Refused(&'static str),
    /// It is loaded; its tool fails with this kind and text.
    Fails(&'static str, &'static str),
    /// It is loaded; its tool answers this.
    Answers(&'static str),
}

impl Case {
    const fn new(strikes: Strikes, what: &'static str, put: fn(&Folder)) -> Self {
        Self {
            what,
            strikes,
            put,
            tool: "a",
            arguments: "{}",
            grant: "",
            config: "",
            expected: Expected::Noted(""),
            also: |_| {},
            growth: GROWTH,
        }
    }

    /// A tool of this name, with these arguments.
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

    /// For what leaves small pieces behind, which the allocator keeps for the next.
    const fn may_leave(mut self, mebibytes: u64) -> Self {
        self.growth = mebibytes << 10;
        self
    }

    const fn also(mut self, check: fn(&mut run::Run)) -> Self {
        self.also = check;
        self
    }
}

/// Puts a component into the folder as the plugin `hostile`.
fn put(folder: &Folder, component: impl AsRef<[u8]>) {
    folder.put("hostile.wasm", component);
}

/// Makes rows of the table, and of each a test.
macro_rules! cases {
    ($($name:ident: $strikes:ident, $what:literal, $put:expr $(=> $with:ident $arguments:tt)*;)*) => {
        pub(super) const CASES: &[crate::hostile::Case] = &[$(
            crate::hostile::Case::new(crate::hostile::Strikes::$strikes, $what, $put)
                $(.$with $arguments)*
        ),*];

        mod tests {
            #[expect(non_camel_case_types, reason = "the names of tests")]
            #[derive(Clone, Copy)]
            enum Name { $($name),* }

            $(#[test]
            fn $name() {
                crate::hostile::run::run(&super::CASES[Name::$name as usize]);
            })*
        }
    };
}

/// The files of the table, and their titles in the book.
macro_rules! themes {
    ($($file:ident: $title:literal,)*) => {
        $(mod $file;)*

        const THEMES: &[(&str, &[Case])] = &[$(($title, $file::CASES)),*];
    };
}

themes! {
    compute: "Computing",
    memory: "Memory and shape",
    waiting: "Calling the host",
    holding: "Filling the host",
    results: "Results",
    listing: "Lists of tools",
    schemas: "Schemas",
    reach: "Reaching out",
    bombs: "Compiling",
    files: "Files",
}
