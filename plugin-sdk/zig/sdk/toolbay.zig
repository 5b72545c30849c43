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
//! The schema of the arguments is generated from the struct that the function takes, the schema of the result from the
//! struct that it returns. Every call runs in its own instance: a global does not outlive the call.

const std = @import("std");
const Allocator = std.mem.Allocator;
const host = @import("host.zig");
const offer = @import("offer.zig");
const questions = @import("ask.zig");

pub const Run = @import("run.zig").Run;
pub const PromptRun = offer.PromptRun;
pub const ResourceRun = offer.ResourceRun;
pub const CompletionRun = offer.CompletionRun;
pub const schema = @import("schema.zig");
pub const testing = @import("testing.zig");

/// One tool.
pub const Tool = struct {
    /// The name that clients call: `A-Z a-z 0-9 _ - .`
    name: []const u8,
    /// A display name.
    title: ?[]const u8 = null,
    /// What the tool does and when to use it, written for the model.
    description: []const u8,
    /// The function: `.of(function)`.
    run: Run,

    /// The tool changes nothing. This and the next three are hints, by which the client decides whether to ask its user
    /// first. Clients assume the worst if a hint is missing.
    read_only: ?bool = null,
    /// The tool may delete or overwrite data, not only add to it.
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

/// One prompt: a text that the user chooses, which becomes the beginning of a conversation.
pub const Prompt = struct {
    /// The name by which clients get it: `A-Z a-z 0-9 _ - .`
    name: []const u8,
    /// A display name.
    title: ?[]const u8 = null,
    /// Its purpose, written for people.
    description: []const u8,
    /// The function: `.of(function)`.
    run: PromptRun,
    icons: []const Icon = &.{},
    /// Further members for the definition's `_meta`: a JSON object.
    meta: ?[]const u8 = null,
};

/// One resource, which clients read by its URI; or many, if the URI is a template: `{name}` stands for one or more
/// characters other than `/ ? #` and `{+name}` for any. The value of `{name}` is decoded, so that `%20` is a space.
pub const Resource = struct {
    /// The URI or the template, such as `notes://all`, or `notes://{folder}/{id}`.
    uri: []const u8,
    name: []const u8,
    /// A display name.
    title: ?[]const u8 = null,
    /// A description, written for the model.
    description: ?[]const u8 = null,
    /// The MIME type, also of items that do not have their own.
    mime_type: ?[]const u8 = null,
    /// The function: `.of(function)`.
    run: ResourceRun,
    /// The size in bytes; not for a template.
    size: ?u64 = null,
    /// The audience; empty means everyone.
    audience: []const Role = &.{},
    /// The importance, from 0 to 1.
    priority: ?f64 = null,
    /// The time of the last modification, in ISO 8601; not for a template.
    last_modified: ?[]const u8 = null,
    icons: []const Icon = &.{},
    /// Further members for the definition's `_meta`: a JSON object.
    meta: ?[]const u8 = null,
};

/// Suggests values for an argument of a prompt, or for a variable of a template.
pub const Completion = struct {
    /// The name of the prompt ...
    prompt: ?[]const u8 = null,
    /// ... or the template.
    resource: ?[]const u8 = null,
    /// The name of the argument, or of the variable.
    argument: []const u8,
    /// The function: `.of(function)`.
    run: CompletionRun,
};

/// An icon that a client can show with the tool.
pub const Icon = struct {
    /// An `https:` or `data:` URI.
    src: []const u8,
    mime_type: ?[]const u8 = null,
    /// Sizes such as `48x48`, or `any`.
    sizes: []const []const u8 = &.{},
    theme: ?enum { light, dark } = null,
};

/// Errors that a function can return in addition to its own. The model reads the names of its own errors.
pub const Error = error{ InvalidArguments, Failed };

/// Errors that the methods of a call can return.
pub const CallError = Error || Allocator.Error;

/// One call of a tool, or one request for a prompt, a resource or a completion.
pub const Call = struct {
    /// The allocator of the call. Free nothing: its memory is released when the call ends.
    arena: Allocator,
    /// The message of `invalid` or `fail`.
    message: []const u8 = "",
    /// The URI of the resource that is read.
    uri: []const u8 = "",
    /// The arguments that are complete, while another one is completed.
    complete: []const Setting = &.{},

    pub fn print(call: *Call, comptime format: []const u8, values: anytype) Allocator.Error![]const u8 {
        return call.arena.print(format, values);
    }

    /// Fails because the arguments match the schema but make no sense: `return call.invalid("...", .{})`. The model
    /// reads the message: state the problem and how to solve it.
    pub fn invalid(call: *Call, comptime format: []const u8, values: anytype) (Error || Allocator.Error) {
        call.message = try call.print(format, values);
        return error.InvalidArguments;
    }

    /// Fails: `return call.fail("...", .{})`.
    pub fn fail(call: *Call, comptime format: []const u8, values: anytype) (Error || Allocator.Error) {
        call.message = try call.print(format, values);
        return error.Failed;
    }

    /// Writes to the host's log, and to the client if it requested logs.
    pub fn log(call: *Call, level: Level, comptime format: []const u8, values: anytype) void {
        host.log(level, call.print(format, values) catch return);
    }

    /// Reports the progress of the call to the client. `done` must increase from one report to the next.
    pub fn progress(_: *Call, done: f64, of: struct { total: ?f64 = null, message: ?[]const u8 = null }) void {
        host.progress(done, of.total, of.message);
    }

    /// Returns whether the client has cancelled the call. The host ends the call in any case. Use this function only if
    /// the tool has to clean up.
    pub fn cancelled(_: *Call) bool {
        return host.cancelled();
    }

    /// Asks the caller a question: a `Form`, a `Visit`, a `Sampling` or `Roots`:
    ///
    /// ```zig
    /// const answer = try call.ask(toolbay.Form(Name){ .key = "name", .message = "Which name?" });
    /// if (answer == .accepted) return call.print("Hello, {s}.", .{answer.accepted.name});
    /// ```
    ///
    /// The host does not wait for an answer: it ends the call. When it has the answer, it runs the call again from the
    /// beginning, and `ask` returns immediately. So ask before you change anything.
    pub fn ask(call: *Call, question: anytype) CallError!Answer(@TypeOf(question).Accepted) {
        return (try questions.all(call, .{question}))[0];
    }

    /// Asks several questions at once: takes a tuple of questions, and returns a tuple of answers.
    pub fn askAll(call: *Call, several: anytype) CallError!questions.Answers(@TypeOf(several)) {
        return questions.all(call, several);
    }

    /// Notifies the clients that subscribed to this resource of the plugin that its content changed.
    pub fn resourceUpdated(_: *Call, uri: []const u8) void {
        host.resourceUpdated(uri);
    }

    /// In a completion: returns the value of an argument that is already complete.
    pub fn given(call: *Call, name: []const u8) ?[]const u8 {
        for (call.complete) |setting| {
            if (std.mem.eql(u8, setting.key, name)) return setting.value;
        }
        return null;
    }

    /// In a completion: returns the values that begin with the typed text, ignoring the case of the letters A to Z.
    pub fn beginningWith(call: *Call, typed: []const u8, values: []const []const u8) Allocator.Error![]const []const u8 {
        var found: std.ArrayList([]const u8) = .empty;
        for (values) |value| {
            if (std.ascii.startsWithIgnoreCase(value, typed)) try found.append(call.arena, value);
        }
        return found.items;
    }

    /// Returns the value of a key in `[config]` of the operator's grant: a string unchanged, any other value as JSON.
    pub fn config(_: *Call, key: []const u8) ?[]const u8 {
        return host.config(key);
    }

    /// Returns every key and value of `[config]`, sorted by key.
    pub fn settings(call: *Call) Allocator.Error![]const Setting {
        return host.settings(call.arena);
    }
};

/// The severity of a log message, as in RFC 5424.
pub const Level = enum(i32) { debug, info, notice, warning, @"error", critical, alert, emergency };

pub const Setting = struct { key: []const u8, value: []const u8 };

/// The author of a message, or the audience of a block.
pub const Role = enum(u8) { user, assistant };

/// A text with annotations, which a plain string cannot have.
pub const Text = struct {
    text: []const u8,
    /// The audience; empty means everyone.
    audience: []const Role = &.{},
    /// The importance, from 0 to 1.
    priority: ?f64 = null,
    /// The time when the content was last modified, in ISO 8601: `2026-01-12T15:00:58Z`.
    last_modified: ?[]const u8 = null,
};

pub const Image = struct {
    data: []const u8,
    mime_type: []const u8 = "image/png",
    audience: []const Role = &.{},
    priority: ?f64 = null,
    last_modified: ?[]const u8 = null,
};

pub const Audio = struct {
    data: []const u8,
    mime_type: []const u8 = "audio/wav",
    audience: []const Role = &.{},
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
    audience: []const Role = &.{},
    priority: ?f64 = null,
    last_modified: ?[]const u8 = null,
};

/// A resource whose text is part of the result.
pub const TextResource = struct {
    uri: []const u8,
    text: []const u8,
    mime_type: ?[]const u8 = null,
    audience: []const Role = &.{},
    priority: ?f64 = null,
    last_modified: ?[]const u8 = null,
};

/// A resource whose bytes are part of the result.
pub const BinaryResource = struct {
    uri: []const u8,
    data: []const u8,
    mime_type: ?[]const u8 = null,
    audience: []const Role = &.{},
    priority: ?f64 = null,
    last_modified: ?[]const u8 = null,
};

/// One block of a result. Add a new kind here; the compiler then requires its name and its fields in `abi.zig`.
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

/// One message of a prompt.
pub const Message = struct {
    role: Role,
    content: Content,

    /// Returns a message of the user: a text, or another block.
    pub fn user(content: anytype) Message {
        return .{ .role = .user, .content = contentOf(content) };
    }

    /// Returns a message of the model.
    pub fn assistant(content: anytype) Message {
        return .{ .role = .assistant, .content = contentOf(content) };
    }
};

/// A prompt with its arguments filled in.
pub const Messages = struct {
    /// The messages. They outlive the function, so they cannot be on its stack: `try call.arena.dupe(toolbay.Message,
    /// &.{ ... })`.
    messages: []const Message = &.{},
    /// The purpose of the prompt, if the arguments make it more specific than the definition.
    description: ?[]const u8 = null,
    /// The result's `_meta`: a JSON object.
    meta: ?[]const u8 = null,
};

/// One item of a resource.
pub const Item = struct {
    content: union(enum) { text: []const u8, data: []const u8 },
    /// The MIME type. Without it, the item has that of the resource.
    mime_type: ?[]const u8 = null,
    /// The URI of an item below the one that was read. Without it, the item has the URI that was read.
    uri: ?[]const u8 = null,
    /// The item's `_meta`: a JSON object.
    meta: ?[]const u8 = null,
};

/// Values that an argument could have, the best first.
pub const Suggestions = struct {
    values: []const []const u8 = &.{},
    /// The total number of values.
    total: ?u32 = null,
    /// True if there are more values than those in `values`.
    more: bool = false,
};

pub const Answer = questions.Answer;
pub const Form = questions.Form;
pub const Visit = questions.Visit;
pub const Sampling = questions.Sampling;
pub const Sampled = questions.Sampled;
pub const Roots = questions.Roots;
pub const Root = questions.Root;

const contentOf = @import("run.zig").contentOf;

/// For `main.zig`.
pub const abi = @import("abi.zig");
pub const dispatch = @import("run.zig").dispatch;
pub const messageOf = @import("run.zig").messageOf;
pub const memory = host.memory;
pub const getPrompt = offer.getPrompt;
pub const readResource = offer.readResource;
pub const complete = offer.complete;
pub const mistake = offer.mistake;
pub const isTemplate = @import("uri.zig").isTemplate;

/// For the tests of the SDK.
pub const matchUri = @import("uri.zig").match;

/// The panic handler for `main.zig`: it sends the message to the host, without the code that prints stack traces.
pub const panic = std.debug.FullPanic(host.panic);

test {
    std.testing.refAllDecls(@This());
}
