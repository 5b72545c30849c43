//! The types of the contract in `wit/plugin.wit`, in the memory layout of the component model's canonical ABI.

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
            // In Zig, the pointer of an empty slice may have any value. The host requires an address within
            // memory.
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

/// `result<T, failure>`.
fn Result(comptime T: type) type {
    return extern struct {
        is_failure: bool,
        value: extern union { output: T, failure: Failure },

        const Self = @This();

        pub fn of(output: T) Self {
            return .{ .is_failure = false, .value = .{ .output = output } };
        }

        pub fn failed(kind: @FieldType(Failure, "kind"), message: String) Self {
            return .{ .is_failure = true, .value = .{ .failure = .{ .kind = kind, .message = message } } };
        }
    };
}

pub const Answer = Result(Output);

pub const PromptArgument = extern struct {
    name: String,
    title: Option(String),
    description: Option(String),
    required: bool,
};

pub const PromptDefinition = extern struct {
    name: String,
    title: Option(String),
    description: Option(String),
    arguments: List(PromptArgument),
    icons: List(Icon),
    meta: Option(String),
};

pub const PromptMessage = extern struct {
    role: toolbay.Role,
    content: Content,
};

pub const PromptOutput = extern struct {
    description: Option(String),
    messages: List(PromptMessage),
    meta: Option(String),
};

pub const PromptAnswer = Result(PromptOutput);

pub const ResourceDefinition = extern struct {
    uri: String,
    name: String,
    title: Option(String),
    description: Option(String),
    mime_type: Option(String),
    size: Option(u64),
    audience: List(u8),
    priority: Option(f64),
    last_modified: Option(String),
    icons: List(Icon),
    meta: Option(String),
};

pub const ResourceTemplate = extern struct {
    uri_template: String,
    name: String,
    title: Option(String),
    description: Option(String),
    mime_type: Option(String),
    audience: List(u8),
    priority: Option(f64),
    icons: List(Icon),
    meta: Option(String),
};

pub const ResourceContents = extern struct {
    uri: String,
    mime_type: Option(String),
    text: Option(String),
    data: Option(String),
    meta: Option(String),
};

pub const ResourceAnswer = Result(List(ResourceContents));

pub const Completions = extern struct {
    values: List(String),
    total: Option(u32),
    has_more: bool,
};

pub const CompletionAnswer = Result(Completions);

pub const Question = extern struct {
    key: String,
    kind: @import("ask.zig").Kind,
    params: String,
    required: bool,
};

/// `result<list<string>, ask-error>`.
pub const AskAnswer = extern struct {
    is_error: bool,
    value: extern union {
        answers: List(String),
        failure: extern struct { kind: enum(u8) { unsupported, invalid }, message: String },
    },
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
        std.debug.assert(@sizeOf(PromptArgument) == 36);
        std.debug.assert(@sizeOf(PromptDefinition) == 60);
        std.debug.assert(@sizeOf(PromptMessage) == 168);
        std.debug.assert(@sizeOf(PromptAnswer) == 36);
        std.debug.assert(@sizeOf(ResourceDefinition) == 128);
        std.debug.assert(@offsetOf(ResourceDefinition, "audience") == 72);
        std.debug.assert(@sizeOf(ResourceTemplate) == 104);
        std.debug.assert(@offsetOf(ResourceTemplate, "icons") == 80);
        std.debug.assert(@sizeOf(ResourceContents) == 56);
        std.debug.assert(@sizeOf(ResourceAnswer) == 16);
        std.debug.assert(@sizeOf(CompletionAnswer) == 24);
        std.debug.assert(@sizeOf(Question) == 24);
        std.debug.assert(@sizeOf(AskAnswer) == 16);
    }
}

/// Replaces invalid UTF-8, which the host refuses, by U+FFFD.
pub fn text(arena: Allocator, from: []const u8) Allocator.Error!String {
    if (std.unicode.utf8ValidateSlice(from)) return .of(from);
    return .of(try arena.print("{f}", .{std.unicode.fmtUtf8(from)}));
}

