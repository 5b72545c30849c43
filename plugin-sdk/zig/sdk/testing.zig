//! Tests of a plugin on the machine where it is written, without a host: `zig build test`.
//!
//! ```zig
//! test "greets" {
//!     const answer = try toolbay.testing.call(&tools, "greet", .{ .name = "Ada" });
//!     try std.testing.expectEqualStrings("Hello, Ada.", answer.text());
//! }
//! ```

const std = @import("std");
const toolbay = @import("toolbay.zig");

/// A test's memory is not freed either.
const arena = std.heap.page_allocator;

/// The outcome of a call.
pub const Answer = union(enum) {
    output: toolbay.Output,
    /// Why it failed.
    invalid_arguments: []const u8,
    failed: []const u8,

    /// The first text, or the message of a failure; empty without either.
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

    /// The structured content as JSON, or null.
    pub fn structured(answer: Answer) ?[]const u8 {
        return if (answer == .output) answer.output.structured else null;
    }
};

/// Runs a tool the whole way from JSON to output. The schema is not checked: the host does that.
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

/// The host of a test: what the test sets, and what the tool reported.
pub const host = struct {
    /// `[config]` of the grant.
    pub var configuration: []const toolbay.Setting = &.{};
    pub var is_cancelled = false;
    /// How far the last `progress` was.
    pub var done: f64 = 0;
    /// What was logged so far, a line each: `info: working`.
    pub var logged: std.ArrayList(u8) = .empty;

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
};
