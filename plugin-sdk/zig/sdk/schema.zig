//! Generates the JSON Schema of types, as `std.json` reads and writes them.
//!
//! A struct can describe its fields:
//!
//! ```zig
//! const Search = struct {
//!     query: []const u8,
//!     limit: u32 = 10,
//!
//!     pub const docs = .{
//!         .query = "What to look for.",
//!         .limit = .{ .description = "How many results to return.", .minimum = 1, .maximum = 100 },
//!     };
//! };
//! ```
//!
//! A type with a `pub const json_schema`, which is JSON as text, has that schema.

const std = @import("std");
const Allocator = std.mem.Allocator;
const Stringify = std.json.Stringify;
const Error = Stringify.Error;

/// The options of a field in `docs`, other than its description.
pub const Doc = struct {
    title: ?[]const u8 = null,
    description: ?[]const u8 = null,
    /// The bounds of a number.
    minimum: ?f64 = null,
    maximum: ?f64 = null,
    /// The bounds of a text in characters, or of a list in items.
    min_length: ?usize = null,
    max_length: ?usize = null,
    /// A regular expression that a text matches.
    pattern: ?[]const u8 = null,
    /// The format of a text: `email`, `uri`, `date` or `date-time`.
    format: ?[]const u8 = null,
};

/// A field with a default may be left out of arguments and forms, but a result always has it. There is no null in a form.
pub const Use = enum { arguments, result, form };

/// Returns the function that writes the schema of a struct.
pub fn of(comptime T: type, comptime use: Use) *const fn (Allocator) Allocator.Error![]const u8 {
    return struct {
        fn text(arena: Allocator) Allocator.Error![]const u8 {
            var to: std.Io.Writer.Allocating = .init(arena);
            var json: Stringify = .{ .writer = &to.writer };
            write(T, use, &json) catch return error.OutOfMemory;
            return to.written();
        }
    }.text;
}

/// Writes the schema of a struct.
pub fn write(comptime T: type, comptime use: Use, json: *Stringify) Error!void {
    if (@hasDecl(T, "json_schema")) return json.print("{s}", .{T.json_schema});
    try json.beginObject();
    try member(json, "type", "object");
    try writeProperties(T, use, json);
    try json.endObject();
}

fn writeProperties(comptime T: type, comptime use: Use, json: *Stringify) Error!void {
    const fields = @typeInfo(T).@"struct";
    comptime checkDocs(T);
    try json.objectField("properties");
    try json.beginObject();
    inline for (fields.field_names, fields.field_types, fields.field_attrs) |name, Field, attributes| {
        const doc = comptime docOf(T, name);
        try json.objectField(name);
        try json.beginObject();
        if (doc.title) |title| try member(json, "title", title);
        if (doc.description) |description| try member(json, "description", description);
        try writeValue(Field, use, doc, json);
        if (use != .result) {
            if (comptime attributes.defaultValue(Field)) |default| try writeDefault(Field, default, json);
        }
        try json.endObject();
    }
    try json.endObject();
    try writeRequired(T, use, json);
    // Clients support only a part of JSON Schema in forms, which excludes this keyword.
    if (use != .form) try member(json, "additionalProperties", false);
}

fn writeRequired(comptime T: type, comptime use: Use, json: *Stringify) Error!void {
    const fields = @typeInfo(T).@"struct";
    const required = comptime names: {
        var names: []const []const u8 = &.{};
        for (fields.field_names, fields.field_attrs) |name, attributes| {
            if (use == .result or attributes.default_value_ptr == null) names = names ++ .{name};
        }
        break :names names;
    };
    // Older drafts forbid an empty list.
    if (required.len > 0) try member(json, "required", required);
}

/// Writes the default, unless it is null: such a default only means that the field is left out.
fn writeDefault(comptime T: type, default: T, json: *Stringify) Error!void {
    if (@typeInfo(T) == .optional and default == null) return;
    try member(json, "default", default);
}

