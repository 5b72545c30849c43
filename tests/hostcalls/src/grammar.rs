//! The calls that a guest can make, with their arguments and results.

use Arg::{
    Absent, Address, Any, Borrowed, Bytes, Flags, Folder, Method, Named, Nothing, Number, Owned,
    Path, Real, Return, Scheme, Site,
};
use Gives::{First, Handle, Maybe, None, Pair, When, Word};
use Kind::{
    Body, Bucket, Descriptor, Entries, Fields, Input, Lookup, Network, Output, Pollable, Received,
    Request, Response, Sending, Socket,
};

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
    Sending,
    Response,
    Received,
    Network,
    Lookup,
    Socket,
    Bucket,
}

impl Kind {
    pub(crate) const ALL: [Self; 15] = [
        Pollable, Input, Output, Descriptor, Entries, Fields, Request, Body, Sending, Response,
        Received, Network, Lookup, Socket, Bucket,
    ];

    /// Returns the name of the type in `interfaces.wat`.
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
            Sending => "sending",
            Response => "response",
            Received => "received",
            Network => "network",
            Lookup => "lookup",
            Socket => "socket",
            Bucket => "bucket",
        }
    }
}

/// An argument, as the canonical ABI passes it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arg {
    Borrowed(Kind),
    /// A handle that the call consumes.
    Owned(Kind),
    /// A list of bytes or a string, of any length.
    Bytes,
    /// An optional list of bytes or string, of any length.
    Any,
    /// A path or another short text.
    Named,
    /// An absent optional string.
    Nothing,
    /// An absent optional handle or number.
    Absent(&'static str),
    /// An optional authority: of a server that the grant allows, or another text.
    Site,
    /// An optional path of that server.
    Path,
    /// The optional scheme `http`.
    Scheme,
    /// An HTTP method.
    Method,
    /// An address with a port: that of the server, or another one.
    Address,
    /// A length, an offset or a time.
    Number,
    /// An enumeration or flags, below this number.
    Flags(u32),
    /// The flags with which directories are opened.
    Folder,
    /// A progress value and an absent total.
    Real,
    /// The address of the result.
    Return,
}

impl Arg {
    /// Returns its types in a core function.
    pub(crate) fn core(self) -> &'static str {
        match self {
            Borrowed(_) | Owned(_) | Flags(_) | Folder | Return => "i32",
            Bytes | Named => "i32 i32",
            Any | Nothing | Site | Path | Method => "i32 i32 i32",
            Absent(ty) => ty,
            Scheme => "i32 i32 i32 i32",
            Address => "i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32",
            Number => "i64",
            Real => "f64 i32 f64",
        }
    }
}

