const std = @import("std");
const toolbay = @import("toolbay");

const Greet = struct {
    name: []const u8,
    excited: bool = false,

    pub const docs = .{ .name = "Who to greet.", .excited = "Whether to shout." };
};

fn greet(call: *toolbay.Call, args: Greet) ![]const u8 {
    if (std.mem.trim(u8, args.name, &std.ascii.whitespace).len == 0) {
        return call.invalid("name is empty: say who to greet", .{});
    }
    if (!args.excited) return call.print("Hello, {s}.", .{args.name});
    return call.print("HELLO, {s}!", .{try std.ascii.allocUpperString(call.arena, args.name)});
}

const Text = struct {
    text: []const u8,

    pub const docs = .{ .text = "Text to count." };
};

const Counted = struct {
    characters: u32,
    words: u32 = 0,
    lines: u32 = 0,

    pub const docs = .{
        .characters = "How many Unicode code points.",
        .words = "How many words, separated by white space.",
        .lines = "How many lines.",
    };
};

fn count(args: Text) !Counted {
    var counted: Counted = .{ .characters = @intCast(try std.unicode.utf8CountCodepoints(args.text)) };
    var words = std.mem.tokenizeAny(u8, args.text, &std.ascii.whitespace);
    while (words.next()) |_| counted.words += 1;
    if (args.text.len > 0) counted.lines = @intCast(1 + std.mem.count(u8, args.text, "\n"));
    return counted;
}

pub const tools = [_]toolbay.Tool{
    .{
        .name = "{{ident}}_greet",
        .description = "Greets somebody by name.",
        .run = .of(greet),
        .read_only = true,
    },
    .{
        .name = "{{ident}}_count",
        .description = "Counts the characters, words and lines of a text.",
        .run = .of(count),
        .read_only = true,
    },
};

test "greets" {
    const calm = try toolbay.testing.call(&tools, "{{ident}}_greet", .{ .name = "Ada" });
    try std.testing.expectEqualStrings("Hello, Ada.", calm.text());
    const excited = try toolbay.testing.call(&tools, "{{ident}}_greet", .{ .name = "Ada", .excited = true });
    try std.testing.expectEqualStrings("HELLO, ADA!", excited.text());
}

test "refuses a blank name" {
    const answer = try toolbay.testing.call(&tools, "{{ident}}_greet", .{ .name = " \t" });
    try std.testing.expectEqualStrings("name is empty: say who to greet", answer.invalid_arguments);
}

test "counts" {
    try std.testing.expectEqual(Counted{ .characters = 13, .words = 3, .lines = 2 }, count(.{ .text = "naïve café\n日本" }));
    try std.testing.expectEqual(Counted{ .characters = 0, .words = 0, .lines = 0 }, count(.{ .text = "" }));
}
