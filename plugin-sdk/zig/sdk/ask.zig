//! Questions to the caller: forms, pages to visit, texts of the client's model, and the user's folders.

const std = @import("std");
const toolbay = @import("toolbay.zig");
const host = @import("host.zig");
const schema = @import("schema.zig");
const Call = toolbay.Call;
const Stringify = std.json.Stringify;
const Value = std.json.Value;

/// The kind of a question, with the numbers of the contract.
pub const Kind = enum(u8) { form, url, sampling, roots };

/// A question as the host receives it.
pub const Asked = struct {
    key: []const u8,
    kind: Kind,
    /// The parameters as JSON.
    params: []const u8,
    required: bool,
};

/// The host's response: the client's results as JSON, or the reason why there are none.
pub const Results = union(enum) {
    answers: []const []const u8,
    unsupported: []const u8,
    invalid: []const u8,
};

/// The outcome of a question.
pub fn Answer(comptime T: type) type {
    return union(enum) {
        /// The form is filled in, the user agreed to open the page, or there is an answer.
        accepted: T,
        /// The user refused.
        declined,
        /// The user closed the form without a decision.
        cancelled,
        /// The client cannot answer an optional question, with the reason.
        unsupported: []const u8,
    };
}

/// A form for the user to fill in. Each field of `T` is `[]const u8`, a number, a `bool`, an enum, an optional of these or a
/// slice of an enum; one with a default may be left out. Do not ask for secrets: the client shows what the user types.
pub fn Form(comptime T: type) type {
    comptime check(T);
    return struct {
        /// Identifies the question within the call: 1 to 64 characters of `A-Z a-z 0-9 _ - .`
        key: []const u8,
        /// The purpose of the form.
        message: []const u8,
        /// If set, a client that cannot answer leads to `.unsupported`. Without it, the call ends.
        optional: bool = false,

        const Self = @This();
        pub const Accepted = T;
        pub const kind: Kind = .form;

        pub fn write(form: Self, json: *Stringify) Stringify.Error!void {
            try schema.member(json, "message", form.message);
            try json.objectField("requestedSchema");
            try schema.write(T, .form, json);
        }

        pub fn read(call: *Call, result: Value) !T {
            const content: Value = member(result, "content") orelse .{ .object = .empty };
            return std.json.parseFromValueLeaky(T, call.arena, content, .{ .ignore_unknown_fields = true });
        }
    };
}

fn check(comptime T: type) void {
    schema.checkDocs(T);
    const fields = @typeInfo(T).@"struct";
    for (fields.field_names, fields.field_types, fields.field_attrs) |name, Field, attributes| {
        const of = "the field " ++ name ++ " of the form " ++ @typeName(T);
        const Inner = if (@typeInfo(Field) == .optional) @typeInfo(Field).optional.child else Field;
        const list = switch (@typeInfo(Inner)) {
            .pointer => |pointer| pointer.size == .slice and @typeInfo(pointer.child) == .@"enum",
            else => false,
        };
        if (!list and schema.simple(Inner) == null) {
            @compileError(of ++ " must be []const u8, a number, a bool, an enum or a slice of an enum");
        }
        if (@typeInfo(Field) == .optional and attributes.default_value_ptr == null) {
            @compileError(of ++ " is optional and needs a default: = null");
        }
        if (schema.docOf(T, name).pattern != null) @compileError(of ++ " has a pattern, which clients cannot show");
    }
}

/// A page for the user to open, such as one to sign in. The answer states whether the user agreed, not what happened on
/// the page.
pub const Visit = struct {
    key: []const u8,
    /// The purpose of the page.
    message: []const u8,
    /// Begins with `https://`.
    url: []const u8,
    optional: bool = false,

    pub const Accepted = void;
    pub const kind: Kind = .url;

    pub fn write(visit: Visit, json: *Stringify) Stringify.Error!void {
        try schema.member(json, "message", visit.message);
        try schema.member(json, "url", visit.url);
    }

    pub fn read(_: *Call, _: Value) !void {}
};

/// A text for the client's model to write.
pub const Sampling = struct {
    key: []const u8,
    /// The user's text. For a conversation, use `messages`.
    text: []const u8 = "",
    messages: []const Said = &.{},
    /// The system prompt.
    system: ?[]const u8 = null,
    max_tokens: u32,
    /// Further parameters as in MCP, such as `temperature`: a JSON object, whose members replace those of the above.
    more: ?[]const u8 = null,
    optional: bool = false,

    pub const Said = struct { role: toolbay.Role, text: []const u8 };
    pub const Accepted = Sampled;
    pub const kind: Kind = .sampling;

    pub fn write(sampling: Sampling, json: *Stringify) Stringify.Error!void {
        const only = [_]Said{.{ .role = .user, .text = sampling.text }};
        try json.objectField("messages");
        try json.beginArray();
        for (if (sampling.messages.len > 0) sampling.messages else &only) |said| {
            try json.write(.{ .role = @tagName(said.role), .content = .{ .type = "text", .text = said.text } });
        }
        try json.endArray();
        if (sampling.system) |system| try schema.member(json, "systemPrompt", system);
        try schema.member(json, "maxTokens", sampling.max_tokens);
    }

    pub fn read(call: *Call, result: Value) !Sampled {
        const content = member(result, "content") orelse .null;
        const blocks: []const Value = if (content == .array) content.array.items else &.{content};
        var text: std.ArrayList(u8) = .empty;
        for (blocks) |block| {
            const part = string(block, "text") orelse continue;
            if (text.items.len > 0) try text.append(call.arena, '\n');
            try text.appendSlice(call.arena, part);
        }
        return .{
            .text = text.items,
            .model = string(result, "model"),
            .stop_reason = string(result, "stopReason"),
            .result = result,
        };
    }
};