/// The result of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gives {
    None,
    /// A number of this type, which is ignored.
    Word(&'static str),
    /// A handle.
    Handle(Kind),
    /// A handle or an error, at the address of the result.
    Maybe(Kind),
    /// Two handles or an error, at the address of the result.
    Pair(Kind, Kind),
    /// A handle at this offset from the address of the result, if each of these offsets contains
    /// this byte.
    When(Kind, &'static [(u32, u8)], u32),
    /// A list at the address of the result, whose first item starts with a handle.
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
    function(
        "splice",
        &[Borrowed(Output), Borrowed(Input), Number, Return],
        None,
    ),
    function("subscribe-output", &[Borrowed(Output)], Handle(Pollable)),
    function("get-directories", &[Return], First(Descriptor)),
    function(
        "open-at",
        &[
            Borrowed(Descriptor),
            Flags(2),
            Named,
            Flags(16),
            Flags(64),
            Return,
        ],
        Maybe(Descriptor),
    ),
    function(
        "open-at",
        &[
            Borrowed(Descriptor),
            Flags(2),
            Named,
            Flags(2),
            Folder,
            Return,
        ],
        Maybe(Descriptor),
    ),
    function(
        "read-via-stream",
        &[Borrowed(Descriptor), Number, Return],
        Maybe(Input),
    ),
    function(
        "write-via-stream",
        &[Borrowed(Descriptor), Number, Return],
        Maybe(Output),
    ),
    function(
        "append-via-stream",
        &[Borrowed(Descriptor), Return],
        Maybe(Output),
    ),
    function(
        "read-file",
        &[Borrowed(Descriptor), Number, Number, Return],
        None,
    ),
    function(
        "write-file",
        &[Borrowed(Descriptor), Bytes, Number, Return],
        None,
    ),
    function("set-size", &[Borrowed(Descriptor), Number, Return], None),
    function("sync", &[Borrowed(Descriptor), Return], None),
    function("metadata-hash", &[Borrowed(Descriptor), Return], None),
    function(
        "read-directory",
        &[Borrowed(Descriptor), Return],
        Maybe(Entries),
    ),
    function("read-entry", &[Borrowed(Entries), Return], None),
    function(
        "create-directory",
        &[Borrowed(Descriptor), Named, Return],
        None,
    ),
    function(
        "create-directory",
        &[Borrowed(Descriptor), Bytes, Return],
        None,
    ),
    function(
        "remove-directory",
        &[Borrowed(Descriptor), Named, Return],
        None,
    ),
    function("unlink", &[Borrowed(Descriptor), Named, Return], None),
    function("readlink", &[Borrowed(Descriptor), Named, Return], None),
    function(
        "symlink",
        &[Borrowed(Descriptor), Named, Named, Return],
        None,
    ),
    function(
        "rename",
        &[
            Borrowed(Descriptor),
            Named,
            Borrowed(Descriptor),
            Named,
            Return,
        ],
        None,
    ),
    function("new-fields", &[], Handle(Fields)),
    function(
        "append-field",
        &[Borrowed(Fields), Named, Bytes, Return],
        None,
    ),
    function("clone-fields", &[Borrowed(Fields)], Handle(Fields)),
    function("new-request", &[Owned(Fields)], Handle(Request)),
    function("set-authority", &[Borrowed(Request), Any], Word("i32")),
    function("headers", &[Borrowed(Request)], Handle(Fields)),
    function("request-body", &[Borrowed(Request), Return], Maybe(Body)),
    function("write-body", &[Borrowed(Body), Return], Maybe(Output)),
    function("set-authority", &[Borrowed(Request), Site], Word("i32")),
    function("set-scheme", &[Borrowed(Request), Scheme], Word("i32")),
    function("set-path", &[Borrowed(Request), Path], Word("i32")),
    function("set-path", &[Borrowed(Request), Any], Word("i32")),
    function("set-method", &[Borrowed(Request), Method], Word("i32")),
    function(
        "finish-body",
        &[Owned(Body), Absent("i32 i32"), Return],
        None,
    ),
    function(
        "send",
        &[Owned(Request), Absent("i32 i32"), Return],
        When(Sending, &[(0, 0)], 8),
    ),
    function("subscribe-sending", &[Borrowed(Sending)], Handle(Pollable)),
    function(
        "get-response",
        &[Borrowed(Sending), Return],
        When(Response, &[(0, 1), (8, 0), (16, 0)], 24),
    ),
    function("response-headers", &[Borrowed(Response)], Handle(Fields)),
    function("consume", &[Borrowed(Response), Return], Maybe(Received)),
    function("body-stream", &[Borrowed(Received), Return], Maybe(Input)),
    function("instance-network", &[], Handle(Network)),
    function(
        "resolve",
        &[Borrowed(Network), Named, Return],
        Maybe(Lookup),
    ),
    function(
        "resolve",
        &[Borrowed(Network), Bytes, Return],
        Maybe(Lookup),
    ),
    function("next-address", &[Borrowed(Lookup), Return], None),
    function("subscribe-lookup", &[Borrowed(Lookup)], Handle(Pollable)),
    function("create-socket", &[Flags(2), Return], Maybe(Socket)),
    function(
        "start-bind",
        &[Borrowed(Socket), Borrowed(Network), Address, Return],
        None,
    ),
    function(
        "start-connect",
        &[Borrowed(Socket), Borrowed(Network), Address, Return],
        None,
    ),
    function(
        "finish-connect",
        &[Borrowed(Socket), Return],
        Pair(Input, Output),
    ),
    function("start-listen", &[Borrowed(Socket), Return], None),
    function(
        "set-receive-buffer",
        &[Borrowed(Socket), Number, Return],
        None,
    ),
    function("subscribe-socket", &[Borrowed(Socket)], Handle(Pollable)),
    function("shut-down", &[Borrowed(Socket), Flags(3), Return], None),
    function("open-bucket", &[Named, Return], Maybe(Bucket)),
    function("get-value", &[Borrowed(Bucket), Named, Return], None),
    function("set-value", &[Borrowed(Bucket), Named, Bytes, Return], None),
    function("set-value", &[Borrowed(Bucket), Bytes, Bytes, Return], None),
    function("delete-value", &[Borrowed(Bucket), Named, Return], None),
    function(
        "list-keys",
        &[Borrowed(Bucket), Absent("i32 i64"), Return],
        None,
    ),
    function(
        "increment",
        &[Borrowed(Bucket), Named, Number, Return],
        None,
    ),
    function("drop-pollable", &[Owned(Pollable)], None),
    function("drop-in-stream", &[Owned(Input)], None),
    function("drop-out-stream", &[Owned(Output)], None),
    function("drop-descriptor", &[Owned(Descriptor)], None),
    function("drop-entries", &[Owned(Entries)], None),
    function("drop-fields", &[Owned(Fields)], None),
    function("drop-request", &[Owned(Request)], None),
    function("drop-body", &[Owned(Body)], None),
    function("drop-sending", &[Owned(Sending)], None),
    function("drop-response", &[Owned(Response)], None),
    function("drop-received", &[Owned(Received)], None),
    function("drop-network", &[Owned(Network)], None),
    function("drop-lookup", &[Owned(Lookup)], None),
    function("drop-socket", &[Owned(Socket)], None),
    function("drop-bucket", &[Owned(Bucket)], None),
];
