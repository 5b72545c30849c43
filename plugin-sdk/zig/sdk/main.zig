//! The root of a plugin: what the component exports, over the tools of the module `plugin`.

const std = @import("std");
const Allocator = std.mem.Allocator;
const plugin = @import("plugin");
const toolbay = @import("toolbay");
const abi = toolbay.abi;

/// The safety checks of Zig report here.
pub const panic = toolbay.panic;

/// Nothing is freed: the instance ends with the call.
const arena = toolbay.memory;

comptime {
    @export(&reallocate, .{ .name = "cabi_realloc" });
    @export(&listTools, .{ .name = "toolbay:plugin/tools@0.2.0#list-tools" });
    @export(&callTool, .{ .name = "toolbay:plugin/tools@0.2.0#call-tool" });
}

/// Memory that the host writes strings into.
fn reallocate(old: [*]u8, old_size: usize, alignment: usize, size: usize) callconv(.c) [*]u8 {
    // Enough for every shape of the contract.
    const all: std.mem.Alignment = .@"8";
    std.debug.assert(alignment <= all.toByteUnits());
    const new = arena.alignedAlloc(u8, all, @max(size, 1)) catch outOfMemory();
    if (old_size > 0) @memcpy(new[0..@min(old_size, size)], old[0..@min(old_size, size)]);
    return new.ptr;
}

fn outOfMemory() noreturn {
    @panic("out of memory");
}

fn listTools() callconv(.c) *const abi.List(abi.ToolDefinition) {
    const answer = struct {
        var list: abi.List(abi.ToolDefinition) = undefined;
    };
    answer.list = .of(definitions() catch outOfMemory());
    return &answer.list;
}

fn definitions() Allocator.Error![]const abi.ToolDefinition {
    const all = try arena.alloc(abi.ToolDefinition, plugin.tools.len);
    for (plugin.tools, all) |tool, *definition| definition.* = try abi.definition(arena, tool);
    return all;
}

fn callTool(name: [*]const u8, name_len: usize, arguments: [*]const u8, arguments_len: usize) callconv(.c) *const abi.Answer {
    const answer = struct {
        var result: abi.Answer = undefined;
    };
    answer.result = run(name[0..name_len], arguments[0..arguments_len]) catch outOfMemory();
    return &answer.result;
}

fn run(name: []const u8, arguments: []const u8) Allocator.Error!abi.Answer {
    var call: toolbay.Call = .{ .arena = arena };
    const output = toolbay.dispatch(&plugin.tools, &call, name, arguments) catch |err| {
        const message = try abi.text(arena, toolbay.messageOf(&call, err));
        return .failed(if (err == error.InvalidArguments) .invalid_arguments else .failed, message);
    };
    return abi.answer(arena, output);
}
