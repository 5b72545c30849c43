//! JSON for C and C++: the functions of toolbay.h over the parser and the writer of Zig's standard library.
//!
//! Nothing is freed: the memory is released when the call ends.

const std = @import("std");
const builtin = @import("builtin");
const Value = std.json.Value;
const Writer = std.Io.Writer;

const gpa = if (builtin.cpu.arch.isWasm()) @import("memory.zig").allocator else std.heap.c_allocator;

comptime {
    // Part of every plugin, because this file is.
    _ = @import("heap.zig");
}

extern fn toolbay_out_of_memory() noreturn;
extern fn toolbay_panic(format: [*:0]const u8, ...) noreturn;

/// Panic handler that prints only the message, without the code that prints stack traces.
pub const panic = std.debug.FullPanic(struct {
    fn panic(message: []const u8, _: ?usize) noreturn {
        toolbay_panic("%.*s", @as(c_int, @intCast(message.len)), message.ptr);
    }
}.panic);

/// `toolbay_string`.
const String = extern struct {
    data: ?[*]const u8,
    size: usize,

    fn slice(string: String) []const u8 {
        return if (string.data) |data| data[0..string.size] else "";
    }

    /// Returns a NUL-terminated copy.
    fn copy(bytes: []const u8) String {
        const ended = gpa.dupeSentinel(u8, bytes, 0) catch toolbay_out_of_memory();
        return .{ .data = ended.ptr, .size = ended.len };
    }
};

/// Zig treats this file as the root of a program and would add a start function. The C library has one.
pub const _start = {};
pub const WinMainCRTStartup = {};

// Reading.

/// `toolbay_json_kind`.
const Kind = enum(c_int) { null, boolean, number, string, array, object };

export fn toolbay_json_parse(text: String) ?*const Value {
    const value = gpa.create(Value) catch toolbay_out_of_memory();
    value.* = std.json.parseFromSliceLeaky(Value, gpa, text.slice(), .{
        .duplicate_field_behavior = .use_last,
    }) catch |err| switch (err) {
        error.OutOfMemory => toolbay_out_of_memory(),
        else => return null,
    };
    return value;
}

export fn toolbay_json_kind_of(value: *const Value) Kind {
    return switch (value.*) {
        .null => .null,
        .bool => .boolean,
        .integer, .float, .number_string => .number,
        .string => .string,
        .array => .array,
        .object => .object,
    };
}

export fn toolbay_json_boolean(value: *const Value, out: *bool) bool {
    if (value.* != .bool) return false;
    out.* = value.bool;
    return true;
}

export fn toolbay_json_integer(value: *const Value, out: *i64) bool {
    out.* = whole(i64, value) orelse return false;
    return true;
}

export fn toolbay_json_natural(value: *const Value, out: *u64) bool {
    out.* = whole(u64, value) orelse return false;
    return true;
}

/// Returns the number if it has no fraction and is in range. In JSON Schema, 1.0 is an integer.
fn whole(comptime Integer: type, value: *const Value) ?Integer {
    switch (value.*) {
        .integer => |integer| return std.math.cast(Integer, integer),
        .number_string => |digits| return std.fmt.parseInt(Integer, digits, 10) catch null,
        .float => |float| {
            const limit = std.math.ldexp(@as(f64, 1), @typeInfo(Integer).int.bits - @intFromBool(Integer == i64));
            const least: f64 = if (Integer == i64) -limit else 0;
            if (@trunc(float) != float or float < least or float >= limit) return null;
            return @intFromFloat(float);
        },
        else => return null,
    }
}

export fn toolbay_json_number(value: *const Value, out: *f64) bool {
    out.* = switch (value.*) {
        .integer => |integer| @floatFromInt(integer),
        .float => |float| float,
        .number_string => |digits| std.fmt.parseFloat(f64, digits) catch return false,
        else => return false,
    };
    return true;
}

export fn toolbay_json_string(value: *const Value, out: *String) bool {
    if (value.* != .string) return false;
    out.* = .copy(value.string);
    return true;
}

export fn toolbay_json_count(value: *const Value) usize {
    return switch (value.*) {
        .array => |array| array.items.len,
        .object => |object| object.count(),
        else => 0,
    };
}

export fn toolbay_json_at(value: *const Value, index: usize) ?*const Value {
    const values = switch (value.*) {
        .array => |array| array.items,
        .object => |object| object.values(),
        else => return null,
    };
    return if (index < values.len) &values[index] else null;
}

export fn toolbay_json_key(value: *const Value, index: usize) String {
    if (value.* != .object or index >= value.object.count()) return .copy("");
    return .copy(value.object.keys()[index]);
}

export fn toolbay_json_get(value: *const Value, key: String) ?*const Value {
    if (value.* != .object) return null;
    return value.object.getPtr(key.slice());
}

export fn toolbay_json_text(value: *const Value) String {
    return .copy(std.json.Stringify.valueAlloc(gpa, value.*, .{}) catch toolbay_out_of_memory());
}

// Writing.

/// `toolbay_writer`: the text so far, and the tokens that may follow.
const Output = struct {
    text: Writer.Allocating,
    json: std.json.Stringify,
};

export fn toolbay_writer_new() *Output {
    const output = gpa.create(Output) catch toolbay_out_of_memory();
    output.text = .init(gpa);
    output.json = .{ .writer = &output.text.writer };
    return output;
}

/// Ends the call: writing to memory fails only if memory is exhausted.
fn check(result: Writer.Error!void) void {
    result catch toolbay_out_of_memory();
}

export fn toolbay_write_object(output: *Output) void {
    check(output.json.beginObject());
}

export fn toolbay_write_key(output: *Output, key: String) void {
    check(output.json.objectField(key.slice()));
}

export fn toolbay_write_object_end(output: *Output) void {
    check(output.json.endObject());
}

export fn toolbay_write_array(output: *Output) void {
    check(output.json.beginArray());
}

export fn toolbay_write_array_end(output: *Output) void {
    check(output.json.endArray());
}

export fn toolbay_write_null(output: *Output) void {
    check(output.json.write(null));
}

export fn toolbay_write_boolean(output: *Output, value: bool) void {
    check(output.json.write(value));
}

export fn toolbay_write_integer(output: *Output, value: i64) void {
    check(output.json.write(value));
}

export fn toolbay_write_natural(output: *Output, value: u64) void {
    check(output.json.write(value));
}

export fn toolbay_write_number(output: *Output, value: f64) void {
    // JSON cannot represent infinity.
    check(if (std.math.isFinite(value)) output.json.write(value) else output.json.write(null));
}

export fn toolbay_write_string(output: *Output, value: String) void {
    // The writer writes bytes that are not text as an array of numbers.
    check(output.json.write(toolbay_utf8(value).slice()));
}

export fn toolbay_write_raw(output: *Output, json: String) void {
    check(output.json.print("{s}", .{json.slice()}));
}

export fn toolbay_written(output: *Output) String {
    return .copy(output.text.written());
}

// Text.

export fn toolbay_is_utf8(text: String) bool {
    return std.unicode.utf8ValidateSlice(text.slice());
}

/// Returns the text itself, or a copy with U+FFFD instead of invalid UTF-8.
export fn toolbay_utf8(text: String) String {
    if (text.data == null or std.unicode.utf8ValidateSlice(text.slice())) return text;
    var copy: Writer.Allocating = .init(gpa);
    copy.writer.print("{f}", .{std.unicode.fmtUtf8(text.slice())}) catch toolbay_out_of_memory();
    return .copy(copy.written());
}
