//! One tool for each guarantee of the contract, which the project's tests
//! call.

const std = @import("std");
const toolbay = @import("toolbay");

const Text = struct {
    text: []const u8,

    pub const docs = .{ .text = "What to say." };
};

fn echo(args: Text) []const u8 {
    return args.text;
}

fn boom() void {
    @panic("kaboom: 42");
}

fn refuse(call: *toolbay.Call) !void {
    return call.invalid("not today", .{});
}

fn image() struct { toolbay.Image, []const u8 } {
    return .{ .{ .data = "\x89PNG\r\n\x1a\n" }, "a picture" };
}

const Report = struct {
    units: ?[]const u8,
    cancelled: bool,

    pub const docs = .{ .units = "The units that the operator set.", .cancelled = "Whether the client gave up." };
};

fn report(call: *toolbay.Call) Report {
    call.log(.info, "working", .{});
    call.progress(1, .{ .total = 2 });
    call.progress(2, .{ .total = 2 });
    return .{ .units = call.config("units"), .cancelled = call.cancelled() };
}

const Name = struct {
    name: []const u8,

    pub const docs = .{ .name = "The name." };
};

fn ask(call: *toolbay.Call) ![]const u8 {
    const answer = try call.ask(toolbay.Form(Name){ .key = "name", .message = "Which name?", .optional = true });
    return switch (answer) {
        .accepted => |fields| call.print("Hello, {s}.", .{fields.name}),
        .declined => "declined",
        .cancelled => "cancelled",
        .unsupported => "nobody to ask",
    };
}

fn touch(call: *toolbay.Call) []const u8 {
    call.resourceUpdated("zig://about");
    return "touched";
}

const Greeting = struct {
    name: []const u8,
    style: ?[]const u8 = null,

    pub const docs = .{ .name = "Who to greet.", .style = "How to greet." };
};

fn greeting(call: *toolbay.Call, args: Greeting) ![]const u8 {
    const style = args.style orelse return call.print("Greet {s}.", .{args.name});
    return call.print("Greet {s} in a {s} style.", .{ args.name, style });
}

fn styles(call: *toolbay.Call, typed: []const u8) ![]const []const u8 {
    return call.beginningWith(typed, &.{ "formal", "friendly", "funny" });
}

fn about() []const u8 {
    return "A plugin in zig.";
}

fn note(call: *toolbay.Call, variables: struct { id: []const u8 }) !?[]const u8 {
    if (std.mem.eql(u8, variables.id, "none")) return null;
    return try call.print("Note {s}.", .{variables.id});
}

pub const tools = [_]toolbay.Tool{
    .{ .name = "zig_echo", .description = "Says a text back.", .run = .of(echo), .read_only = true },
    .{ .name = "zig_boom", .description = "Panics.", .run = .of(boom) },
    .{ .name = "zig_refuse", .description = "Refuses.", .run = .of(refuse) },
    .{ .name = "zig_image", .description = "Shows a picture.", .run = .of(image) },
    .{
        .name = "zig_report",
        .description = "Logs, tells its progress and reads its configuration.",
        .run = .of(report),
    },
    .{ .name = "zig_ask", .description = "Asks for a name.", .run = .of(ask) },
    .{ .name = "zig_touch", .description = "Reports a change of a resource.", .run = .of(touch) },
};

pub const prompts = [_]toolbay.Prompt{
    .{ .name = "zig_greeting", .description = "Greets somebody.", .run = .of(greeting) },
};

pub const completions = [_]toolbay.Completion{
    .{ .prompt = "zig_greeting", .argument = "style", .run = .of(styles) },
};

pub const resources = [_]toolbay.Resource{
    .{ .uri = "zig://about", .name = "about", .mime_type = "text/plain", .run = .of(about) },
    .{ .uri = "zig://notes/{id}", .name = "note", .mime_type = "text/plain", .run = .of(note) },
};
