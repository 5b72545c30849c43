//! The SDK's heap in a plugin, which uses the memory of a call. The C library's `malloc` requests memory from the
//! system repeatedly, which takes longer than most calls.

const std = @import("std");
const builtin = @import("builtin");
const allocator = @import("memory.zig").allocator;

comptime {
    // Native tests use the C library's heap, and so the tools that check its use.
    if (builtin.cpu.arch.isWasm()) {
        @export(&reallocate, .{ .name = "toolbay_heap_reallocate", .visibility = .hidden });
        @export(&free, .{ .name = "toolbay_heap_free", .visibility = .hidden });
    }
}

/// Alignment of blocks, the same as that of `malloc`.
const alignment: std.mem.Alignment = .@"16";

/// Header before each block.
const Header = extern struct {
    /// The size of the header and the block.
    whole: usize align(16),
    /// Distinguishes a block from other memory.
    mark: usize = marked,

    const marked: usize = 0x7001_ba1e;

    fn of(block: [*]u8) *Header {
        const header: *Header = @ptrCast(@alignCast(block - @sizeOf(Header)));
        if (header.mark != marked) @panic("a block of memory that is not the SDK's, or that was freed");
        return header;
    }

    fn bytes(header: *Header) []u8 {
        return @as([*]u8, @ptrCast(header))[0..header.whole];
    }
};

/// Like `realloc`, except that 0 is a valid size.
fn reallocate(of: ?[*]u8, size: usize) callconv(.c) ?[*]u8 {
    const whole = std.math.add(usize, size, @sizeOf(Header)) catch return null;
    if (of) |block| {
        const header = Header.of(block);
        if (allocator.rawResize(header.bytes(), alignment, whole, 0)) {
            header.whole = whole;
            return block;
        }
    }
    const begin = allocator.rawAlloc(whole, alignment, 0) orelse return null;
    const header: *Header = @ptrCast(@alignCast(begin));
    header.* = .{ .whole = whole };
    const new = begin + @sizeOf(Header);
    if (of) |block| {
        const kept = @min(whole, Header.of(block).whole) - @sizeOf(Header);
        @memcpy(new[0..kept], block[0..kept]);
        free(block);
    }
    return new;
}

fn free(of: ?[*]u8) callconv(.c) void {
    const header = Header.of(of orelse return);
    header.mark = 0;
    allocator.rawFree(header.bytes(), alignment, 0);
}

test "a block keeps what is in it" {
    const one = reallocate(null, 3).?;
    @memcpy(one[0..3], "abc");
    const grown = reallocate(one, 5).?;
    try std.testing.expectEqual(one, grown);
    const other = reallocate(null, 0).?;
    const moved = reallocate(grown, 500_000).?;
    try std.testing.expect(moved != grown);
    try std.testing.expectEqualStrings("abc", moved[0..3]);
    const small = reallocate(moved, 2).?;
    try std.testing.expectEqualStrings("ab", small[0..2]);
    free(small);
    free(other);
    free(null);
    try std.testing.expect(std.mem.isAligned(@intFromPtr(other), 16));
}
