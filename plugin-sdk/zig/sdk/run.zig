//! Converts a function to a tool: reads its arguments from JSON, and converts its result to an output.

const std = @import("std");
const Allocator = std.mem.Allocator;
const toolbay = @import("toolbay.zig");
const schema = @import("schema.zig");
const Call = toolbay.Call;
const Content = toolbay.Content;
const Output = toolbay.Output;

/// A function that takes, in this order, the `*Call` and a struct of arguments, or only one of them, or neither, and
/// returns
///
/// - text: `[]const u8`,
/// - structured content: a struct, which also gives the output schema,
/// - `Text`, `Image`, `Audio`, `Link`, `TextResource`, `BinaryResource` or `Output`,
/// - several of these: a tuple,
/// - nothing: `void`, or null for an optional of the above,
/// - any of these or an error.
pub const Run = struct {
    input_schema: *const fn (Allocator) Allocator.Error![]const u8,
    output_schema: ?*const fn (Allocator) Allocator.Error![]const u8,
    call: *const fn (*Call, []const u8) anyerror!Output,

    pub fn of(comptime function: anytype) Run {
        const Function = @TypeOf(function);
        const Arguments = ArgumentsOf(Function);
        const Structured = StructuredOf(ResultOf(Function));
        return .{
            .input_schema = schema.of(Arguments, .arguments),
            .output_schema = if (Structured) |T| schema.of(T, .result) else null,
            .call = struct {
                fn call(context: *Call, json: []const u8) anyerror!Output {
                    const returned = invoke(function, context, try parse(Arguments, context, json));
                    var output: Building = .{ .arena = context.arena };
                    try output.add(if (@typeInfo(@TypeOf(returned)) == .error_union) try returned else returned);
                    output.output.content = output.content.items;
                    return output.output;
                }
            }.call,
        };
    }
};

/// Calls a function that takes the call and its arguments, one of the two, or nothing.
pub fn invoke(comptime function: anytype, context: *Call, arguments: anytype) @typeInfo(@TypeOf(function)).@"fn".return_type.? {
    const parameters = @typeInfo(@TypeOf(function)).@"fn".param_types;
    if (parameters.len == 2) return function(context, arguments);
    if (parameters.len == 0) return function();
    return function(if (parameters[0] == *Call) context else arguments);
}

pub fn ArgumentsOf(comptime Function: type) type {
    const parameters = @typeInfo(Function).@"fn".param_types;
    const wrong = "a function takes (*toolbay.Call, Arguments), one of the two, or nothing; this is " ++ @typeName(Function);
    if (parameters.len > 2) @compileError(wrong);
    if (parameters.len == 2 and parameters[0] != *Call) @compileError(wrong);
    if (parameters.len == 0 or (parameters.len == 1 and parameters[0] == *Call)) return struct {};
    const Arguments = parameters[parameters.len - 1] orelse @compileError(wrong);
    if (@typeInfo(Arguments) != .@"struct") @compileError(wrong);
    return Arguments;
}

fn ResultOf(comptime Function: type) type {
    const Returned = @typeInfo(Function).@"fn".return_type.?;
    return switch (@typeInfo(Returned)) {
        .error_union => |result| result.payload,
        else => Returned,
    };
}

/// The host has checked the arguments against the schema, but a type may be stricter than its schema.
fn parse(comptime Arguments: type, context: *Call, json: []const u8) !Arguments {
    return std.json.parseFromSliceLeaky(Arguments, context.arena, json, .{}) catch |err| switch (err) {
        error.OutOfMemory => return error.OutOfMemory,
        else => return context.invalid("the arguments do not fit the type of the tool: {s}", .{@errorName(err)}),
    };
}

/// The type of the structured content in a result, if there is one. An optional has none: a declared type must always
/// be present.
fn StructuredOf(comptime Result: type) ?type {
    switch (@typeInfo(Result)) {
        .@"struct" => |info| {
            if (!info.is_tuple) return if (isContent(Result) or Result == Output) null else Result;
            for (info.field_types) |Field| {
                if (StructuredOf(Field)) |Structured| return Structured;
            }
            return null;
        },
        else => return null,
    }
}

/// Returns whether the type is a block, of any kind or of one.
pub fn isContent(comptime T: type) bool {
    for (@typeInfo(Content).@"union".field_types) |Field| {
        if (T == Field) return true;
    }
    return T == Content;
}

/// Returns a text, or a block of one kind, as a block.
pub fn contentOf(value: anytype) Content {
    const T = @TypeOf(value);
    if (T == Content) return value;
    if (comptime !isContent(T)) return .{ .text = .{ .text = value } };
    const kind = comptime for (@typeInfo(Content).@"union".field_names, @typeInfo(Content).@"union".field_types) |name, Field| {
        if (T == Field) break name;
    } else unreachable;
    return @unionInit(Content, kind, value);
}

const Building = struct {
    arena: Allocator,
    content: std.ArrayList(Content) = .empty,
    output: Output = .{},

    fn add(building: *Building, value: anytype) Allocator.Error!void {
        const T = @TypeOf(value);
        if (T == Output) {
            try building.content.appendSlice(building.arena, value.content);
            if (value.structured) |structured| building.output.structured = structured;
            if (value.meta) |meta| building.output.meta = meta;
        } else if (comptime isContent(T)) {
            try building.content.append(building.arena, contentOf(value));
        } else switch (@typeInfo(T)) {
            .void => {},
            .optional => if (value) |some| try building.add(some),
            .pointer => try building.content.append(building.arena, contentOf(value)),
            .@"struct" => |info| if (info.is_tuple) {
                inline for (value) |each| try building.add(each);
            } else {
                building.output.structured = try std.json.Stringify.valueAlloc(building.arena, value, .{});
            },
            else => @compileError("a tool cannot return " ++ @typeName(T)),
        }
    }
};

/// Finds the tool and runs it. `messageOf` returns the meaning of an error.
pub fn dispatch(tools: []const toolbay.Tool, context: *Call, name: []const u8, arguments: []const u8) anyerror!Output {
    for (tools) |tool| {
        if (std.mem.eql(u8, tool.name, name)) return tool.run.call(context, arguments);
    }
    return context.fail("there is no tool `{s}`", .{name});
}

/// Returns the text of an error for the model: its message, or else its name.
pub fn messageOf(context: *const Call, err: anyerror) []const u8 {
    return switch (err) {
        error.InvalidArguments, error.Failed => if (context.message.len > 0) context.message else @errorName(err),
        else => @errorName(err),
    };
}
