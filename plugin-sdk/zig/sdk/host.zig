//! The host of this plugin, or that of a test.

const std = @import("std");
const builtin = @import("builtin");
const abi = @import("abi.zig");
const toolbay = @import("toolbay.zig");
const Level = toolbay.Level;
const Setting = toolbay.Setting;
const questions = @import("ask.zig");

/// WebAssembly plugins have a host. Native tests have the one in `testing.zig`.
pub const real = builtin.cpu.arch.isWasm();
const stand_in = toolbay.testing.host;

const imports = struct {
    extern "toolbay:plugin/host@0.2.0" fn log(level: i32, message: [*]const u8, len: usize) void;
    extern "toolbay:plugin/host@0.2.0" fn progress(done: f64, has_total: bool, total: f64, has_message: bool, message: [*]const u8, len: usize) void;
    extern "toolbay:plugin/host@0.2.0" fn cancelled() bool;
    extern "toolbay:plugin/host@0.2.0" fn config(key: [*]const u8, len: usize, value: *abi.Option(abi.List(u8))) void;
    extern "toolbay:plugin/host@0.2.0" fn @"config-all"(settings: *abi.List([2]abi.List(u8))) void;
    extern "toolbay:plugin/host@0.2.0" fn ask(questions: [*]const abi.Question, len: usize, answer: *abi.AskAnswer) void;
    extern "toolbay:plugin/host@0.2.0" fn @"resource-updated"(uri: [*]const u8, len: usize) void;
};

/// The allocator for the host's strings, and for all other memory of a call.
pub const memory = if (real) @import("memory.zig").allocator else std.heap.page_allocator;

pub fn log(level: Level, message: []const u8) void {
    if (!real) return stand_in.log(level, message);
    const text = abi.text(memory, message) catch return;
    imports.log(@backingInt(level), text.ptr, text.len);
}

pub fn progress(done: f64, total: ?f64, message: ?[]const u8) void {
    if (!real) return stand_in.progress(done, total, message);
    const text = abi.text(memory, message orelse "") catch return;
    imports.progress(done, total != null, total orelse 0, message != null, text.ptr, text.len);
}

pub fn cancelled() bool {
    return if (real) imports.cancelled() else stand_in.cancelled();
}

pub fn config(key: []const u8) ?[]const u8 {
    if (!real) return stand_in.config(key);
    const text = abi.text(memory, key) catch return null;
    var value: abi.Option(abi.List(u8)) = undefined;
    imports.config(text.ptr, text.len, &value);
    return if (value.some) value.value.slice() else null;
}

pub fn settings(arena: std.mem.Allocator) std.mem.Allocator.Error![]const Setting {
    if (!real) return stand_in.settings();
    var all: abi.List([2]abi.List(u8)) = undefined;
    imports.@"config-all"(&all);
    const copies = try arena.alloc(Setting, all.len);
    for (all.slice(), copies) |from, *to| to.* = .{ .key = from[0].slice(), .value = from[1].slice() };
    return copies;
}

pub fn resourceUpdated(uri: []const u8) void {
    if (!real) return stand_in.resourceUpdated(uri);
    const text = abi.text(memory, uri) catch return;
    imports.@"resource-updated"(text.ptr, text.len);
}

pub fn ask(arena: std.mem.Allocator, asked: []const questions.Asked) std.mem.Allocator.Error!questions.Results {
    if (!real) return stand_in.ask(asked);
    const lowered = try arena.alloc(abi.Question, asked.len);
    for (asked, lowered) |from, *to| to.* = .{
        .key = try abi.text(arena, from.key),
        .kind = from.kind,
        .params = try abi.text(arena, from.params),
        .required = from.required,
    };
    var answer: abi.AskAnswer = undefined;
    imports.ask(lowered.ptr, lowered.len, &answer);
    if (answer.is_error) {
        const why = answer.value.failure.message.slice();
        return if (answer.value.failure.kind == .unsupported) .{ .unsupported = why } else .{ .invalid = why };
    }
    const answers = try arena.alloc([]const u8, answer.value.answers.len);
    for (answer.value.answers.slice(), answers) |from, *to| to.* = from.slice();
    return .{ .answers = answers };
}

/// Writes the message to standard error, which the host shows, and ends the call.
pub fn panic(message: []const u8, _: ?usize) noreturn {
    @branchHint(.cold);
    if (!real) std.debug.defaultPanic(message, null);
    const wasi = std.os.wasi;
    const parts = [_]wasi.ciovec_t{
        .{ .base = message.ptr, .len = message.len },
        .{ .base = "\n", .len = 1 },
    };
    var written: usize = 0;
    _ = wasi.fd_write(2, &parts, parts.len, &written);
    wasi.proc_exit(1);
}
