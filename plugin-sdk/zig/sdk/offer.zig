//! Prompts, resources and completions: converts their functions to those that the host calls.

const std = @import("std");
const Allocator = std.mem.Allocator;
const toolbay = @import("toolbay.zig");
const run = @import("run.zig");
const schema = @import("schema.zig");
const uris = @import("uri.zig");
const Call = toolbay.Call;
const Content = toolbay.Content;
const Setting = toolbay.Setting;

/// An argument of a prompt, or a variable of a URI.
pub const Argument = struct {
    name: []const u8,
    title: ?[]const u8,
    description: ?[]const u8,
    required: bool,
};

/// A function that takes, in this order, the `*Call` and a struct of arguments, or only one of them, or neither. Each field
/// is `[]const u8`, a number, a `bool`, an enum or an optional of these; one with a default may be left out. It returns
///
/// - text or another block (`[]const u8`, `Text`, `Image` ...): one message of the user,
/// - several of these: a tuple,
/// - `Message`, `[]const Message` or `Messages`,
/// - any of these or an error.
pub const PromptRun = struct {
    arguments: []const Argument,
    call: *const fn (*Call, []const Setting) anyerror!toolbay.Messages,

    pub fn of(comptime function: anytype) PromptRun {
        const Arguments = run.ArgumentsOf(@TypeOf(function));
        return .{
            .arguments = comptime argumentsOf(Arguments),
            .call = struct {
                fn call(context: *Call, values: []const Setting) anyerror!toolbay.Messages {
                    const returned = run.invoke(function, context, try parse(Arguments, context, values));
                    var building: Conversation = .{ .arena = context.arena };
                    try building.add(if (@typeInfo(@TypeOf(returned)) == .error_union) try returned else returned);
                    building.messages.messages = building.list.items;
                    return building.messages;
                }
            }.call,
        };
    }
};

/// A function that takes, in this order, the `*Call` and, for a template, a struct with the variables of the URI, or only one
/// of them, or neither. The fields have the types of those of a prompt. It returns
///
/// - text: `[]const u8`,
/// - bytes, or an item with its own URI: `Item`,
/// - a struct, which becomes JSON,
/// - several of these: `[]const Item`, or a tuple,
/// - null for an optional of the above if there is no such resource,
/// - any of these or an error.
pub const ResourceRun = struct {
    arguments: []const Argument,
    call: *const fn (*Call, []const Setting) anyerror![]const toolbay.Item,

    pub fn of(comptime function: anytype) ResourceRun {
        const Variables = run.ArgumentsOf(@TypeOf(function));
        return .{
            .arguments = comptime argumentsOf(Variables),
            .call = struct {
                fn call(context: *Call, values: []const Setting) anyerror![]const toolbay.Item {
                    const returned = run.invoke(function, context, try parse(Variables, context, values));
                    var items: Items = .{ .arena = context.arena };
                    try items.add(if (@typeInfo(@TypeOf(returned)) == .error_union) try returned else returned);
                    return items.list.items;
                }
            }.call,
        };
    }
};

/// A function that takes the text that was typed so far as `[]const u8`, optionally preceded by the `*Call`, whose
/// `given` has the arguments that are complete. It returns `[]const []const u8` or `Suggestions`, or one of these or an
/// error.
pub const CompletionRun = struct {
    call: *const fn (*Call, []const u8) anyerror!toolbay.Suggestions,

    pub fn of(comptime function: anytype) CompletionRun {
        return .{
            .call = struct {
                fn call(context: *Call, typed: []const u8) anyerror!toolbay.Suggestions {
                    const returned = run.invoke(function, context, typed);
                    const values = if (@typeInfo(@TypeOf(returned)) == .error_union) try returned else returned;
                    return if (@TypeOf(values) == toolbay.Suggestions) values else .{ .values = values };
                }
            }.call,
        };
    }
};

// Arguments.

fn argumentsOf(comptime T: type) []const Argument {
    comptime {
        schema.checkDocs(T);
        const fields = @typeInfo(T).@"struct";
        var arguments: []const Argument = &.{};
        for (fields.field_names, fields.field_types, fields.field_attrs) |name, Field, attributes| {
            const doc = schema.docOf(T, name);
            const required = attributes.default_value_ptr == null;
            if (!isPlain(Field)) @compileError("the field " ++ name ++ " of " ++ @typeName(T) ++
                " must be []const u8, a number, a bool or an enum, because clients give it as text");
            if (required and @typeInfo(Field) == .optional) @compileError("the field " ++ name ++ " of " ++ @typeName(T) ++
                " is optional and needs a default: = null");
            arguments = arguments ++ [_]Argument{.{
                .name = name,
                .title = doc.title,
                .description = doc.description,
                .required = required,
            }};
        }
        return arguments;
    }
}