fn optional(arena: Allocator, from: ?[]const u8) Allocator.Error!Option(String) {
    return .of(if (from) |some| try text(arena, some) else null);
}

pub fn definition(arena: Allocator, tool: toolbay.Tool) Allocator.Error!ToolDefinition {
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
        .icons = try iconsOf(arena, tool.icons),
        .meta = try optional(arena, tool.meta),
    };
}

pub fn promptDefinition(arena: Allocator, prompt: toolbay.Prompt) Allocator.Error!PromptDefinition {
    const arguments = try arena.alloc(PromptArgument, prompt.run.arguments.len);
    for (prompt.run.arguments, arguments) |from, *to| to.* = .{
        .name = try text(arena, from.name),
        .title = try optional(arena, from.title),
        .description = try optional(arena, from.description),
        .required = from.required,
    };
    return .{
        .name = try text(arena, prompt.name),
        .title = try optional(arena, prompt.title),
        .description = try optional(arena, prompt.description),
        .arguments = .of(arguments),
        .icons = try iconsOf(arena, prompt.icons),
        .meta = try optional(arena, prompt.meta),
    };
}

pub fn resourceDefinition(arena: Allocator, resource: toolbay.Resource) Allocator.Error!ResourceDefinition {
    const audience: []const u8 = @ptrCast(resource.audience);
    return .{
        .uri = try text(arena, resource.uri),
        .name = try text(arena, resource.name),
        .title = try optional(arena, resource.title),
        .description = try optional(arena, resource.description),
        .mime_type = try optional(arena, resource.mime_type),
        .size = .of(resource.size),
        .audience = .of(audience),
        .priority = .of(resource.priority),
        .last_modified = try optional(arena, resource.last_modified),
        .icons = try iconsOf(arena, resource.icons),
        .meta = try optional(arena, resource.meta),
    };
}

pub fn resourceTemplate(arena: Allocator, resource: toolbay.Resource) Allocator.Error!ResourceTemplate {
    const all = try resourceDefinition(arena, resource);
    return .{
        .uri_template = all.uri,
        .name = all.name,
        .title = all.title,
        .description = all.description,
        .mime_type = all.mime_type,
        .audience = all.audience,
        .priority = all.priority,
        .icons = all.icons,
        .meta = all.meta,
    };
}

pub fn promptAnswer(arena: Allocator, from: toolbay.Messages) Allocator.Error!PromptAnswer {
    const messages = try arena.alloc(PromptMessage, from.messages.len);
    for (from.messages, messages) |message, *to| to.* = .{ .role = message.role, .content = try content(arena, message.content) };
    return .of(.{
        .description = try optional(arena, from.description),
        .messages = .of(messages),
        .meta = try optional(arena, from.meta),
    });
}

pub fn resourceAnswer(arena: Allocator, from: []const toolbay.Item) Allocator.Error!ResourceAnswer {
    const items = try arena.alloc(ResourceContents, from.len);
    for (from, items) |item, *to| to.* = .{
        .uri = try text(arena, item.uri orelse ""),
        .mime_type = try optional(arena, item.mime_type),
        .text = try optional(arena, if (item.content == .text) item.content.text else null),
        .data = .of(if (item.content == .data) String.of(item.content.data) else null),
        .meta = try optional(arena, item.meta),
    };
    return .of(.of(items));
}

pub fn completionAnswer(arena: Allocator, from: toolbay.Suggestions) Allocator.Error!CompletionAnswer {
    const values = try arena.alloc(String, from.values.len);
    for (from.values, values) |value, *to| to.* = try text(arena, value);
    return .of(.{ .values = .of(values), .total = .of(from.total), .has_more = from.more });
}

fn iconsOf(arena: Allocator, from: []const toolbay.Icon) Allocator.Error!List(Icon) {
    const icons = try arena.alloc(Icon, from.len);
    for (from, icons) |each, *to| to.* = try icon(arena, each);
    return .of(icons);
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
    return .of(.{
        .content = .of(blocks),
        .structured = try optional(arena, from.structured),
        .meta = try optional(arena, from.meta),
    });
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
