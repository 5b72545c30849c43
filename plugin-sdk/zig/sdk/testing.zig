//! Native tests of a plugin, without a host: `zig build test`.
//!
//! ```zig
//! test "greets" {
//!     const answer = try toolbay.testing.call(&tools, "greet", .{ .name = "Ada" });
//!     try std.testing.expectEqualStrings("Hello, Ada.", answer.text());
//! }
//! ```

const std = @import("std");
const toolbay = @import("toolbay.zig");
const Asked = @import("ask.zig").Asked;
const Results = @import("ask.zig").Results;

/// The memory of a test is not freed, as in a plugin.
const arena = std.heap.page_allocator;

/// The outcome of a call.
pub const Answer = union(enum) {
    output: toolbay.Output,
    /// The reason why it failed.
    invalid_arguments: []const u8,
    failed: []const u8,

    /// Returns the first text, or the message of a failure; empty if there is neither.
    pub fn text(answer: Answer) []const u8 {
        const output = switch (answer) {
            .invalid_arguments, .failed => |message| return message,
            .output => |output| output,
        };
        for (output.content) |content| {
            if (content == .text) return content.text.text;
        }
        return "";
    }

    /// Returns the structured content as JSON, or null.
    pub fn structured(answer: Answer) ?[]const u8 {
        return if (answer == .output) answer.output.structured else null;
    }
};

/// Runs a tool, with the conversion from JSON and to output. It does not check the schema: the host
/// does that.
pub fn call(tools: []const toolbay.Tool, name: []const u8, arguments: anytype) !Answer {
    // `.{}` is a tuple without members, which would be an array.
    const none = @TypeOf(arguments) == @TypeOf(.{});
    const json = if (none) "{}" else try std.json.Stringify.valueAlloc(arena, arguments, .{});
    var context: toolbay.Call = .{ .arena = arena };
    const output = toolbay.dispatch(tools, &context, name, json) catch |err| {
        const message = toolbay.messageOf(&context, err);
        return if (err == error.InvalidArguments) .{ .invalid_arguments = message } else .{ .failed = message };
    };
    return .{ .output = output };
}

/// The result of a prompt, a resource or a completion, or the reason why it failed.
pub fn Outcome(comptime T: type) type {
    return union(enum) {
        output: T,
        invalid_arguments: []const u8,
        failed: []const u8,

        fn of(context: *const toolbay.Call, result: anyerror!T) @This() {
            const output = result catch |err| {
                const message = toolbay.messageOf(context, err);
                return if (err == error.InvalidArguments) .{ .invalid_arguments = message } else .{ .failed = message };
            };
            return .{ .output = output };
        }
    };
}

/// Returns the names and values in a struct of texts, such as `.{ .name = "Ada" }`.
fn settingsOf(values: anytype) ![]const toolbay.Setting {
    const names = @typeInfo(@TypeOf(values)).@"struct".field_names;
    const settings = try arena.alloc(toolbay.Setting, names.len);
    inline for (names, 0..) |name, i| settings[i] = .{ .key = name, .value = @field(values, name) };
    return settings;
}

/// Fills in a prompt. The arguments are a struct of texts.
pub fn prompt(prompts: []const toolbay.Prompt, name: []const u8, arguments: anytype) !Outcome(toolbay.Messages) {
    var context: toolbay.Call = .{ .arena = arena };
    return .of(&context, toolbay.getPrompt(prompts, &context, name, try settingsOf(arguments)));
}

/// Reads a resource. There are no items if there is no such resource.
pub fn read(resources: []const toolbay.Resource, uri: []const u8) !Outcome([]const toolbay.Item) {
    var context: toolbay.Call = .{ .arena = arena };
    return .of(&context, toolbay.readResource(resources, &context, uri));
}

/// Completes an argument of a prompt or a variable of a template. `given` is a struct of texts.
pub fn complete(completions: []const toolbay.Completion, target: []const u8, argument: []const u8, typed: []const u8, given: anytype) !Outcome(toolbay.Suggestions) {
    var context: toolbay.Call = .{ .arena = arena, .complete = try settingsOf(given) };
    const suggestions = toolbay.complete(completions, &context, if (toolbay.isTemplate(target)) .resource_template else .prompt, target, argument, typed);
    return .of(&context, suggestions);
}

/// The client's result for the question with this key, as JSON; null if it cannot answer.
pub const Response = struct { key: []const u8, result: ?[]const u8 };

/// The host of a test: the settings of the test, and the reports of the tool.
pub const host = struct {
    /// `[config]` of the grant.
    pub var configuration: []const toolbay.Setting = &.{};
    pub var is_cancelled = false;
    /// The value of the last `progress`.
    pub var done: f64 = 0;
    /// The log messages so far, one per line: `info: working`.
    pub var logged: std.ArrayList(u8) = .empty;
    /// The client's answers: `&.{.{ .key = "sure", .result = "{\"action\":\"decline\"}" }}`.
    pub var responses: []const Response = &.{};
    /// The resources that were reported as updated so far, one per line.
    pub var updated: std.ArrayList(u8) = .empty;
    var questions: std.ArrayList(Asked) = .empty;

    pub fn log(level: toolbay.Level, message: []const u8) void {
        for ([_][]const u8{ @tagName(level), ": ", message, "\n" }) |part| {
            logged.appendSlice(arena, part) catch @panic("out of memory");
        }
    }

    pub fn progress(now: f64, _: ?f64, _: ?[]const u8) void {
        done = now;
    }

    pub fn cancelled() bool {
        return is_cancelled;
    }

    pub fn config(key: []const u8) ?[]const u8 {
        for (configuration) |setting| {
            if (std.mem.eql(u8, setting.key, key)) return setting.value;
        }
        return null;
    }

    pub fn settings() []const toolbay.Setting {
        return configuration;
    }

    /// Returns the last parameters of the question with this key, as JSON; null if it was not asked.
    pub fn asked(key: []const u8) ?[]const u8 {
        var at = questions.items.len;
        while (at > 0) {
            at -= 1;
            if (std.mem.eql(u8, questions.items[at].key, key)) return questions.items[at].params;
        }
        return null;
    }

    pub fn ask(several: []const Asked) std.mem.Allocator.Error!Results {
        try questions.appendSlice(arena, several);
        const answers = try arena.alloc([]const u8, several.len);
        for (several, answers) |question, *answer| {
            const response = for (responses) |response| {
                if (std.mem.eql(u8, response.key, question.key)) break response;
            } else return .{ .invalid = try arena.print(
                "the test has no answer to the question `{s}`: add it to toolbay.testing.host.responses",
                .{question.key},
            ) };
            answer.* = response.result orelse {
                if (question.required) std.debug.panic("the client cannot answer the question `{s}`, which is required", .{question.key});
                return .{ .unsupported = "the client does not support it" };
            };
        }
        return .{ .answers = answers };
    }

    pub fn resourceUpdated(uri: []const u8) void {
        for ([_][]const u8{ uri, "\n" }) |part| updated.appendSlice(arena, part) catch @panic("out of memory");
    }
};