fn isPlain(comptime T: type) bool {
    return switch (@typeInfo(T)) {
        .optional => |optional| isPlain(optional.child),
        else => schema.simple(T) != null,
    };
}

fn find(values: []const Setting, name: []const u8) ?[]const u8 {
    for (values) |value| {
        if (std.mem.eql(u8, value.key, name)) return value.value;
    }
    return null;
}

/// Reads values, which are text, into a struct.
fn parse(comptime T: type, context: *Call, values: []const Setting) !T {
    const fields = @typeInfo(T).@"struct";
    var arguments: T = undefined;
    inline for (fields.field_names, fields.field_types, fields.field_attrs) |name, Field, attributes| {
        @field(arguments, name) = if (find(values, name)) |text|
            parsed(Field, text) orelse return context.invalid("`{s}` must be {s}, not \"{s}\"", .{ name, expected(Field), text })
        else if (comptime attributes.defaultValue(Field)) |default|
            default
        else
            return context.invalid("`{s}` is missing", .{name});
    }
    return arguments;
}

fn parsed(comptime T: type, text: []const u8) ?T {
    const trimmed = std.mem.trim(u8, text, &std.ascii.whitespace);
    return switch (@typeInfo(T)) {
        // Not only `parsed`, because its null would be a value of the optional.
        .optional => |optional| if (parsed(optional.child, text)) |value| @as(T, value) else null,
        .bool => if (std.mem.eql(u8, trimmed, "true")) true else if (std.mem.eql(u8, trimmed, "false")) false else null,
        .int => std.fmt.parseInt(T, trimmed, 10) catch null,
        .float => std.fmt.parseFloat(T, trimmed) catch null,
        .@"enum" => std.meta.stringToEnum(T, trimmed),
        else => text,
    };
}

fn expected(comptime T: type) []const u8 {
    return switch (@typeInfo(T)) {
        .optional => |optional| expected(optional.child),
        .bool => "true or false",
        .int => "an integer of its size",
        .float => "a number",
        .@"enum" => comptime names: {
            var names: []const u8 = "one of";
            for (std.meta.fieldNames(T), 0..) |name, i| names = names ++ (if (i == 0) " " else ", ") ++ name;
            break :names names;
        },
        else => "a text",
    };
}

// Results.

const Conversation = struct {
    arena: Allocator,
    list: std.ArrayList(toolbay.Message) = .empty,
    messages: toolbay.Messages = .{},

    fn add(building: *Conversation, value: anytype) Allocator.Error!void {
        const T = @TypeOf(value);
        if (T == toolbay.Messages) {
            try building.list.appendSlice(building.arena, value.messages);
            building.messages = value;
        } else if (T == []const toolbay.Message) {
            try building.list.appendSlice(building.arena, value);
        } else if (T == toolbay.Message) {
            try building.list.append(building.arena, value);
        } else if (comptime run.isContent(T)) {
            try building.list.append(building.arena, .user(value));
        } else switch (@typeInfo(T)) {
            .optional => if (value) |some| try building.add(some),
            .pointer => try building.list.append(building.arena, .user(value)),
            .@"struct" => |info| if (info.is_tuple) {
                inline for (value) |each| try building.add(each);
            } else @compileError("a prompt cannot return " ++ @typeName(T)),
            else => @compileError("a prompt cannot return " ++ @typeName(T)),
        }
    }
};

const Items = struct {
    arena: Allocator,
    list: std.ArrayList(toolbay.Item) = .empty,

    fn add(items: *Items, value: anytype) Allocator.Error!void {
        const T = @TypeOf(value);
        if (T == []const toolbay.Item) {
            try items.list.appendSlice(items.arena, value);
        } else if (T == toolbay.Item) {
            try items.list.append(items.arena, value);
        } else if (comptime run.isContent(T)) {
            @compileError("a resource cannot return " ++ @typeName(T) ++ ": use toolbay.Item");
        } else switch (@typeInfo(T)) {
            .optional => if (value) |some| try items.add(some),
            .pointer => try items.list.append(items.arena, .{ .content = .{ .text = value } }),
            .@"struct" => |info| if (info.is_tuple) {
                inline for (value) |each| try items.add(each);
            } else {
                const json = try std.json.Stringify.valueAlloc(items.arena, value, .{});
                try items.list.append(items.arena, .{ .content = .{ .text = json }, .mime_type = "application/json" });
            },
            else => @compileError("a resource cannot return " ++ @typeName(T)),
        }
    }
};

// Requests.

