//! Tests of the SDK. From this folder:
//!
//!     python -m ziglang test --dep toolbay -Mroot=sdk.zig -Mtoolbay=../sdk/toolbay.zig

const std = @import("std");
const toolbay = @import("toolbay");
const call = toolbay.testing.call;
const equal = std.testing.expectEqualStrings;

const Place = struct {
    latitude: f64,
    label: ?[]const u8 = null,

    pub const docs = .{ .latitude = .{ .minimum = -90, .maximum = 90.5 } };
};

const All = struct {
    yes: bool = false,
    tiny: i8,
    port: u16 = 8080,
    number: i32,
    big: i64,
    huge: u64,
    small: f32,
    in: enum { celsius, fahrenheit } = .celsius,
    text: []const u8,
    any: std.json.Value,
    or_null: ?i32,
    place: Place,
    tags: []const []const u8,
    pair: [2]i64,
    shape: union(enum) { circle: struct { radius: f64 }, dot },

    pub const docs = .{
        .yes = "A \"boolean\".",
        .number = .{ .minimum = 1, .maximum = 100 },
        .text = .{ .title = "Text", .description = "A text.", .min_length = 1, .pattern = "^a" },
        .tags = .{ .description = "Tags.", .max_length = 3 },
    };
};

const required =
    \\"tiny":-128,"number":7,"big":-9223372036854775808,"huge":18446744073709551615,"small":0.5,
    \\"text":"a\u0000é","any":{"k":[null,1.5]},"or_null":null,"place":{"latitude":1},"tags":["x","y"],"pair":[1,2],
    \\"shape":{"circle":{"radius":2}}
;

fn giveBack(args: All) All {
    return args;
}

fn everything(context: *toolbay.Call) !toolbay.Output {
    const content = try context.arena.dupe(toolbay.Content, &.{
        .{ .text = .{ .text = "text 1", .audience = &.{.user}, .priority = 0.5, .last_modified = "2026-01-12T15:00:58Z" } },
        .{ .image = .{ .data = "png" } },
        .{ .audio = .{ .data = "wav" } },
        .{ .link = .{ .uri = "https://example.com/a", .name = "a", .size = 7 } },
        .{ .text_resource = .{ .uri = "note:1", .text = "a note" } },
        .{ .binary_resource = .{ .uri = "note:2", .data = &.{ 0, 1 } } },
    });
    return .{ .content = content, .structured = "[1]", .meta = "{}" };
}

fn both() struct { Place, toolbay.Image, []const u8 } {
    return .{ .{ .latitude = 1 }, .{ .data = "png" }, "text" };
}

fn ask(context: *toolbay.Call) ![]const u8 {
    context.log(.warning, "{d} settings", .{(try context.settings()).len});
    context.progress(0.5, .{ .message = "half" });
    return context.print("{s} {any} {}", .{ context.config("b").?, context.config("c"), context.cancelled() });
}

fn fail(context: *toolbay.Call, args: Place) !?[]const u8 {
    if (args.latitude > 90) return context.invalid("no latitude is {d}", .{args.latitude});
    if (args.latitude < -90) return context.fail("no luck", .{});
    if (args.latitude == 0) return error.OnTheEquator;
    return if (args.latitude > 0) "north" else null;
}

fn nothing() void {}

const tools = [_]toolbay.Tool{
    .{ .name = "give_back", .description = "", .run = .of(giveBack) },
    .{ .name = "everything", .description = "", .run = .of(everything) },
    .{ .name = "both", .description = "", .run = .of(both) },
    .{ .name = "ask", .description = "", .run = .of(ask) },
    .{ .name = "fail", .description = "", .run = .of(fail) },
    .{ .name = "nothing", .description = "", .run = .of(nothing) },
};

fn parsed(json: []const u8) !std.json.Value {
    return std.json.parseFromSliceLeaky(std.json.Value, std.heap.page_allocator, json, .{});
}

test "every type comes back as it went" {
    const answer = try call(&tools, "give_back", try parsed("{" ++ required ++ "}"));
    try equal(
        \\{"yes":false,"tiny":-128,"port":8080,"number":7,"big":-9223372036854775808,"huge":18446744073709551615,
    ++
        \\"small":0.5,"in":"celsius","text":"a\u0000é","any":{"k":[null,1.5]},"or_null":null,
    ++
        \\"place":{"latitude":1,"label":null},"tags":["x","y"],"pair":[1,2],"shape":{"circle":{"radius":2}}}
    , answer.structured() orelse answer.text());
}

test "what does not fit is refused" {
    const answer = try call(&tools, "fail", .{ .latitude = "x" });
    try std.testing.expect(answer == .invalid_arguments);
    try std.testing.expect(try call(&tools, "fail", .{}) == .invalid_arguments);
    try std.testing.expect(try call(&tools, "fail", .{ .latitude = 1, .other = 2 }) == .invalid_arguments);
    try equal("there is no tool `other`", (try call(&tools, "other", .{})).failed);
}