/// The text that the client's model wrote.
pub const Sampled = struct {
    /// Several blocks are joined by line feeds.
    text: []const u8,
    model: ?[]const u8,
    /// Such as `endTurn` or `maxTokens`.
    stop_reason: ?[]const u8,
    /// The whole result, as in MCP.
    result: Value,
};

/// The folders that the user works in.
pub const Roots = struct {
    key: []const u8,
    optional: bool = false,

    pub const Accepted = []const Root;
    pub const kind: Kind = .roots;

    pub fn write(_: Roots, _: *Stringify) Stringify.Error!void {}

    pub fn read(call: *Call, result: Value) ![]const Root {
        const listed = member(result, "roots") orelse return error.MissingField;
        return std.json.parseFromValueLeaky([]const Root, call.arena, listed, .{ .ignore_unknown_fields = true });
    }
};

/// A folder that the user works in. The plugin can open it only if its grant allows that.
pub const Root = struct {
    /// Begins with `file://`.
    uri: []const u8,
    name: ?[]const u8 = null,
};

fn member(value: Value, name: []const u8) ?Value {
    return if (value == .object) value.object.get(name) else null;
}

fn string(value: Value, name: []const u8) ?[]const u8 {
    const found = member(value, name) orelse return null;
    return if (found == .string) found.string else null;
}

/// The answers to a tuple of questions, which are also a tuple.
pub fn Answers(comptime Questions: type) type {
    const Types = @typeInfo(Questions).@"struct".field_types;
    var answers: [Types.len]type = undefined;
    for (Types, &answers) |Question, *Given| Given.* = Answer(Question.Accepted);
    return @Tuple(&answers);
}

/// Asks several questions at once.
pub fn all(call: *Call, questions: anytype) toolbay.CallError!Answers(@TypeOf(questions)) {
    const count = @typeInfo(@TypeOf(questions)).@"struct".field_types.len;
    var asked: [count]Asked = undefined;
    inline for (questions, &asked) |question, *to| {
        to.* = .{
            .key = question.key,
            .kind = @TypeOf(question).kind,
            .params = try params(call, question),
            .required = !question.optional,
        };
    }
    var answers: Answers(@TypeOf(questions)) = undefined;
    switch (try host.ask(call.arena, &asked)) {
        .answers => |results| inline for (questions, 0..) |question, i| {
            answers[i] = try answerTo(call, question, if (i < results.len) results[i] else "");
        },
        .unsupported => |why| inline for (0..count) |i| {
            answers[i] = .{ .unsupported = why };
        },
        .invalid => |why| return call.fail("{s}", .{why}),
    }
    return answers;
}

fn params(call: *Call, question: anytype) toolbay.CallError![]const u8 {
    var text: std.Io.Writer.Allocating = .init(call.arena);
    var json: Stringify = .{ .writer = &text.writer };
    writeParams(question, &json) catch return error.OutOfMemory;
    const more = if (@hasField(@TypeOf(question), "more")) question.more orelse return text.written() else return text.written();
    // The later of two members with the same name wins.
    const both = try call.print("[{s},{s}]", .{ text.written(), more });
    const parts = std.json.parseFromSliceLeaky([2]Value, call.arena, both, .{}) catch |err| switch (err) {
        error.OutOfMemory => return error.OutOfMemory,
        else => return call.fail("the question `{s}`: `more` must be a JSON object", .{question.key}),
    };
    if (parts[1] != .object) return call.fail("the question `{s}`: `more` must be a JSON object", .{question.key});
    var whole = parts[0].object;
    for (parts[1].object.keys(), parts[1].object.values()) |key, value| try whole.put(call.arena, key, value);
    return Stringify.valueAlloc(call.arena, Value{ .object = whole }, .{});
}

fn writeParams(question: anytype, json: *Stringify) Stringify.Error!void {
    try json.beginObject();
    try question.write(json);
    try json.endObject();
}

fn answerTo(call: *Call, question: anytype, text: []const u8) toolbay.CallError!Answer(@TypeOf(question).Accepted) {
    const Question = @TypeOf(question);
    const wrong = "the answer to the question `{s}`: {s}";
    const result = std.json.parseFromSliceLeaky(Value, call.arena, text, .{}) catch |err|
        return call.fail(wrong, .{ question.key, @errorName(err) });
    if (Question.kind == .form or Question.kind == .url) {
        const action = string(result, "action") orelse "";
        if (std.mem.eql(u8, action, "decline")) return .declined;
        if (std.mem.eql(u8, action, "cancel")) return .cancelled;
        if (!std.mem.eql(u8, action, "accept")) {
            return call.fail(wrong, .{ question.key, "its `action` must be accept, decline or cancel" });
        }
    }
    return .{ .accepted = Question.read(call, result) catch |err| return call.fail(wrong, .{ question.key, @errorName(err) }) };
}
