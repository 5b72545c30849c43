//! The memory of a call, in plugins in Zig and in the SDK for C.
//!
//! The allocator of the standard library requests a page from the system for each size of block, which takes longer
//! than
//! most calls. So the first blocks of a call are allocated one after the other in a static buffer of the plugin. Of
//! these, only the newest can be freed. The standard library allocates blocks that do not fit in the buffer, and
//! reuses
//! freed memory: a long call wastes at most the buffer.

const std = @import("std");
const builtin = @import("builtin");
const Alignment = std.mem.Alignment;

/// Enough for most calls. Pages that are never touched cost nothing.
const size = 256 << 10;

var room: [size]u8 align(16) = undefined;
/// The number of bytes in use.
var taken: usize = 0;

const system = if (builtin.cpu.arch.isWasm()) std.heap.wasm_allocator else std.heap.page_allocator;

pub const allocator: std.mem.Allocator = .{
    .ptr = undefined,
    .vtable = &.{ .alloc = alloc, .resize = resize, .remap = remap, .free = free },
};

fn alloc(_: *anyopaque, len: usize, alignment: Alignment, return_address: usize) ?[*]u8 {
    // Aligns the address: the block's alignment may be larger than the buffer's.
    const base = @intFromPtr(&room);
    const begin = alignment.forward(base + taken) - base;
    if (begin > size or len > size - begin) return system.rawAlloc(len, alignment, return_address);
    taken = begin + len;
    return room[begin..].ptr;
}

fn resize(_: *anyopaque, block: []u8, alignment: Alignment, len: usize, return_address: usize) bool {
    const begin = offset(block) orelse return system.rawResize(block, alignment, len, return_address);
    if (begin + block.len != taken) return len <= block.len;
    if (len > size - begin) return false;
    taken = begin + len;
    return true;
}

fn remap(context: *anyopaque, block: []u8, alignment: Alignment, len: usize, return_address: usize) ?[*]u8 {
    if (offset(block) == null) return system.rawRemap(block, alignment, len, return_address);
    return if (resize(context, block, alignment, len, return_address)) block.ptr else null;
}

fn free(_: *anyopaque, block: []u8, alignment: Alignment, return_address: usize) void {
    const begin = offset(block) orelse return system.rawFree(block, alignment, return_address);
    if (begin + block.len == taken) taken = begin;
}

/// Returns the offset of a block in the buffer; null if it is outside.
fn offset(block: []u8) ?usize {
    const begin = @intFromPtr(block.ptr) -% @intFromPtr(&room);
    return if (begin < size) begin else null;
}

test "blocks come one after the other" {
    defer taken = 0;
    const one = try allocator.alloc(u8, 3);
    const two = try allocator.alignedAlloc(u8, .@"64", 5);
    try std.testing.expect(std.mem.isAligned(@intFromPtr(two.ptr), 64));
    try std.testing.expect(@intFromPtr(two.ptr) - @intFromPtr(one.ptr) < 128);
}

test "the newest block grows in its place, and leaves it when it is freed" {
    defer taken = 0;
    const one = try allocator.alloc(u8, 3);
    try std.testing.expect(allocator.resize(one, size));
    try std.testing.expect(!allocator.resize(one.ptr[0..size], size + 1));
    try std.testing.expect(allocator.resize(one.ptr[0..size], 3));
    const two = try allocator.alloc(u8, 3);
    try std.testing.expect(!allocator.resize(one, 4));
    try std.testing.expect(allocator.resize(one, 2));
    allocator.free(two);
    const three = try allocator.alloc(u8, 9);
    try std.testing.expectEqual(two.ptr, three.ptr);
}

test "what does not fit is the system's, and can be freed there" {
    defer taken = 0;
    var blocks: [64][]u8 = undefined;
    for (&blocks, 0..) |*block, index| {
        block.* = try allocator.alloc(u8, size / 16);
        @memset(block.*, @intCast(index));
    }
    try std.testing.expect(offset(blocks[0]) != null and offset(blocks[63]) == null);
    for (blocks, 0..) |block, index| {
        try std.testing.expect(std.mem.allEqual(u8, block, @intCast(index)));
        allocator.free(block);
    }
}

test "a list that grows is moved whole" {
    defer taken = 0;
    var list: std.ArrayList(u32) = .empty;
    defer list.deinit(allocator);
    for (0..size) |index| try list.append(allocator, @intCast(index));
    for (list.items, 0..) |item, index| try std.testing.expectEqual(index, item);
}