/// Finds the prompt and fills it in.
pub fn getPrompt(prompts: []const toolbay.Prompt, context: *Call, name: []const u8, values: []const Setting) anyerror!toolbay.Messages {
    for (prompts) |prompt| {
        if (std.mem.eql(u8, prompt.name, name)) return prompt.run.call(context, values);
    }
    return context.fail("there is no prompt `{s}`", .{name});
}

/// Finds the resource and reads it. Returns no items if there is no such resource. A resource without variables takes
/// precedence over a template that its URI matches.
pub fn readResource(resources: []const toolbay.Resource, context: *Call, uri: []const u8) anyerror![]const toolbay.Item {
    context.uri = uri;
    for ([_]bool{ false, true }) |templates| {
        for (resources) |resource| {
            if (uris.isTemplate(resource.uri) != templates) continue;
            const values = try uris.match(context.arena, resource.uri, uri) orelse continue;
            const items = try context.arena.dupe(toolbay.Item, try resource.run.call(context, values));
            for (items) |*item| {
                if (item.uri == null) item.uri = uri;
                if (item.mime_type == null) item.mime_type = resource.mime_type;
            }
            return items;
        }
    }
    return &.{};
}

/// The kind of item whose argument is completed, with the numbers of the contract.
pub const Kind = enum(u8) { prompt, resource_template };

/// Finds the completion and calls it. An argument without a completion has no values.
pub fn complete(completions: []const toolbay.Completion, context: *Call, kind: Kind, target: []const u8, argument: []const u8, typed: []const u8) anyerror!toolbay.Suggestions {
    for (completions) |completion| {
        const name = switch (kind) {
            .prompt => completion.prompt,
            .resource_template => completion.resource,
        } orelse continue;
        if (!std.mem.eql(u8, name, target) or !std.mem.eql(u8, completion.argument, argument)) continue;
        return completion.run.call(context, typed);
    }
    return .{};
}

// Errors.

/// Returns a message about an error in the items that a plugin offers, or null. `main.zig` makes it a compile error.
pub fn mistake(comptime prompts: []const toolbay.Prompt, comptime resources: []const toolbay.Resource, comptime completions: []const toolbay.Completion) ?[]const u8 {
    comptime {
        @setEvalBranchQuota(1_000_000);
        for (prompts, 0..) |prompt, i| {
            for (prompts[0..i]) |other| {
                if (same(prompt.name, other.name)) return "two prompts have the name `" ++ prompt.name ++ "`";
            }
        }
        for (resources, 0..) |resource, i| {
            for (resources[0..i]) |other| {
                if (same(resource.uri, other.uri)) return "two resources have the URI `" ++ resource.uri ++ "`";
            }
            for (resource.run.arguments) |variable| {
                if (!uris.hasVariable(resource.uri, variable.name)) {
                    return "resource `" ++ resource.uri ++ "`: its URI has no variable {" ++ variable.name ++ "}";
                }
            }
        }
        for (completions, 0..) |completion, i| {
            if (mistakeOf(completion, prompts, resources)) |why| return why;
            for (completions[0..i]) |other| {
                if (!same(completion.argument, other.argument)) continue;
                if (sameTarget(completion.prompt, other.prompt) or sameTarget(completion.resource, other.resource)) {
                    return "two completions are for the same argument `" ++ completion.argument ++ "`";
                }
            }
        }
        return null;
    }
}

fn mistakeOf(comptime completion: toolbay.Completion, comptime prompts: []const toolbay.Prompt, comptime resources: []const toolbay.Resource) ?[]const u8 {
    const argument = completion.argument;
    if ((completion.prompt == null) == (completion.resource == null)) {
        return "the completion of `" ++ argument ++ "` needs either a prompt or a resource";
    }
    const what = if (completion.prompt != null) "prompt" else "resource";
    const target = completion.prompt orelse completion.resource.?;
    const has = found: {
        if (completion.prompt != null) for (prompts) |prompt| {
            if (same(prompt.name, target)) break :found for (prompt.run.arguments) |each| {
                if (same(each.name, argument)) break true;
            } else false;
        };
        if (completion.resource != null) for (resources) |resource| {
            if (same(resource.uri, target)) break :found uris.hasVariable(target, argument);
        };
        return "a completion is for the " ++ what ++ " `" ++ target ++ "`, which does not exist";
    };
    if (has) return null;
    return "a completion is for the argument `" ++ argument ++ "` of the " ++ what ++ " `" ++ target ++ "`, which has no such argument";
}

fn same(one: []const u8, other: []const u8) bool {
    return std.mem.eql(u8, one, other);
}

fn sameTarget(one: ?[]const u8, other: ?[]const u8) bool {
    return one != null and other != null and same(one.?, other.?);
}
