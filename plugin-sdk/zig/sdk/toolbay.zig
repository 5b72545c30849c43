//! Toolbay plugins in Zig: a plain function becomes an MCP tool.
//!
//! ```zig
//! const toolbay = @import("toolbay");
//!
//! const Greet = struct {
//!     name: []const u8,
//!     excited: bool = false,
//!
//!     pub const docs = .{ .name = "Who to greet.", .excited = "Whether to shout." };
//! };
//!
//! fn greet(call: *toolbay.Call, args: Greet) ![]const u8 {
//!     return if (args.excited) call.print("HELLO, {s}!", .{args.name}) else call.print("Hello, {s}.", .{args.name});
//! }
//!
//! pub const tools = [_]toolbay.Tool{
//!     .{ .name = "greet", .description = "Greets somebody by name.", .run = .of(greet), .read_only = true },
//! };
//! ```
//!
//! The schema of the arguments comes from the struct that the function takes, the schema of the result from the struct
//! that it returns. Every call runs in its own instance: a global does not outlive the call.

const std = @import("std");
const Allocator = std.mem.Allocator;
const host = @import("host.zig");

pub const Run = @import("run.zig").Run;
pub const schema = @import("schema.zig");
pub const testing = @import("testing.zig");

/// One tool.
pub const Tool = struct {
    /// What clients call: `A-Z a-z 0-9 _ - .`
    name: []const u8,
    /// A display name.
    title: ?[]const u8 = null,
    /// What the tool does and when to use it: the model decides by it.
    description: []const u8,
    /// The function: `.of(function)`.
    run: Run,

    /// The tool changes nothing. This and the next three are hints to the client, which decides by them whether to ask
    /// its user first; what is not said is taken for the worst.
    read_only: ?bool = null,
    /// The tool may delete or overwrite, rather than only add.
    destructive: ?bool = null,
    /// Repeating a call has no further effect.
    idempotent: ?bool = null,
    /// The tool interacts with external entities, such as the web.
    open_world: ?bool = null,

    /// Icons of the tool.
    icons: []const Icon = &.{},
    /// Further members for the definition's `_meta`: a JSON object.
    meta: ?[]const u8 = null,
};

/// An icon that a client can show with the tool.
pub const Icon = struct {
    /// An `https:` or `data:` URI.
    src: []const u8,
    mime_type: ?[]const u8 = null,
    /// Such as `48x48`, or `any`.
    sizes: []const []const u8 = &.{},
    theme: ?enum { light, dark } = null,
};

/// Errors that a function can return besides its own; of its own errors the model reads the name.
pub const Error = error{ InvalidArguments, Failed };

/// One call of a tool.
pub const Call = struct {
    /// The allocator of the call. Free nothing: its memory is released when the call ends.
    arena: Allocator,
    /// The message of `invalid` or `fail`.
    message: []const u8 = "",

    pub fn print(call: *Call, comptime format: []const u8, values: anytype) Allocator.Error![]const u8 {
        return call.arena.print(format, values);
    }

    /// The arguments match the schema but make no sense: `return call.invalid("...", .{})`. The model reads the message:
    /// say what was wrong and what would be right.
    pub fn invalid(call: *Call, comptime format: []const u8, values: anytype) (Error || Allocator.Error) {
        call.message = try call.print(format, values);
        return error.InvalidArguments;
    }

    /// The tool could not do its work: `return call.fail("...", .{})`.
    pub fn fail(call: *Call, comptime format: []const u8, values: anytype) (Error || Allocator.Error) {
        call.message = try call.print(format, values);
        return error.Failed;
    }

    /// Writes to the host's log, and to the client if it asked for logs.
    pub fn log(call: *Call, level: Level, comptime format: []const u8, values: anytype) void {
        host.log(level, call.print(format, values) catch return);
    }

    /// Tells the client how far the call is. `done` must grow from call to call.
    pub fn progress(_: *Call, done: f64, of: struct { total: ?f64 = null, message: ?[]const u8 = null }) void {
        host.progress(done, of.total, of.message);
    }

    /// Whether the client no longer wants the answer. The host stops the call in any case: ask only if there is
    /// something to put in order.
    pub fn cancelled(_: *Call) bool {
        return host.cancelled();
    }

    /// The value of a key in `[config]` of the operator's grant. A string comes as it is, any other value as JSON.
    pub fn config(_: *Call, key: []const u8) ?[]const u8 {
        return host.config(key);
    }

    /// Every key and value of `[config]`, sorted by key.
    pub fn settings(call: *Call) Allocator.Error![]const Setting {
        return host.settings(call.arena);
    }
};

/// The severity of a log message, as in RFC 5424.
pub const Level = enum(i32) { debug, info, notice, warning, @"error", critical, alert, emergency };

pub const Setting = struct { key: []const u8, value: []const u8 };

/// Who a block is meant for.
pub const Audience = enum(u8) { user, assistant };

/// A text with annotations, which a function that only returns a string cannot give.
pub const Text = struct {
    text: []const u8,
    /// Who it is for; empty means everyone.
    audience: []const Audience = &.{},
    /// How important it is, from 0 to 1.
    priority: ?f64 = null,
    /// When the content was last modified, in ISO 8601: `2026-01-12T15:00:58Z`.
    last_modified: ?[]const u8 = null,
};

pub const Image = struct {
    data: []const u8,
    mime_type: []const u8 = "image/png",
    audience: []const Audience = &.{},
    priority: ?f64 = null,
    last_modified: ?[]const u8 = null,
};

pub const Audio = struct {
    data: []const u8,
    mime_type: []const u8 = "audio/wav",
    audience: []const Audience = &.{},
    priority: ?f64 = null,
    last_modified: ?[]const u8 = null,
};

/// A link to a resource that the client can fetch.
pub const Link = struct {
    uri: []const u8,
    name: []const u8,
    title: ?[]const u8 = null,
    description: ?[]const u8 = null,
    mime_type: ?[]const u8 = null,
    size: ?u64 = null,
    audience: []const Audience = &.{},
    priority: ?f64 = null,
    last_modified: ?[]const u8 = null,
};

/// A resource whose text is part of the result.
pub const TextResource = struct {
    uri: []const u8,
    text: []const u8,
    mime_type: ?[]const u8 = null,
    audience: []const Audience = &.{},
    priority: ?f64 = null,
    last_modified: ?[]const u8 = null,
};

/// A resource whose bytes are part of the result.
pub const BinaryResource = struct {
    uri: []const u8,
    data: []const u8,
    mime_type: ?[]const u8 = null,
    audience: []const Audience = &.{},
    priority: ?f64 = null,
    last_modified: ?[]const u8 = null,
};

/// One block of a result. A new kind begins here; the compiler then asks `abi.zig` for its name and its fields.
pub const Content = union(enum) {
    text: Text,
    image: Image,
    audio: Audio,
    link: Link,
    text_resource: TextResource,
    binary_resource: BinaryResource,
};

/// A result built in steps, if no return type suffices.
pub const Output = struct {
    content: []const Content = &.{},
    /// The structured content as JSON.
    structured: ?[]const u8 = null,
    /// The result's `_meta`: a JSON object.
    meta: ?[]const u8 = null,
};

/// For `main.zig`.
pub const abi = @import("abi.zig");
pub const dispatch = @import("run.zig").dispatch;
pub const messageOf = @import("run.zig").messageOf;
pub const memory = host.memory;

/// What `main.zig` makes of a panic: its message goes to the host, without the code that prints stack traces.
pub const panic = std.debug.FullPanic(host.panic);

test {
    std.testing.refAllDecls(@This());
}