test "schemas come from types" {
    const arena = std.heap.page_allocator;
    try equal(
        \\{"type":"object","properties":{
    ++
        \\"yes":{"description":"A \"boolean\".","type":"boolean","default":false},
    ++
        \\"tiny":{"type":"integer","minimum":-128,"maximum":127},
    ++
        \\"port":{"type":"integer","minimum":0,"maximum":65535,"default":8080},
    ++
        \\"number":{"type":"integer","minimum":1,"maximum":100},
    ++
        \\"big":{"type":"integer"},"huge":{"type":"integer","minimum":0},"small":{"type":"number"},
    ++
        \\"in":{"type":"string","enum":["celsius","fahrenheit"],"default":"celsius"},
    ++
        \\"text":{"title":"Text","description":"A text.","type":"string","minLength":1,"pattern":"^a"},
    ++
        \\"any":{},"or_null":{"type":["integer","null"],"minimum":-2147483648,"maximum":2147483647},
    ++
        \\"place":{"type":"object","properties":{"latitude":{"type":"number","minimum":-90,"maximum":90.5},
    ++
        \\"label":{"type":["string","null"]}},"required":["latitude"],"additionalProperties":false},
    ++
        \\"tags":{"description":"Tags.","type":"array","items":{"type":"string"},"maxItems":3},
    ++
        \\"pair":{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2},
    ++
        \\"shape":{"oneOf":[{"type":"object","properties":{"circle":{"type":"object","properties":{
    ++
        \\"radius":{"type":"number"}},"required":["radius"],"additionalProperties":false}},
    ++
        \\"required":["circle"],"additionalProperties":false},{"type":"object","properties":{"dot":{
    ++
        \\"type":"object","properties":{},"additionalProperties":false}},"required":["dot"],
    ++
        \\"additionalProperties":false}]}},
    ++
        \\"required":["tiny","number","big","huge","small","text","any","or_null","place","tags","pair","shape"],
    ++
        \\"additionalProperties":false}
    , try tools[0].run.input_schema(arena));
    try equal(
        \\{"type":"object","properties":{"latitude":{"type":"number","minimum":-90,"maximum":90.5},
    ++
        \\"label":{"type":["string","null"]}},"required":["latitude","label"],"additionalProperties":false}
    , try tools[2].run.output_schema.?(arena));
    try std.testing.expect(tools[4].run.output_schema == null);
}

test "every block is kept" {
    const output = (try call(&tools, "everything", .{})).output;
    try std.testing.expectEqual(6, output.content.len);
    try equal("note:2", output.content[5].binary_resource.uri);
    try equal("[1]", output.structured.?);
    const tuple = (try call(&tools, "both", .{})).output;
    try std.testing.expectEqual(2, tuple.content.len);
    try equal("{\"latitude\":1,\"label\":null}", tuple.structured.?);
}

test "every block crosses as the contract has it" {
    const output = (try call(&tools, "everything", .{})).output;
    const crossed = (try toolbay.abi.answer(std.heap.page_allocator, output)).value.output.content.slice();
    const kinds = [_][]const u8{ "text", "image", "audio", "resource-link", "embedded-resource", "embedded-resource" };
    // Another kind needs a block in `everything`.
    try std.testing.expectEqual(@typeInfo(toolbay.Content).@"union".field_names.len, kinds.len);
    for (kinds, crossed) |kind, content| try equal(kind, content.kind.slice());

    try equal("text 1", crossed[0].text.value.slice());
    try equal("2026-01-12T15:00:58Z", crossed[0].last_modified.value.slice());
    try std.testing.expectEqual(0.5, crossed[0].priority.value);
    try std.testing.expect(!crossed[0].data.some and !crossed[1].last_modified.some);
    try equal("png", crossed[1].data.value.slice());
    try equal("image/png", crossed[1].mime_type.value.slice());
    try std.testing.expectEqual(7, crossed[3].size.value);
    try equal("a note", crossed[4].text.value.slice());
}

test "the host answers" {
    toolbay.testing.host.configuration = &.{ .{ .key = "a", .value = "1" }, .{ .key = "b", .value = "2" } };
    toolbay.testing.host.is_cancelled = true;
    try equal("2 null true", (try call(&tools, "ask", .{})).text());
    try equal("warning: 2 settings\n", toolbay.testing.host.logged.items);
    try std.testing.expectEqual(0.5, toolbay.testing.host.done);
}

test "failures and nothing" {
    try equal("no latitude is 91", (try call(&tools, "fail", .{ .latitude = 91 })).invalid_arguments);
    try equal("no luck", (try call(&tools, "fail", .{ .latitude = -91 })).failed);
    try equal("OnTheEquator", (try call(&tools, "fail", .{ .latitude = 0 })).failed);
    try equal("north", (try call(&tools, "fail", .{ .latitude = 1 })).text());
    try std.testing.expectEqual(0, (try call(&tools, "fail", .{ .latitude = -1 })).output.content.len);
    try std.testing.expectEqual(0, (try call(&tools, "nothing", .{})).output.content.len);
}
