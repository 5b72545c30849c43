//! The calls that a guest can make: what each one takes, and what it gives.

use Arg::{Any, Borrowed, Bytes, Flags, Folder, Named, Nothing, Number, Owned, Real, Return};
use Gives::{First, Handle, Maybe, None, Word};
use Kind::{Body, Descriptor, Entries, Fields, Input, Output, Pollable, Request};

/// The kind of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Pollable,
    Input,
    Output,
    Descriptor,
    Entries,
    Fields,
    Request,
    Body,
}

impl Kind {
    pub(crate) const ALL: [Self; 8] = [Pollable, Input, Output, Descriptor, Entries, Fields, Request, Body];

    /// The name of the type in `interfaces.wat`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Pollable => "pollable",
            Input => "in-stream",
            Output => "out-stream",
            Descriptor => "descriptor",
            Entries => "entries",
            Fields => "fields",
            Request => "request",
            Body => "body",
        }
    }
}

/// An argument, as the canonical ABI passes it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arg {
    Borrowed(Kind),
    /// A handle that the call takes away.
    Owned(Kind),
    /// A list of bytes or a string, of any length.
    Bytes,
    /// The same in an option.
    Any,
    /// A path or another short text.
    Named,
    /// An absent option of a string.
    Nothing,
    /// A length, an offset, a time.
    Number,
    /// An enumeration or flags, below this number.
    Flags(u32),
    /// The flags with which folders are opened.
    Folder,
    /// A progress and an absent total.
    Real,
    /// The address of the result.
    Return,
}

impl Arg {
    /// Its types in a core function.
    pub(crate) fn core(self) -> &'static str {
        match self {
            Borrowed(_) | Owned(_) | Flags(_) | Folder | Return => "i32",
            Bytes | Named => "i32 i32",
            Any | Nothing => "i32 i32 i32",
            Number => "i64",
            Real => "f64 i32 f64",
        }
    }
}

/// What a call gives.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gives {
    None,
    /// A number of this type, which nobody needs.
    Word(&'static str),
    /// A handle.
    Handle(Kind),
    /// A handle, or why there is none, at the address of the result.
    Maybe(Kind),
    /// A list at the address of the result, whose first item begins with a handle.
    First(Kind),
}

/// A function that a guest can call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    /// Its name in `interfaces.wat`.
    pub(crate) name: &'static str,
    pub(crate) args: &'static [Arg],
    pub(crate) gives: Gives,
}

const fn function(name: &'static str, args: &'static [Arg], gives: Gives) -> Function {
    Function { name, args, gives }
}

pub(crate) const FUNCTIONS: &[Function] = &[
    function("log", &[Flags(8), Bytes], None),
    function("progress", &[Real, Any], None),
    function("progress", &[Real, Nothing], None),
    function("block", &[Borrowed(Pollable)], None),
    function("ready", &[Borrowed(Pollable)], Word("i32")),
    function("now", &[], Word("i64")),
    function("subscribe-duration", &[Number], Handle(Pollable)),
    function("random-bytes", &[Number, Return], None),
    function("insecure-bytes", &[Number, Return], None),
    function("get-environment", &[Return], None),
    function("get-stdin", &[], Handle(Input)),
    function("get-stdout", &[], Handle(Output)),
    function("get-stderr", &[], Handle(Output)),
    function("read-stream", &[Borrowed(Input), Number, Return], None),
    function("blocking-read", &[Borrowed(Input), Number, Return], None),
    function("blocking-skip", &[Borrowed(Input), Number, Return], None),
    function("subscribe-input", &[Borrowed(Input)], Handle(Pollable)),
    function("check-write", &[Borrowed(Output), Return], None),
    function("write-stream", &[Borrowed(Output), Bytes, Return], None),
    function("blocking-write", &[Borrowed(Output), Bytes, Return], None),
    function("blocking-flush", &[Borrowed(Output), Return], None),
    function("write-zeroes", &[Borrowed(Output), Number, Return], None),
    function("splice", &[Borrowed(Output), Borrowed(Input), Number, Return], None),
    function("subscribe-output", &[Borrowed(Output)], Handle(Pollable)),
    function("get-directories", &[Return], First(Descriptor)),
    function("open-at", &[Borrowed(Descriptor), Flags(2), Named, Flags(16), Flags(64), Return], Maybe(Descriptor)),
    function("open-at", &[Borrowed(Descriptor), Flags(2), Named, Flags(2), Folder, Return], Maybe(Descriptor)),
    function("read-via-stream", &[Borrowed(Descriptor), Number, Return], Maybe(Input)),
    function("write-via-stream", &[Borrowed(Descriptor), Number, Return], Maybe(Output)),
    function("append-via-stream", &[Borrowed(Descriptor), Return], Maybe(Output)),
    function("read-file", &[Borrowed(Descriptor), Number, Number, Return], None),
    function("write-file", &[Borrowed(Descriptor), Bytes, Number, Return], None),
    function("set-size", &[Borrowed(Descriptor), Number, Return], None),
    function("sync", &[Borrowed(Descriptor), Return], None),
    function("metadata-hash", &[Borrowed(Descriptor), Return], None),
    function("read-directory", &[Borrowed(Descriptor), Return], Maybe(Entries)),
    function("read-entry", &[Borrowed(Entries), Return], None),
    function("create-directory", &[Borrowed(Descriptor), Named, Return], None),
    function("create-directory", &[Borrowed(Descriptor), Bytes, Return], None),
    function("remove-directory", &[Borrowed(Descriptor), Named, Return], None),
    function("unlink", &[Borrowed(Descriptor), Named, Return], None),
    function("readlink", &[Borrowed(Descriptor), Named, Return], None),
    function("symlink", &[Borrowed(Descriptor), Named, Named, Return], None),
    function("rename", &[Borrowed(Descriptor), Named, Borrowed(Descriptor), Named, Return], None),
    function("new-fields", &[], Handle(Fields)),
    function("append-field", &[Borrowed(Fields), Named, Bytes, Return], None),
    function("clone-fields", &[Borrowed(Fields)], Handle(Fields)),
    function("new-request", &[Owned(Fields)], Handle(Request)),
    function("set-authority", &[Borrowed(Request), Any], Word("i32")),
    function("headers", &[Borrowed(Request)], Handle(Fields)),
    function("request-body", &[Borrowed(Request), Return], Maybe(Body)),
    function("write-body", &[Borrowed(Body), Return], Maybe(Output)),
    function("drop-pollable", &[Owned(Pollable)], None),
    function("drop-in-stream", &[Owned(Input)], None),
    function("drop-out-stream", &[Owned(Output)], None),
    function("drop-descriptor", &[Owned(Descriptor)], None),
    function("drop-entries", &[Owned(Entries)], None),
    function("drop-fields", &[Owned(Fields)], None),
    function("drop-request", &[Owned(Request)], None),
    function("drop-body", &[Owned(Body)], None),
];
