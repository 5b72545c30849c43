//! URI templates (RFC 6570, level 1, and `{+name}`): matches URIs, and extracts the values of their variables.

const std = @import("std");
const Allocator = std.mem.Allocator;
const Setting = @import("toolbay.zig").Setting;

pub fn isTemplate(uri: []const u8) bool {
    return std.mem.indexOfScalar(u8, uri, '{') != null;
}

pub fn hasVariable(template: []const u8, name: []const u8) bool {
    var rest = template;
    while (Variable.next(rest)) |variable| {
        if (std.mem.eql(u8, variable.name, name)) return true;
        rest = variable.rest;
    }
    return false;
}

/// The text before a variable, the variable, the text after it up to the next one, and the template after the variable.
const Variable = struct {
    before: []const u8,
    name: []const u8,
    /// `{+name}`.
    any: bool,
    after: []const u8,
    rest: []const u8,

    fn next(template: []const u8) ?Variable {
        const brace = std.mem.indexOfScalar(u8, template, '{') orelse return null;
        const end = std.mem.indexOfScalarPos(u8, template, brace, '}') orelse return null;
        const inner = template[brace + 1 .. end];
        const any = std.mem.startsWith(u8, inner, "+");
        const rest = template[end + 1 ..];
        return .{
            .before = template[0..brace],
            .name = if (any) inner[1..] else inner,
            .any = any,
            .after = rest[0 .. std.mem.indexOfScalar(u8, rest, '{') orelse rest.len],
            .rest = rest,
        };
    }

    /// Returns the value at the beginning of the URI: it ends at the first occurrence of the following text, and has at
    /// least one character. Null if it does not end.
    fn value(variable: Variable, uri: []const u8) ?[]const u8 {
        if (uri.len == 0) return null;
        if (variable.rest.len == 0) return uri;
        const second = std.unicode.utf8ByteSequenceLength(uri[0]) catch 1;
        if (second >= uri.len) return null;
        return uri[0 .. std.mem.indexOfPos(u8, uri, second, variable.after) orelse return null];
    }
};

/// Returns the values of the template's variables; null if the URI does not match.
pub fn match(arena: Allocator, template: []const u8, uri: []const u8) Allocator.Error!?[]const Setting {
    var values: std.ArrayList(Setting) = .empty;
    var form = template;
    var rest = uri;
    while (Variable.next(form)) |variable| {
        if (!std.mem.startsWith(u8, rest, variable.before)) return null;
        rest = rest[variable.before.len..];
        const raw = variable.value(rest) orelse return null;
        if (!variable.any and std.mem.indexOfAny(u8, raw, "/?#") != null) return null;
        const value = if (variable.any) raw else try decode(arena, raw) orelse return null;
        try values.append(arena, .{ .key = variable.name, .value = value });
        rest = rest[raw.len..];
        form = variable.rest;
    }
    // The rest has no variable, or a brace that is never closed, which no URI matches.
    return if (!isTemplate(form) and std.mem.eql(u8, form, rest)) values.items else null;
}

/// Decodes percent-encoding; null if the result is not text.
fn decode(arena: Allocator, from: []const u8) Allocator.Error!?[]const u8 {
    var bytes: std.ArrayList(u8) = .empty;
    var at: usize = 0;
    while (at < from.len) : (at += 1) {
        if (from[at] != '%') {
            try bytes.append(arena, from[at]);
            continue;
        }
        if (at + 2 >= from.len) return null;
        const high = std.fmt.charToDigit(from[at + 1], 16) catch return null;
        const low = std.fmt.charToDigit(from[at + 2], 16) catch return null;
        try bytes.append(arena, high << 4 | low);
        at += 2;
    }
    return if (std.unicode.utf8ValidateSlice(bytes.items)) bytes.items else null;
}
