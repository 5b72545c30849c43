//! One tool for each promise of the contract; the project's tests call them.

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
};
