//! The shapes of the contract in `wit/plugin.wit`, as the component model's canonical ABI lays them out in memory.

const std = @import("std");
const Allocator = std.mem.Allocator;
const toolbay = @import("toolbay.zig");

/// `list<T>`; `string` is a list of bytes.
pub fn List(comptime T: type) type {
    return extern struct {
        ptr: [*]const T,
        len: usize,

        const Self = @This();

        pub fn of(from: []const T) Self {
            // Where an empty slice points is nobody's business in Zig; the host wants it to be in memory.
            return .{ .ptr = if (from.len > 0) from.ptr else @ptrFromInt(@alignOf(T)), .len = from.len };
        }

        pub fn slice(list: Self) []const T {
            return list.ptr[0..list.len];
        }
    };
}

const String = List(u8);

/// `option<T>`.
pub fn Option(comptime T: type) type {
    return extern struct {
        some: bool,
        value: T,

        const Self = @This();

        pub fn of(from: ?T) Self {
            return if (from) |value| .{ .some = true, .value = value } else .{ .some = false, .value = undefined };
        }
    };
}

pub const Icon = extern struct {
    src: String,
    mime_type: Option(String),
    sizes: List(String),
    theme: Option(u8),
};

pub const ToolDefinition = extern struct {
    name: String,
    title: Option(String),
    description: Option(String),
    input_schema: String,
    output_schema: Option(String),
    has_annotations: bool,
    read_only: Option(bool),
    destructive: Option(bool),
    idempotent: Option(bool),
    open_world: Option(bool),
    icons: List(Icon),
    meta: Option(String),
};

pub const Content = extern struct {
    kind: String,
    text: Option(String),
    data: Option(String),
    mime_type: Option(String),
    uri: Option(String),
    name: Option(String),
    title: Option(String),
    description: Option(String),
    size: Option(u64),
    audience: List(u8),
    priority: Option(f64),
    last_modified: Option(String),
    members: Option(String),
};

pub const Output = extern struct {
    content: List(Content),
    structured: Option(String),
    meta: Option(String),
};

pub const Failure = extern struct {
    kind: enum(u8) { invalid_arguments, failed },
    message: String,
};

/// `result<output, failure>`.
pub const Answer = extern struct {
    is_failure: bool,
    value: extern union { output: Output, failure: Failure },

    pub fn failed(kind: @FieldType(Failure, "kind"), message: String) Answer {
        return .{ .is_failure = true, .value = .{ .failure = .{ .kind = kind, .message = message } } };
    }
};

comptime {
    if (@sizeOf(usize) == 4) {
        std.debug.assert(@sizeOf(Icon) == 32);
        std.debug.assert(@sizeOf(ToolDefinition) == 84);
        std.debug.assert(@offsetOf(ToolDefinition, "icons") == 64);
        std.debug.assert(@sizeOf(Content) == 160);
        std.debug.assert(@offsetOf(Content, "audience") == 112);
        std.debug.assert(@offsetOf(Content, "last_modified") == 136);
        std.debug.assert(@sizeOf(Answer) == 36);
    }
}

/// The host refuses text that is not UTF-8: U+FFFD takes the place of what is not.
pub fn text(arena: Allocator, from: []const u8) Allocator.Error!String {
    if (std.unicode.utf8ValidateSlice(from)) return .of(from);
    return .of(try arena.print("{f}", .{std.unicode.fmtUtf8(from)}));
}

fn optional(arena: Allocator, from: ?[]const u8) Allocator.Error!Option(String) {
    return .of(if (from) |some| try text(arena, some) else null);
}

pub fn definition(arena: Allocator, tool: toolbay.Tool) Allocator.Error!ToolDefinition {
    const icons = try arena.alloc(Icon, tool.icons.len);
    for (tool.icons, icons) |from, *to| to.* = try icon(arena, from);
    return .{
        .name = try text(arena, tool.name),
        .title = try optional(arena, tool.title),
        .description = try optional(arena, tool.description),
        .input_schema = .of(try tool.run.input_schema(arena)),
        .output_schema = .of(if (tool.run.output_schema) |schema| String.of(try schema(arena)) else null),
        .has_annotations = (tool.read_only orelse tool.destructive orelse tool.idempotent orelse tool.open_world) != null,
        .read_only = .of(tool.read_only),
        .destructive = .of(tool.destructive),
        .idempotent = .of(tool.idempotent),
        .open_world = .of(tool.open_world),
        .icons = .of(icons),
        .meta = try optional(arena, tool.meta),
    };
}

fn icon(arena: Allocator, from: toolbay.Icon) Allocator.Error!Icon {
    const sizes = try arena.alloc(String, from.sizes.len);
    for (from.sizes, sizes) |size, *to| to.* = try text(arena, size);
    return .{
        .src = try text(arena, from.src),
        .mime_type = try optional(arena, from.mime_type),
        .sizes = .of(sizes),
        .theme = .of(if (from.theme) |theme| @as(u8, if (theme == .dark) 1 else 0) else null),
    };
}

pub fn answer(arena: Allocator, from: toolbay.Output) Allocator.Error!Answer {
    const blocks = try arena.alloc(Content, from.content.len);
    for (from.content, blocks) |block, *to| to.* = try content(arena, block);
    return .{ .is_failure = false, .value = .{ .output = .{
        .content = .of(blocks),
        .structured = try optional(arena, from.structured),
        .meta = try optional(arena, from.meta),
    } } };
}

fn content(arena: Allocator, from: toolbay.Content) Allocator.Error!Content {
    const kind = switch (from) {
        .text => "text",
        .image => "image",
        .audio => "audio",
        .link => "resource-link",
        .text_resource, .binary_resource => "embedded-resource",
    };
    switch (from) {
        inline else => |block| {
            inline for (comptime std.meta.fieldNames(@TypeOf(block))) |name| {
                if (!@hasField(Content, name)) @compileError("the contract has no field for `" ++ name ++ "` of " ++ @typeName(@TypeOf(block)));
            }
            const audience: []const u8 = @ptrCast(block.audience);
            return .{
                .kind = .of(kind),
                .text = try optional(arena, get(block, "text")),
                .data = .of(if (get(block, "data")) |data| String.of(data) else null),
                .mime_type = try optional(arena, get(block, "mime_type")),
                .uri = try optional(arena, get(block, "uri")),
                .name = try optional(arena, get(block, "name")),
                .title = try optional(arena, get(block, "title")),
                .description = try optional(arena, get(block, "description")),
                .size = .of(if (@hasField(@TypeOf(block), "size")) block.size else null),
                .audience = .of(audience),
                .priority = .of(block.priority),
                .last_modified = try optional(arena, block.last_modified),
                .members = .of(null),
            };
        },
    }
}

fn get(block: anytype, comptime name: []const u8) ?[]const u8 {
    return if (@hasField(@TypeOf(block), name)) @field(block, name) else null;
}