/// Writes the members of the schema of one value.
fn writeValue(comptime T: type, comptime use: Use, comptime doc: Doc, json: *Stringify) Error!void {
    if (T == std.json.Value) return;
    switch (@typeInfo(T)) {
        .optional => |optional| {
            if (use == .form) return writeValue(optional.child, use, doc, json);
            if (comptime simple(optional.child)) |name| {
                try member(json, "type", [_][]const u8{ name, "null" });
                return writeDetails(optional.child, doc, true, json);
            }
            try json.objectField("anyOf");
            try json.beginArray();
            try json.beginObject();
            try writeValue(optional.child, use, doc, json);
            try json.endObject();
            try json.beginObject();
            try member(json, "type", "null");
            try json.endObject();
            try json.endArray();
        },
        .@"struct" => |info| {
            if (info.is_tuple) @compileError("a tuple has no schema: " ++ @typeName(T));
            if (@hasDecl(T, "json_schema")) {
                try json.objectField("allOf");
                try json.beginArray();
                try json.print("{s}", .{T.json_schema});
                return json.endArray();
            }
            try member(json, "type", "object");
            try writeProperties(T, use, json);
        },
        .@"union" => |info| {
            try json.objectField("oneOf");
            try json.beginArray();
            inline for (info.field_names, info.field_types) |name, Field| {
                const Payload = if (Field == void) struct {} else Field;
                try json.beginObject();
                try member(json, "type", "object");
                try json.objectField("properties");
                try json.beginObject();
                try json.objectField(name);
                try json.beginObject();
                try writeValue(Payload, use, .{}, json);
                try json.endObject();
                try json.endObject();
                try member(json, "required", [_][]const u8{name});
                try member(json, "additionalProperties", false);
                try json.endObject();
            }
            try json.endArray();
        },
        .array => |array| try writeList(array.child, use, .{ .min_length = array.len, .max_length = array.len }, json),
        .pointer => |pointer| switch (pointer.size) {
            .one => try writeValue(pointer.child, use, doc, json),
            .slice => if (pointer.child == u8) {
                try member(json, "type", "string");
                try writeDetails(T, doc, false, json);
            } else try writeList(pointer.child, use, doc, json),
            else => @compileError("no JSON for " ++ @typeName(T)),
        },
        else => {
            const name = comptime simple(T) orelse @compileError("no JSON for " ++ @typeName(T));
            try member(json, "type", name);
            try writeDetails(T, doc, false, json);
        },
    }
}

fn writeList(comptime Item: type, comptime use: Use, comptime doc: Doc, json: *Stringify) Error!void {
    try member(json, "type", "array");
    try json.objectField("items");
    try json.beginObject();
    try writeValue(Item, use, .{}, json);
    try json.endObject();
    if (doc.min_length) |length| try member(json, "minItems", length);
    if (doc.max_length) |length| try member(json, "maxItems", length);
}

/// Returns the JSON type of a value that is neither an object nor a list.
pub fn simple(comptime T: type) ?[]const u8 {
    return switch (@typeInfo(T)) {
        .bool => "boolean",
        .int => "integer",
        .float => "number",
        .@"enum" => "string",
        .pointer => |pointer| if (pointer.size == .slice and pointer.child == u8) "string" else null,
        else => null,
    };
}

fn writeDetails(comptime T: type, comptime doc: Doc, nullable: bool, json: *Stringify) Error!void {
    switch (@typeInfo(T)) {
        .int => |int| {
            // 64-bit bounds are not exact in every client.
            const small = int.bits < 64;
            if (doc.minimum) |bound| {
                try writeBound("minimum", bound, json);
            } else if (small or int.signedness == .unsigned) {
                try member(json, "minimum", std.math.minInt(T));
            }
            if (doc.maximum) |bound| {
                try writeBound("maximum", bound, json);
            } else if (small) {
                try member(json, "maximum", std.math.maxInt(T));
            }
        },
        .float => {
            if (doc.minimum) |bound| try writeBound("minimum", bound, json);
            if (doc.maximum) |bound| try writeBound("maximum", bound, json);
        },
        .@"enum" => |info| {
            try json.objectField("enum");
            try json.beginArray();
            for (info.field_names) |name| try json.write(name);
            if (nullable) try json.write(null);
            try json.endArray();
        },
        .pointer => {
            if (doc.min_length) |length| try member(json, "minLength", length);
            if (doc.max_length) |length| try member(json, "maxLength", length);
            if (doc.pattern) |pattern| try member(json, "pattern", pattern);
            if (doc.format) |format| try member(json, "format", format);
        },
        else => {},
    }
}

/// Writes a bound, without a fraction if it is an integer.
fn writeBound(name: []const u8, comptime bound: f64, json: *Stringify) Error!void {
    if (@trunc(bound) == bound and @abs(bound) < 1 << 53) {
        try member(json, name, @as(i64, @intFromFloat(bound)));
    } else {
        try member(json, name, bound);
    }
}

pub fn member(json: *Stringify, name: []const u8, value: anytype) Error!void {
    try json.objectField(name);
    try json.write(value);
}

/// Returns the entry of `docs` for a field.
pub fn docOf(comptime T: type, comptime name: []const u8) Doc {
    if (!@hasDecl(T, "docs") or !@hasField(@TypeOf(T.docs), name)) return .{};
    const said = @field(T.docs, name);
    if (@typeInfo(@TypeOf(said)) != .@"struct") return .{ .description = said };
    var doc: Doc = .{};
    for (@typeInfo(@TypeOf(said)).@"struct".field_names) |key| @field(doc, key) = @field(said, key);
    return doc;
}

pub fn checkDocs(comptime T: type) void {
    if (!@hasDecl(T, "docs")) return;
    for (@typeInfo(@TypeOf(T.docs)).@"struct".field_names) |name| {
        if (!@hasField(T, name)) @compileError("docs of " ++ @typeName(T) ++ " has the field " ++ name ++ ", the struct has not");
    }
}
